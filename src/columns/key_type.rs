//! Which types of keys can be compared with each other, and the conversion of probe keys to the type of the build keys. The
//! conversion is exact: a key that the other type cannot hold matches nothing, and is never rounded or cut to another value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Int16Type,
    Int32Type, Int64Type, RunEndIndexType,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, Int64Array, NullArray,
    OffsetSizeTrait, PrimitiveArray, RunArray, StructArray, UInt64Array, downcast_dictionary_array, new_null_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, i256};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use arrow_select::take::take;

use crate::error::{Result, internal_err};

/// The type in which keys of `data_type` are indexed. Dictionaries and run-end encoded arrays, at every level of nesting, are
/// indexed as their values.
pub(crate) fn key_type(data_type: &DataType) -> DataType {
    use DataType::*;
    let nested = |field: &FieldRef| Arc::new(Field::new(field.name(), key_type(field.data_type()), true));
    match data_type {
        Dictionary(_, values) => key_type(values),
        RunEndEncoded(_, values) => key_type(values.data_type()),
        Struct(fields) => Struct(fields.iter().map(nested).collect()),
        List(field) => List(nested(field)),
        LargeList(field) => LargeList(nested(field)),
        ListView(field) => ListView(nested(field)),
        LargeListView(field) => LargeListView(nested(field)),
        FixedSizeList(field, size) => FixedSizeList(nested(field), *size),
        other => other.clone(),
    }
}

