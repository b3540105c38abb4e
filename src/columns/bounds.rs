//! Least and greatest value of a key column.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, BooleanArray, PrimitiveArray, downcast_primitive, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

use super::floats::{canonical, is_nan};
use crate::cancel::Cancel;
use crate::error::Result;

/// Rows read between two looks at the stop signal.
const PIECE: usize = 64 * 1024;

/// The least and the greatest value of a key column, nulls left aside.
///
/// Floats are ordered as keys are equal: -0.0 is 0.0, all NaN are one value, and it is the greatest. The two values are
/// arrays of one row; like the metadata of arrays they are outside of the build's charge.
#[derive(Clone)]
pub struct Bounds {
    min: ArrayRef,
    max: ArrayRef,
}

impl Bounds {
    /// Bounds of `column`; `None` where it has no value, and for types without an order of their values: bytes,
    /// intervals, nested types.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub(crate) fn of(column: &ArrayRef, cancel: &Cancel) -> Result<Option<Self>> {
        let data_type = column.data_type();
        macro_rules! primitive {
            ($t:ty) => {
                primitive::<$t>(column.as_primitive(), cancel)
            };
        }
        downcast_primitive! {
            data_type => (primitive),
            DataType::Boolean => Ok(boolean(column.as_boolean())),
            _ => Ok(None),
        }
    }

    /// Bounds of one row each, of the column's type.
    pub(crate) fn new(min: ArrayRef, max: ArrayRef) -> Self {
        Self { min, max }
    }

    /// The least value: an array of one row, of the column's type.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(7), None, Some(3)]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(build.bounds()[0].as_ref().unwrap().min(), &users.column(0).slice(2, 1));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn min(&self) -> &ArrayRef {
        &self.min
    }

    /// The greatest value: an array of one row, of the column's type.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [Some(7), None, Some(3)]))?;
    /// let build = prejoin::prepare(users.clone(), &["id"], &RunOptions::default())?;
    /// assert_eq!(build.bounds()[0].as_ref().unwrap().max(), &users.column(0).slice(0, 1));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn max(&self) -> &ArrayRef {
        &self.max
    }

    /// The rows of `column`, which has the type of the bounds, that lie within them. Nulls do where `nulls_pass`.
    pub(crate) fn contain(&self, column: &ArrayRef, nulls_pass: bool) -> BooleanBuffer {
        let data_type = column.data_type();
        macro_rules! primitive {
            ($t:ty) => {
                within::<$t>(column.as_primitive(), self.min.as_primitive(), self.max.as_primitive())
            };
        }
        let inside = downcast_primitive! {
            data_type => (primitive),
            DataType::Boolean => {
                let (min, max) = (self.min.as_boolean().value(0), self.max.as_boolean().value(0));
                let values = column.as_boolean().values();
                if min == max && min { values.clone() } else if min == max { !values } else { all(column.len()) }
            },
            _ => all(column.len()),
        };
        match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => inside,
            Some(nulls) if nulls_pass => &inside | &!nulls.inner(),
            Some(nulls) => &inside & nulls.inner(),
        }
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", Shown(&self.min), Shown(&self.max))
    }
}

/// The value of an array of one row.
pub(crate) struct Shown<'a>(pub(crate) &'a ArrayRef);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Instants are shown in UTC: the zone's rules may not be at hand.
        let (array, suffix) = match self.0.data_type() {
            DataType::Timestamp(unit, Some(_)) => {
                let data = self.0.to_data().into_builder().data_type(DataType::Timestamp(*unit, None));
                (make_array(data.build().map_err(|_| fmt::Error)?), "Z")
            }
            _ => (Arc::clone(self.0), ""),
        };
        let options = FormatOptions::default();
        let formatter = ArrayFormatter::try_new(&array, &options).map_err(|_| fmt::Error)?;
        write!(f, "{}{suffix}", formatter.value(0))
    }
}

fn all(len: usize) -> BooleanBuffer {
    BooleanBuffer::new_set(len)
}

/// The order of key values: NaN is the greatest and equals NaN.
#[inline]
fn at_most<V: ArrowNativeTypeOp>(value: V, other: V) -> bool {
    value <= other || is_nan(other)
}

