//! Constants, and the Arrow arrays of one row that hold them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal256Type, Float64Type, Int32Type, Int64Type, IntervalMonthDayNanoType, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, IntervalMonthDayNanoArray, NullArray, StringArray,
    make_array,
};
use arrow_buffer::{Buffer, i256};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};

use super::kind::{NANOS, scale, unit_scale, value_type};
use crate::error::{Result, plan_err};

/// A constant of an expression.
///
/// Values of Rust convert into literals, as [`lit`](super::lit) does; the other variants are written out:
///
/// ```
/// use arrow_buffer::i256;
/// use prejoin::expr::{Literal, lit};
///
/// assert_eq!(lit(Literal::Date(1)).to_string(), "DATE '1970-01-02'");
/// assert_eq!(lit(Literal::Decimal { value: i256::from(150), scale: 2 }).to_string(), "1.50");
/// assert_eq!(Literal::from(2.5), Literal::Float(2.5));
/// ```
///
/// Two literals are equal if their stored bits are, so NaN equals itself and 0.0 differs from -0.0.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Literal {
    /// Null, of any type.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// A binary floating-point number.
    Float(f64),
    /// `value / 10^scale`.
    Decimal {
        /// The number without its decimal point, as a whole number.
        value: i256,
        /// How many of its digits are after the decimal point, at most 76.
        scale: i8,
    },
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Time since midnight.
    Time {
        /// The number of units.
        value: i64,
        /// The unit.
        unit: TimeUnit,
    },
    /// Time since 1970-01-01 00:00:00, in UTC if there is a zone, else in local time.
    Timestamp {
        /// The number of units.
        value: i64,
        /// The unit.
        unit: TimeUnit,
        /// The name of the zone, or `None` for local time.
        zone: Option<Arc<str>>,
    },
    /// A length of time.
    Duration {
        /// The number of units.
        value: i64,
        /// The unit.
        unit: TimeUnit,
    },
    /// A number of calendar months, of days, and a length of time, each of which may be negative.
    Interval {
        /// Whole months.
        months: i32,
        /// Whole days.
        days: i32,
        /// Nanoseconds.
        nanos: i64,
    },
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        use Literal::*;
        match (self, other) {
            (Null, Null) => true,
            (Boolean(a), Boolean(b)) => a == b,
            (Integer(a), Integer(b)) => a == b,
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Decimal { value: a, scale: s }, Decimal { value: b, scale: t }) => (a, s) == (b, t),
            (Text(a), Text(b)) => a == b,
            (Binary(a), Binary(b)) => a == b,
            (Date(a), Date(b)) => a == b,
            (Time { value: a, unit: u }, Time { value: b, unit: v })
            | (Duration { value: a, unit: u }, Duration { value: b, unit: v }) => (a, u) == (b, v),
            (Timestamp { value: a, unit: u, zone: y }, Timestamp { value: b, unit: v, zone: z }) => {
                (a, u, y) == (b, v, z)
            }
            (Interval { months: a, days: b, nanos: c }, Interval { months: x, days: y, nanos: z }) => {
                (a, b, c) == (x, y, z)
            }
            _ => false,
        }
    }
}

macro_rules! literal_from {
    ($($native:ty => $variant:ident),* $(,)?) => { $(
        impl From<$native> for Literal {
            fn from(value: $native) -> Self {
                Literal::$variant(value.into())
            }
        }
    )* };
}
literal_from! {
    bool => Boolean, i8 => Integer, i16 => Integer, i32 => Integer, i64 => Integer, i128 => Integer, u8 => Integer,
    u16 => Integer, u32 => Integer, u64 => Integer, f32 => Float, f64 => Float, &str => Text, String => Text,
    &[u8] => Binary, Vec<u8> => Binary,
}

impl<T: Into<Literal>> From<Option<T>> for Literal {
    fn from(value: Option<T>) -> Self {
        value.map_or(Literal::Null, Into::into)
    }
}