/// False for types that keys cannot have: maps and unions, for which there is no generally accepted equality.
pub(crate) fn has_equality(data_type: &DataType) -> bool {
    match key_type(data_type) {
        DataType::Map(_, _) | DataType::Union(_, _) => false,
        DataType::Struct(fields) => fields.iter().all(|field| has_equality(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => has_equality(field.data_type()),
        _ => true,
    }
}

/// True where keys of the two types are compared by value in a join.
pub(crate) fn comparable(build: &DataType, probe: &DataType) -> bool {
    use DataType::*;
    let (build, probe) = (&key_type(build), &key_type(probe));
    let fields = |a: &FieldRef, b: &FieldRef| comparable(a.data_type(), b.data_type());
    match (build, probe) {
        (Null, _) | (_, Null) => true,
        (a, b) if a.is_integer() && b.is_integer() => true,
        (a, b) if a.is_decimal() && b.is_decimal() => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => true,
        (Timestamp(_, a), Timestamp(_, b)) => a.is_some() == b.is_some(),
        (Time32(_) | Time64(_), Time32(_) | Time64(_)) | (Duration(_), Duration(_)) => true,
        (Struct(a), Struct(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fields(a, b)),
        (List(a), List(b)) | (LargeList(a), LargeList(b)) => fields(a, b),
        (ListView(a), ListView(b)) | (LargeListView(a), LargeListView(b)) => fields(a, b),
        (FixedSizeList(a, n), FixedSizeList(b, m)) => n == m && fields(a, b),
        (a, b) => a.equals_datatype(b),
    }
}

/// Keys converted to another type.
#[derive(Debug)]
pub(crate) struct Coerced {
    /// The converted keys, unspecified where `missing` is set.
    pub(crate) keys: ArrayRef,
    /// Set for keys that equal no value of the type; `None` where there are none.
    pub(crate) missing: Option<BooleanBuffer>,
}

impl Coerced {
    pub(crate) fn exact(keys: ArrayRef) -> Self {
        Self { keys, missing: None }
    }

    /// The result of a conversion from `from` to `keys` that gives null for what it cannot express.
    fn nulls_are_missing(keys: ArrayRef, from: &ArrayRef) -> Self {
        if keys.logical_null_count() == from.logical_null_count() {
            return Self::exact(keys);
        }
        let (before, after) = (from.logical_nulls(), keys.logical_nulls());
        let valid = |nulls: &Option<NullBuffer>, i: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i));
        let missing = BooleanBuffer::collect_bool(keys.len(), |i| valid(&before, i) && !valid(&after, i));
        Self { keys, missing: Some(missing) }
    }
}

/// Converts `keys` to `target`, which is a type that [`key_type`] returns and is [`comparable`] with the type of `keys`.
pub(crate) fn coerce(keys: &ArrayRef, target: &DataType) -> Result<Coerced> {
    use DataType::*;
    if keys.data_type() == target {
        return Ok(Coerced::exact(keys.clone()));
    }
    match (keys.data_type(), target) {
        (Dictionary(_, _) | RunEndEncoded(_, _), _) => match positions(keys)? {
            Some((positions, values)) => pick(&positions, &values, target),
            None => internal_err!("no positions in an array of type {}", keys.data_type()),
        },
        (Null, _) => Ok(Coerced::exact(new_null_array(target, keys.len()))),
        // Only null equals a value of type Null.
        (_, Null) => {
            let keys_null = NullArray::new(keys.len());
            let missing =
                keys.logical_nulls().map_or_else(|| BooleanBuffer::new_set(keys.len()), NullBuffer::into_inner);
            Ok(Coerced { keys: Arc::new(keys_null), missing: Some(missing).filter(BooleanBuffer::has_true) })
        }
        (Struct(_), Struct(fields)) => {
            let keys = keys.as_struct();
            let columns = keys.columns().iter().zip(fields).map(|(column, field)| coerce(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let missing =
                columns.iter().filter_map(|column| column.missing.as_ref()).fold(None, |all, missing| match all {
                    None => Some(missing.clone()),
                    Some(all) => Some(&all | missing),
                });
            let missing = missing.map(|missing| match keys.nulls() {
                Some(valid) => &missing & valid.inner(),
                None => missing,
            });
            let columns = columns.into_iter().map(|column| column.keys).collect();
            let nulls = keys.nulls().cloned();
            let keys = StructArray::try_new_with_length(fields.clone(), columns, nulls, keys.len())?;
            Ok(Coerced { keys: Arc::new(keys), missing })
        }
        (List(_), List(field)) => list::<i32>(keys, field),
        (LargeList(_), LargeList(field)) => list::<i64>(keys, field),
        (ListView(_), ListView(field)) => list_view::<i32>(keys, field),
        (LargeListView(_), LargeListView(field)) => list_view::<i64>(keys, field),
        (FixedSizeList(_, _), FixedSizeList(field, size)) => {
            let keys = keys.as_fixed_size_list();
            let values = coerce(keys.values(), field.data_type())?;
            let width = *size as usize;
            let missing = any_missing(&values, keys.nulls(), keys.len(), |i| (i * width, width));
            let nulls = keys.nulls().cloned();
            let keys = FixedSizeListArray::try_new_with_length(field.clone(), *size, values.keys, nulls, keys.len())?;
            Ok(Coerced { keys: Arc::new(keys), missing })
        }
        (Timestamp(from, _), Timestamp(to, _)) | (Duration(from), Duration(to)) => {
            rescale_time(keys, target, *from, *to)
        }
        (Time32(from) | Time64(from), Time32(to) | Time64(to)) => rescale_time(keys, target, *from, *to),
        (from, to) if from.is_decimal() && to.is_decimal() => rescale_decimal(keys, target),
        // Integers keep their value, strings and bytes their bytes.
        (_, to) => cast(keys, to),
    }
}

fn cast(keys: &ArrayRef, target: &DataType) -> Result<Coerced> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    Ok(Coerced::nulls_are_missing(cast_with_options(keys, target, &safe)?, keys))
}

/// The values at `positions`, each converted once.
fn pick(positions: &UInt64Array, values: &ArrayRef, target: &DataType) -> Result<Coerced> {
    let values = coerce(values, target)?;
    let keys = take(&values.keys, positions, None)?;
    let missing = values.missing.map(|missing| {
        BooleanBuffer::collect_bool(positions.len(), |i| {
            positions.is_valid(i) && missing.value(positions.value(i) as usize)
        })
    });
    Ok(Coerced { keys, missing })
}

/// The values of a dictionary or run-end encoded array, and the position of each row's value among them (null where the row is).
/// `None` for other arrays.
#[allow(clippy::unnecessary_cast)] // the macro makes one arm for each key type, UInt64 among them
pub(crate) fn positions(array: &ArrayRef) -> Result<Option<(UInt64Array, ArrayRef)>> {
    Ok(match array.data_type() {
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => {
                // The code of a null row may be any number.
                let positions = array.keys().values().iter().map(|&key| key as u64).collect();
                Some((UInt64Array::new(positions, array.keys().nulls().cloned()), array.values().clone()))
            },
            other => return internal_err!("a dictionary of type {other}"),
        ),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => Some(runs::<Int16Type>(array)?),
            DataType::Int32 => Some(runs::<Int32Type>(array)?),
            _ => Some(runs::<Int64Type>(array)?),
        },
        _ => None,
    })
}