fn primitive<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, cancel: &Cancel) -> Result<Option<Bounds>> {
    // Months, days and nanoseconds have no common order; field by field is none that a reader could use.
    if matches!(column.data_type(), DataType::Interval(_)) {
        return Ok(None);
    }
    let mut bounds: Option<(T::Native, T::Native)> = None;
    let mut fold = |values: &[T::Native]| {
        let Some(&first) = values.first() else { return };
        let (mut min, mut max) = bounds.unwrap_or((first, first));
        for &value in values {
            min = if at_most(value, min) { value } else { min };
            max = if at_most(max, value) { value } else { max };
        }
        bounds = Some((min, max));
    };
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    for start in (0..column.len()).step_by(PIECE) {
        cancel.check()?;
        let len = PIECE.min(column.len() - start);
        let values = &column.values()[start..start + len];
        // A slot under a null may hold anything.
        match nulls.map(|nulls: &NullBuffer| nulls.slice(start, len)) {
            None => fold(values),
            Some(nulls) => nulls.valid_slices().for_each(|(from, to)| fold(&values[from..to])),
        }
    }
    let array = |value: T::Native| -> ArrayRef {
        // Of all NaN the one that is the greatest in IEEE's total order too.
        let value = canonical(value, T::Native::MAX_TOTAL_ORDER);
        let values = PrimitiveArray::<T>::new(vec![value].into(), None);
        Arc::new(values.with_data_type(column.data_type().clone()))
    };
    Ok(bounds.map(|(min, max)| Bounds { min: array(min), max: array(max) }))
}

fn boolean(column: &BooleanArray) -> Option<Bounds> {
    let (has_true, has_false) = (column.true_count() > 0, column.false_count() > 0);
    let array = |value: bool| -> ArrayRef { Arc::new(BooleanArray::from(vec![value])) };
    (has_true || has_false).then(|| Bounds { min: array(!has_false), max: array(has_true) })
}