impl Literal {
    /// An array of one row, of the type that the literal has by itself.
    pub(super) fn to_array(&self) -> Result<ArrayRef> {
        Ok(match self {
            Literal::Null => Arc::new(NullArray::new(1)),
            Literal::Boolean(value) => Arc::new(BooleanArray::from(vec![*value])),
            Literal::Integer(value) => {
                let value = i256::from_i128(*value);
                return [DataType::Int64, DataType::UInt64]
                    .iter()
                    .find_map(|data_type| stored(value, data_type))
                    .map_or_else(|| decimal(value, 0), Ok);
            }
            Literal::Float(value) => Arc::new(Float64Array::from(vec![*value])),
            Literal::Decimal { value, scale } => return decimal(*value, *scale),
            Literal::Text(text) => Arc::new(StringArray::from(vec![text.as_str()])),
            Literal::Binary(bytes) => Arc::new(BinaryArray::from(vec![bytes.as_slice()])),
            Literal::Date(days) => return in_range(i64::from(*days), &DataType::Date32),
            Literal::Time { value, unit: unit @ (TimeUnit::Second | TimeUnit::Millisecond) } => {
                return in_range(*value, &DataType::Time32(*unit));
            }
            Literal::Time { value, unit } => return in_range(*value, &DataType::Time64(*unit)),
            Literal::Timestamp { value, unit, zone } => {
                return in_range(*value, &DataType::Timestamp(*unit, zone.clone()));
            }
            Literal::Duration { value, unit } => return in_range(*value, &DataType::Duration(*unit)),
            Literal::Interval { months, days, nanos } => {
                let value = IntervalMonthDayNanoType::make_value(*months, *days, *nanos);
                Arc::new(IntervalMonthDayNanoArray::from(vec![value]))
            }
        })
    }

    /// An interval without months as a duration, with days of 24 hours, in the coarsest unit that holds it exactly.
    pub(super) fn as_duration(&self) -> Option<Literal> {
        let Literal::Interval { months: 0, days, nanos } = self else { return None };
        let total = i128::from(*days) * 86_400 * NANOS + i128::from(*nanos);
        let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        units.into_iter().find_map(|unit| {
            let one = 10i128.pow(9 - unit_scale(unit) as u32);
            let value = i64::try_from(total / one).ok().filter(|_| total % one == 0)?;
            Some(Literal::Duration { value, unit })
        })
    }