fn runs<R: RunEndIndexType>(array: &ArrayRef) -> Result<(UInt64Array, ArrayRef)> {
    let Some(array) = array.as_any().downcast_ref::<RunArray<R>>() else {
        return internal_err!("run-end encoded keys of type {}", array.data_type());
    };
    let first = array.run_ends().get_start_physical_index();
    let mut positions = Vec::with_capacity(array.len());
    let offset = array.offset();
    for (run, end) in array.run_ends().values().iter().enumerate().skip(first) {
        // An empty slice starts at run 0, whatever its offset.
        if positions.len() == array.len() {
            break;
        }
        positions.resize((end.as_usize() - offset).min(array.len()), run as u64);
    }
    Ok((UInt64Array::new(positions.into(), None), array.values().clone()))
}

/// Set for the lists that hold a missing value; `range` gives the start and length of a list among `values`.
fn any_missing(
    values: &Coerced,
    nulls: Option<&NullBuffer>,
    len: usize,
    range: impl Fn(usize) -> (usize, usize),
) -> Option<BooleanBuffer> {
    let missing = values.missing.as_ref()?;
    let holds = |i: usize| {
        let (start, len) = range(i);
        nulls.is_none_or(|nulls| nulls.is_valid(i)) && missing.slice(start, len).has_true()
    };
    Some(BooleanBuffer::collect_bool(len, holds))
}

fn list<O: OffsetSizeTrait>(keys: &ArrayRef, field: &FieldRef) -> Result<Coerced> {
    let keys = keys.as_list::<O>();
    let values = coerce(keys.values(), field.data_type())?;
    let at = |i: usize| (keys.value_offsets()[i].as_usize(), keys.value_length(i).as_usize());
    let missing = any_missing(&values, keys.nulls(), keys.len(), at);
    let (offsets, nulls) = (keys.offsets().clone(), keys.nulls().cloned());
    let keys = GenericListArray::<O>::try_new(field.clone(), offsets, values.keys, nulls)?;
    Ok(Coerced { keys: Arc::new(keys), missing })
}

fn list_view<O: OffsetSizeTrait>(keys: &ArrayRef, field: &FieldRef) -> Result<Coerced> {
    let keys = keys.as_list_view::<O>();
    let values = coerce(keys.values(), field.data_type())?;
    let at = |i: usize| (keys.value_offset(i).as_usize(), keys.value_size(i).as_usize());
    let missing = any_missing(&values, keys.nulls(), keys.len(), at);
    let (offsets, sizes, nulls) = (keys.offsets().clone(), keys.sizes().clone(), keys.nulls().cloned());
    let keys = GenericListViewArray::<O>::try_new(field.clone(), offsets, sizes, values.keys, nulls)?;
    Ok(Coerced { keys: Arc::new(keys), missing })
}

/// How many of `unit` are in a second.
fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn rescale_time(keys: &ArrayRef, target: &DataType, from: TimeUnit, to: TimeUnit) -> Result<Coerced> {
    let (from, to) = (per_second(from), per_second(to));
    let scaled = |value: i64| match to >= from {
        true => value.checked_mul(to / from),
        false => (value % (from / to) == 0).then(|| value / (from / to)),
    };
    let narrow = |data_type: &DataType| matches!(data_type, DataType::Time32(_));
    let counts = if narrow(keys.data_type()) { cast(keys, &DataType::Int32)?.keys } else { keys.clone() };
    let counts = cast(&counts, &DataType::Int64)?.keys;
    let counts: Int64Array = counts.as_primitive::<Int64Type>().unary_opt(scaled);
    let counts: ArrayRef = Arc::new(counts);
    let counts = if narrow(target) { cast(&counts, &DataType::Int32)?.keys } else { counts };
    Ok(Coerced::nulls_are_missing(cast(&counts, target)?.keys, keys))
}