fn within<T: ArrowPrimitiveType>(
    column: &PrimitiveArray<T>,
    min: &PrimitiveArray<T>,
    max: &PrimitiveArray<T>,
) -> BooleanBuffer {
    let (min, max, values) = (min.value(0), max.value(0), column.values());
    BooleanBuffer::collect_bool(values.len(), |i| at_most(min, values[i]) & at_most(values[i], max))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, TimestampMillisecondType};
    use arrow_array::*;
    use arrow_buffer::i256;

    use super::*;

    fn bounds(column: impl Array + 'static) -> Option<Bounds> {
        Bounds::of(&(Arc::new(column) as ArrayRef), &Cancel::default()).unwrap()
    }

    fn shown(column: impl Array + 'static) -> String {
        bounds(column).map_or("none".to_owned(), |bounds| format!("{bounds:?}"))
    }

    /// S39: every ordered type; none for a column without values.
    #[test]
    fn bounds_of_every_ordered_type() {
        assert_eq!(shown(Int64Array::from(vec![Some(3), None, Some(i64::MIN)])), "-9223372036854775808..=3");
        assert_eq!(shown(UInt64Array::from(vec![u64::MAX, 1])), "1..=18446744073709551615");
        assert_eq!(shown(Int8Array::from(vec![-3, 5])), "-3..=5");
        assert_eq!(shown(Date32Array::from(vec![1, 0])), "1970-01-01..=1970-01-02");
        assert_eq!(shown(Time32SecondArray::from(vec![61, 1])), "00:00:01..=00:01:01");
        assert_eq!(shown(DurationSecondArray::from(vec![2, 1])), "PT1S..=PT2S");
        let zoned = PrimitiveArray::<TimestampMillisecondType>::from(vec![1000, 0]).with_timezone("Europe/Berlin");
        assert_eq!(shown(zoned.clone()), "1970-01-01T00:00:00Z..=1970-01-01T00:00:01Z");
        assert_eq!(bounds(zoned.clone()).unwrap().min().data_type(), zoned.data_type());
        let decimal = Decimal128Array::from(vec![150, -25]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(shown(decimal), "-0.25..=1.50");
        let wide = Decimal256Array::from(vec![i256::MAX, i256::MIN]).with_precision_and_scale(76, 0).unwrap();
        assert_eq!(bounds(wide).unwrap().max().as_primitive::<types::Decimal256Type>().value(0), i256::MAX);
        assert_eq!(shown(BooleanArray::from(vec![Some(true), None])), "true..=true");
        assert_eq!(shown(BooleanArray::from(vec![true, false])), "false..=true");
        for empty in [Int32Array::from(Vec::<i32>::new()), Int32Array::from(vec![None, None])] {
            assert_eq!(shown(empty), "none");
        }
        // What the calendar does not reach is still shown somehow.
        assert!(!shown(Date32Array::from(vec![i32::MIN, i32::MAX])).is_empty());
        let far = TimestampSecondArray::from(vec![i64::MIN, i64::MAX]);
        assert!(!shown(far.clone()).is_empty() && !shown(far.with_timezone("+01:00")).is_empty());
        assert_eq!(shown(NullArray::new(3)), "none");
        assert_eq!(shown(IntervalYearMonthArray::from(vec![1, 2])), "none");
        // S41: bytes have none.
        assert_eq!(shown(StringArray::from(vec!["a"])), "none");
        assert_eq!(shown(FixedSizeBinaryArray::try_from_iter([[1u8, 2]].iter()).unwrap()), "none");
    }

    /// S39: a value under a null shows in no bound, sliced or not, also beyond the first piece.
    #[test]
    fn values_under_nulls_do_not_leak() {
        let rows = 3 * PIECE / 2;
        let values: Vec<i64> = (0..rows as i64).map(|i| if i % 2 == 0 { i } else { i * 1_000_000 - 7 }).collect();
        let nulls = NullBuffer::from((0..rows).map(|i| i % 2 == 0).collect::<Vec<_>>());
        let column = Int64Array::new(values.into(), Some(nulls));
        assert_eq!(shown(column.clone()), format!("0..={}", rows - 2));
        assert_eq!(shown(column.slice(3, PIECE)), format!("4..={}", PIECE + 2));
    }

    /// S42: NaN is one value above all, whatever its sign and payload; the zeros are one value.
    #[test]
    fn floats_are_ordered_as_keys_are_equal() {
        let other_nan = f64::from_bits(0xfff8_0000_0000_0001);
        let bits = |array: &ArrayRef| array.as_primitive::<Float64Type>().value(0).to_bits();
        let zeros = bounds(Float64Array::from(vec![0.0, -0.0, -0.0])).unwrap();
        assert_eq!((bits(zeros.min()), bits(zeros.max())), (0, 0));
        let mixed = bounds(Float64Array::from(vec![other_nan, 1.0, -0.0])).unwrap();
        let greatest = i64::MAX as u64;
        assert_eq!((bits(mixed.min()), bits(mixed.max())), (0, greatest));
        let only = bounds(Float64Array::from(vec![other_nan])).unwrap();
        assert_eq!((bits(only.min()), bits(only.max())), (greatest, greatest));

        let probe: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(-0.0),
            Some(0.0),
            Some(other_nan),
            Some(f64::NAN),
            Some(-1.0),
            Some(f64::INFINITY),
            None,
        ]));
        let mask = |bounds: &Bounds, nulls| bounds.contain(&probe, nulls).iter().map(u8::from).collect::<Vec<_>>();
        assert_eq!(mask(&zeros, false), [1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(mask(&mixed, false), [1, 1, 1, 1, 0, 1, 0]);
        assert_eq!(mask(&only, true), [0, 0, 1, 1, 0, 0, 1]);
        let half: ArrayRef = Arc::new(Float32Array::from(vec![-0.0, f32::NAN, 1.5]));
        let half = arrow_cast::cast(&half, &DataType::Float16).unwrap();
        assert_eq!(shown(half.as_primitive::<types::Float16Type>().clone()), "0..=NaN");
    }

    #[test]
    fn boolean_bounds_contain_their_values() {
        let probe: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
        for (build, expected) in [
            (vec![true], [true, false, false]),
            (vec![false], [false, true, false]),
            (vec![false, true], [true, true, false]),
        ] {
            let bounds = bounds(BooleanArray::from(build)).unwrap();
            assert_eq!(bounds.contain(&probe, false).iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_stop_signal_ends_the_scan() {
        let cancel = Cancel::new();
        cancel.cancel();
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(matches!(Bounds::of(&column, &cancel), Err(crate::Error::Cancelled)));
    }
}