    /// The first row of `array` as a literal; `None` if there are no literals of its type.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int16Array, StructArray};
    /// use prejoin::expr::Literal;
    ///
    /// let number: ArrayRef = Arc::new(Int16Array::from(vec![7]));
    /// assert_eq!(Literal::from_array(&number)?, Some(Literal::Integer(7)));
    /// let row: ArrayRef = Arc::new(StructArray::new_empty_fields(1, None));
    /// assert_eq!(Literal::from_array(&row)?, None);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for an array of no rows; [`Error::Arrow`](crate::Error::Arrow) for a decimal that does
    /// not have its scale in 76 digits.
    pub fn from_array(array: &ArrayRef) -> Result<Option<Literal>> {
        if array.is_empty() {
            return plan_err!("a literal is made of the first row of an array, one of no rows was given");
        }
        let array = &array.slice(0, 1);
        if array.logical_null_count() > 0 {
            return Ok(Some(Literal::Null));
        }
        let options = CastOptions { safe: false, ..Default::default() };
        let as_type = |to: &DataType| cast_with_options(array, to, &options);
        let long = || Ok::<_, ArrowError>(as_type(&DataType::Int64)?.as_primitive::<Int64Type>().value(0));
        let data_type = value_type(array.data_type());
        Ok(Some(match data_type {
            DataType::Null => Literal::Null,
            DataType::Boolean => Literal::Boolean(as_type(data_type)?.as_boolean().value(0)),
            DataType::UInt64 => Literal::Integer(as_type(data_type)?.as_primitive::<UInt64Type>().value(0).into()),
            t if t.is_integer() => Literal::Integer(long()?.into()),
            t if t.is_floating() => Literal::Float(as_type(&DataType::Float64)?.as_primitive::<Float64Type>().value(0)),
            t @ (DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)) => {
                let wide = as_type(&DataType::Decimal256(76, scale(t)))?;
                Literal::Decimal { value: wide.as_primitive::<Decimal256Type>().value(0), scale: scale(t) }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Literal::Text(as_type(&DataType::LargeUtf8)?.as_string::<i64>().value(0).to_owned())
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                Literal::Binary(as_type(&DataType::LargeBinary)?.as_binary::<i64>().value(0).to_vec())
            }
            DataType::Date32 => Literal::Date(as_type(data_type)?.as_primitive::<Date32Type>().value(0)),
            DataType::Date64 => match long()? {
                ms if ms % 86_400_000 == 0 && i32::try_from(ms / 86_400_000).is_ok() => {
                    Literal::Date((ms / 86_400_000) as i32)
                }
                value => Literal::Timestamp { value, unit: TimeUnit::Millisecond, zone: None },
            },
            DataType::Time32(unit) => Literal::Time {
                value: as_type(&DataType::Int32)?.as_primitive::<Int32Type>().value(0).into(),
                unit: *unit,
            },
            DataType::Time64(unit) => Literal::Time { value: long()?, unit: *unit },
            DataType::Timestamp(unit, zone) => Literal::Timestamp { value: long()?, unit: *unit, zone: zone.clone() },
            DataType::Duration(unit) => Literal::Duration { value: long()?, unit: *unit },
            DataType::Interval(_) => {
                let value = as_type(&DataType::Interval(IntervalUnit::MonthDayNano))?;
                let value = value.as_primitive::<IntervalMonthDayNanoType>().value(0);
                Literal::Interval { months: value.months, days: value.days, nanos: value.nanoseconds }
            }
            _ => return Ok(None),
        }))
    }
}

/// An array of one row that holds `value / 10^scale`, of the smallest decimal type that can.
pub(super) fn decimal(value: i256, scale: i8) -> Result<ArrayRef> {
    if scale > 76 {
        return plan_err!("a decimal literal has {scale} digits after the point, at most 76 are supported");
    }
    let narrow = (scale <= 38).then(|| stored(value, &DataType::Decimal128(38, scale))).flatten();
    match narrow.or_else(|| stored(value, &DataType::Decimal256(76, scale))) {
        Some(array) => Ok(array),
        None => plan_err!("the decimal literal {value} with scale {scale} has more than 76 digits"),
    }
}

/// An array of one row of a type that stores an integer, in the unit of the literal.
fn in_range(value: i64, data_type: &DataType) -> Result<ArrayRef> {
    match stored(i256::from(value), data_type) {
        Some(array) => Ok(array),
        None => plan_err!("the literal {value} is out of range for {data_type}"),
    }
}

/// An array of one row of a type that stores `value` as an integer, if its width and sign allow it.
pub(super) fn stored(value: i256, data_type: &DataType) -> Option<ArrayRef> {
    let width = data_type.primitive_width()?;
    let bytes = value.to_le_bytes();
    let (low, high) = bytes.split_at(width);
    let negative = value.is_negative();
    let fits = if data_type.is_unsigned_integer() {
        !negative && high.iter().all(|&b| b == 0)
    } else {
        let top_is_sign = (low[width - 1] >= 0x80) == negative;
        top_is_sign && high.iter().all(|&b| b == if negative { 0xFF } else { 0 })
    };
    if !fits {
        return None;
    }
    let mut low = low.to_vec();
    if cfg!(target_endian = "big") {
        low.reverse();
    }
    let data = ArrayData::builder(data_type.clone()).len(1).add_buffer(Buffer::from_vec(low)).align_buffers(true);
    data.build().ok().map(make_array)
}