fn rescale_decimal(keys: &ArrayRef, target: &DataType) -> Result<Coerced> {
    let scale = |data_type: &DataType| match *data_type {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => s,
        _ => 0,
    };
    let up = i32::from(scale(target)) - i32::from(scale(keys.data_type()));
    let factor = i256::from_i128(10).checked_pow(up.unsigned_abs());
    let scaled = |value: i256| match factor {
        _ if value == i256::ZERO => Some(value),
        Some(factor) if up >= 0 => value.checked_mul(factor),
        Some(factor) => (value.checked_rem(factor)? == i256::ZERO).then(|| value.checked_div(factor))?,
        None => None,
    };
    let values: Vec<Option<i256>> = match keys.data_type() {
        DataType::Decimal32(..) => wide::<Decimal32Type>(keys, |v| i256::from_i128(v.into())),
        DataType::Decimal64(..) => wide::<Decimal64Type>(keys, |v| i256::from_i128(v.into())),
        DataType::Decimal128(..) => wide::<Decimal128Type>(keys, i256::from_i128),
        _ => wide::<Decimal256Type>(keys, |v| v),
    };
    let scaled = values.into_iter().map(|value| value.and_then(scaled));
    let coerced: ArrayRef = match *target {
        DataType::Decimal32(p, s) => decimals::<Decimal32Type>(scaled, p, s, |v| v.to_i128()?.try_into().ok())?,
        DataType::Decimal64(p, s) => decimals::<Decimal64Type>(scaled, p, s, |v| v.to_i128()?.try_into().ok())?,
        DataType::Decimal128(p, s) => decimals::<Decimal128Type>(scaled, p, s, |v| v.to_i128())?,
        DataType::Decimal256(p, s) => decimals::<Decimal256Type>(scaled, p, s, Some)?,
        _ => return internal_err!("decimals as {target}"),
    };
    Ok(Coerced::nulls_are_missing(coerced, keys))
}

fn wide<T: ArrowPrimitiveType>(keys: &ArrayRef, widen: impl Fn(T::Native) -> i256) -> Vec<Option<i256>> {
    keys.as_primitive::<T>().iter().map(|value| value.map(&widen)).collect()
}

fn decimals<T: DecimalType>(
    values: impl Iterator<Item = Option<i256>>,
    precision: u8,
    scale: i8,
    narrow: impl Fn(i256) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let values: PrimitiveArray<T> = values.map(|value| value.and_then(&narrow)).collect();
    Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BooleanArray, Decimal128Array, DictionaryArray, Int32Array, StringArray, TimestampMillisecondArray,
        TimestampSecondArray, UInt8Array,
    };

    use super::*;

    fn missing(coerced: &Coerced) -> Vec<usize> {
        coerced.missing.as_ref().map_or(vec![], |missing| missing.set_indices().collect())
    }

    fn coerced(keys: impl Array + 'static, target: DataType) -> Coerced {
        let keys: ArrayRef = Arc::new(keys);
        assert!(comparable(&target, keys.data_type()));
        coerce(&keys, &target).unwrap()
    }

    #[test]
    fn integers_keep_their_value_or_are_missing() {
        let keys = coerced(Int64Array::from(vec![Some(3), Some(-1), None, Some(300)]), DataType::UInt8);
        assert_eq!(missing(&keys), [1, 3]);
        assert_eq!(keys.keys.as_ref(), &UInt8Array::from(vec![Some(3), None, None, None]) as &dyn Array);
    }

    #[test]
    fn instants_are_never_cut() {
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let keys = coerced(TimestampMillisecondArray::from(vec![1_704_067_200_123, -1000, -1]), seconds);
        assert_eq!(missing(&keys), [0, 2]);
        assert_eq!(keys.keys.as_primitive::<arrow_array::types::TimestampSecondType>().value(1), -1);
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        assert_eq!(missing(&coerced(TimestampSecondArray::from(vec![i64::MAX, 1]), nanos)), [0]);
        let zoned = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        assert!(!comparable(&zoned, &DataType::Timestamp(TimeUnit::Second, None)));
    }

    #[test]
    fn decimals_compare_by_value() {
        let keys = Decimal128Array::from(vec![12_000, 100, -500, -501]).with_precision_and_scale(12, 4).unwrap();
        let keys = coerced(keys, DataType::Decimal128(10, 2));
        assert_eq!(missing(&keys), [3]);
        assert_eq!(keys.keys.as_primitive::<Decimal128Type>().values()[..3], [120, 1, -5]);
    }

    #[test]
    fn dictionaries_and_structs_are_read_by_their_values() {
        let values = StringArray::from(vec![Some("a"), None, Some("b")]);
        let keys = DictionaryArray::<Int32Type>::new(
            Int32Array::from(vec![Some(2), None, Some(1), Some(0)]),
            Arc::new(values),
        );
        let keys = coerced(keys, DataType::Utf8);
        assert_eq!(keys.keys.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("b"), None, None, Some("a")]);
        let field = |data_type| Field::new("x", data_type, true);
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(1 << 40), None]));
        let nulls = NullBuffer::from(vec![true, true, false]);
        let keys = StructArray::new(vec![field(DataType::Int64)].into(), vec![wide], Some(nulls));
        let keys = coerced(keys, DataType::Struct(vec![field(DataType::Int32)].into()));
        assert_eq!(missing(&keys), [1]);
        assert_eq!(BooleanArray::from(keys.keys.nulls().unwrap().inner().clone()).true_count(), 2);
    }
}
