//! Random arrays of every type, and their values in plain form: what tests compare with, never with Arrow's kernels.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, GenericByteArray, GenericListArray,
    GenericListViewArray, Int16Array, Int32Array, Int64Array, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray,
    RunArray, StructArray, UnionArray, downcast_run_array, make_array,
};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode};

/// SplitMix64: the same arrays for the same seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

pub(crate) fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("item", data_type, true))
}

pub(crate) fn fields<const N: usize>(types: [DataType; N]) -> Fields {
    types.into_iter().enumerate().map(|(i, t)| Field::new(format!("f{i}"), t, true)).collect()
}

pub(crate) fn dictionary(key: DataType, values: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(values))
}

pub(crate) fn run_ends(ends: DataType, values: DataType) -> DataType {
    DataType::RunEndEncoded(Arc::new(Field::new("run_ends", ends, false)), Arc::new(Field::new("values", values, true)))
}

pub(crate) fn map(values: DataType) -> DataType {
    let entries = vec![Field::new("key", DataType::Utf8, false), Field::new("value", values, true)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false)
}

pub(crate) fn union<const N: usize>(mode: UnionMode, types: [DataType; N]) -> DataType {
    let fields = types.into_iter().enumerate().map(|(i, t)| (3 * i as i8 + 2, Field::new(format!("u{i}"), t, true)));
    DataType::Union(UnionFields::try_new(fields.clone().map(|(id, _)| id), fields.map(|(_, f)| f)).unwrap(), mode)
}

/// A union without a nullable child.
pub(crate) fn solid_union(mode: UnionMode) -> DataType {
    let field = |(id, data_type)| (id, Arc::new(Field::new(format!("s{id}"), data_type, false)));
    DataType::Union([(0, DataType::Int8), (5, DataType::Utf8)].into_iter().map(field).collect(), mode)
}

/// Every type that is no combination of others.
pub(crate) fn flat_types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
    ];
    types.extend([0, 3, 16].map(FixedSizeBinary));
    types.extend([Decimal32(9, 2), Decimal64(18, -1), Decimal128(38, 10), Decimal256(76, 4)]);
    types.extend([Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)]);
    types.extend([Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)]);
    types.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.extend([Duration(unit), Timestamp(unit, None), Timestamp(unit, Some("Europe/Berlin".into()))]);
    }
    types.extend([1, 2, 4, 8].map(FixedSizeBinary));
    types
}

/// Each way to combine types, around `inner` and the like.
pub(crate) fn nested_types(inner: &DataType) -> Vec<DataType> {
    use DataType::*;
    let (a, b) = (|| inner.clone(), || item(inner.clone()));
    vec![
        dictionary(Int8, a()),
        dictionary(UInt8, a()),
        dictionary(UInt16, a()),
        dictionary(Int64, a()),
        run_ends(Int16, a()),
        run_ends(Int32, a()),
        run_ends(Int64, a()),
        List(b()),
        LargeList(b()),
        ListView(b()),
        LargeListView(b()),
        FixedSizeList(b(), 0),
        FixedSizeList(b(), 2),
        Struct(fields([a(), Int32])),
        Struct(Fields::empty()),
        map(a()),
        union(UnionMode::Sparse, [a(), Utf8]),
        union(UnionMode::Dense, [Int32, a(), Null]),
        Struct(fields([solid_union(UnionMode::Sparse), a()])),
        FixedSizeList(item(solid_union(UnionMode::Dense)), 2),
    ]
}

/// A type of any depth up to `depth`.
pub(crate) fn any_type(rng: &mut Rng, depth: usize) -> DataType {
    if depth == 0 || rng.below(3) == 0 {
        return rng.pick(&flat_types());
    }
    let inner = any_type(rng, depth - 1);
    let nested = nested_types(&inner);
    // Arrow dictionaries of nested values are valid, but few readers know them.
    let plain = !inner.is_nested() && !matches!(inner, DataType::Dictionary(_, _));
    loop {
        let data_type = rng.pick(&nested);
        if plain || !matches!(data_type, DataType::Dictionary(_, _) | DataType::RunEndEncoded(_, _)) {
            return data_type;
        }
    }
}

/// `rows` random rows as a slice of more, values under nulls as random as any; children are slices too.
pub(crate) fn array(data_type: &DataType, rows: usize, rng: &mut Rng) -> ArrayRef {
    field_array(&Field::new("", data_type.clone(), true), rows, rng)
}

fn field_array(field: &Field, rows: usize, rng: &mut Rng) -> ArrayRef {
    let (before, after) = if rng.flip() { (rng.below(4), rng.below(3)) } else { (0, 0) };
    let whole = before + rows + after;
    let share = if field.is_nullable() { rng.pick(&[0, 0, 3, 6]) } else { 0 };
    let nulls = (share > 0).then(|| NullBuffer::from_iter((0..whole).map(|_| rng.below(10) >= share)));
    unsliced(field.data_type(), whole, nulls, rng).slice(before, rows)
}

const TEXTS: [&str; 10] =
    ["", "a", "b", "ab", "a\0", "twelve bytes", "thirteen byte", "thirteen bytf", "a text of more than one block", "ü"];

/// Bytes of one fixed-width value; few different ones, powers of ten so that scaled types meet.
fn fixed(data_type: &DataType, width: usize, rng: &mut Rng) -> Vec<u8> {
    let floats = |values: &[u64], rng: &mut Rng| rng.pick(values).to_le_bytes()[..width].to_vec();
    match data_type {
        // 0.0, -0.0, two NaN, 1.0, -1.0, infinity.
        DataType::Float16 => floats(&[0, 0x8000, 0x7e00, 0xfe01, 0x3c00, 0xbc00, 0x7c00], rng),
        DataType::Float32 => floats(&[0, 0x8000_0000, 0x7fc0_0000, 0xffc0_0001, 0x3f80_0000, 0xbf80_0000], rng),
        DataType::Float64 => {
            let nans = [f64::NAN.to_bits(), !0];
            floats(&[0, 1 << 63, nans[0], nans[1], 1f64.to_bits(), (-1f64).to_bits(), f64::INFINITY.to_bits()], rng)
        }
        _ => {
            let value: i64 = rng.pick(&[-1000, -10, -1, 0, 1, 10, 100, 1000, 1_000_000]);
            i256::from(value).to_le_bytes().into_iter().cycle().take(width).collect()
        }
    }
}

fn lengths(rows: usize, rng: &mut Rng) -> Vec<usize> {
    (0..rows).map(|_| rng.below(4)).collect()
}

fn unsliced(data_type: &DataType, rows: usize, nulls: Option<NullBuffer>, rng: &mut Rng) -> ArrayRef {
    use DataType::*;
    let width = match data_type {
        FixedSizeBinary(width) => Some(*width as usize),
        other => other.primitive_width(),
    };
    if let Some(width) = width {
        let mut values = MutableBuffer::new(rows * width);
        // At any address that the type allows.
        let alignment = match data_type {
            FixedSizeBinary(_) => 1,
            Interval(IntervalUnit::DayTime) => 4,
            Interval(IntervalUnit::MonthDayNano) => 8,
            _ => 16,
        };
        let shift = rng.below(3) * alignment;
        values.extend_zeros(shift);
        (0..rows).for_each(|_| values.extend_from_slice(&fixed(data_type, width, rng)));
        let values = Buffer::from(values).slice(shift);
        let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(values).nulls(nulls);
        return make_array(data.build().unwrap());
    }
    match data_type {
        Null => Arc::new(NullArray::new(rows)),
        Boolean => Arc::new(BooleanArray::new((0..rows).map(|_| rng.flip()).collect(), nulls)),
        Utf8 => bytes::<Utf8Type>(rows, nulls, rng),
        LargeUtf8 => bytes::<LargeUtf8Type>(rows, nulls, rng),
        Binary => bytes::<BinaryType>(rows, nulls, rng),
        LargeBinary => bytes::<LargeBinaryType>(rows, nulls, rng),
        Utf8View => {
            let mut views = StringViewBuilder::new().with_fixed_block_size(64);
            (0..rows).for_each(|_| views.append_value(rng.pick(&TEXTS)));
            let (views, buffers, _) = views.finish().into_parts();
            Arc::new(arrow_array::StringViewArray::new(views, buffers, nulls))
        }
        BinaryView => {
            let mut views = BinaryViewBuilder::new().with_fixed_block_size(64);
            (0..rows).for_each(|_| views.append_value(rng.pick(&TEXTS)));
            let (views, buffers, _) = views.finish().into_parts();
            Arc::new(arrow_array::BinaryViewArray::new(views, buffers, nulls))
        }
        List(field) => list::<i32>(field, rows, nulls, rng),
        LargeList(field) => list::<i64>(field, rows, nulls, rng),
        ListView(field) => list_view::<i32>(field, rows, nulls, rng),
        LargeListView(field) => list_view::<i64>(field, rows, nulls, rng),
        FixedSizeList(field, size) => {
            let values = field_array(field, rows * *size as usize, rng);
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, nulls, rows).unwrap())
        }
        Struct(fields) => {
            let columns = fields.iter().map(|field| field_array(field, rows, rng)).collect();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows).unwrap())
        }
        Map(entries, ordered) => {
            let lengths = lengths(rows, rng);
            let values = field_array(entries, lengths.iter().sum(), rng);
            let offsets = OffsetBuffer::from_lengths(lengths);
            let values = values.as_struct().clone();
            Arc::new(MapArray::try_new(entries.clone(), offsets, values, nulls, *ordered).unwrap())
        }
        Union(fields, mode) => {
            let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
            let type_ids: Vec<i8> = (0..rows).map(|_| rng.pick(&ids)).collect();
            let mut used = [0; 128];
            let at = |id: &i8| {
                used[*id as usize] += 1;
                used[*id as usize] - 1
            };
            let offsets: Vec<i32> = type_ids.iter().map(at).collect();
            let dense = *mode == UnionMode::Dense;
            let len = |id: i8| if dense { used[id as usize] as usize } else { rows };
            let children = fields.iter().map(|(id, field)| field_array(field, len(id), rng)).collect();
            let offsets = dense.then(|| ScalarBuffer::from(offsets));
            Arc::new(UnionArray::try_new(fields.clone(), type_ids.into(), offsets, children).unwrap())
        }
        Dictionary(key, values) => {
            // Many of few different values: keys of 8 bits cannot number those of several arrays.
            let count = rng.pick(&[1, 3, 60]);
            let values = array(values, count, rng);
            macro_rules! keys {
                ($t:ty) => {{
                    let key = |row| {
                        let garbage = nulls.as_ref().is_some_and(|nulls: &NullBuffer| nulls.is_null(row));
                        if garbage { 100 } else { rng.below(values.len()) as <$t as ArrowPrimitiveType>::Native }
                    };
                    let keys: Vec<_> = (0..rows).map(key).collect();
                    let keys = PrimitiveArray::<$t>::new(keys.into(), nulls);
                    Arc::new(DictionaryArray::<$t>::try_new(keys, values).unwrap()) as ArrayRef
                }};
            }
            match key.as_ref() {
                Int8 => keys!(Int8Type),
                UInt8 => keys!(UInt8Type),
                UInt16 => keys!(UInt16Type),
                Int32 => keys!(Int32Type),
                _ => keys!(Int64Type),
            }
        }
        RunEndEncoded(ends, values) => {
            let mut run_ends: Vec<usize> = Vec::new();
            while run_ends.last().copied().unwrap_or(0) < rows {
                run_ends.push((run_ends.last().copied().unwrap_or(0) + 1 + rng.below(3)).min(rows));
            }
            let values = field_array(values, run_ends.len(), rng);
            match ends.data_type() {
                Int16 => {
                    let ends = Int16Array::from_iter_values(run_ends.iter().map(|&end| end as i16));
                    Arc::new(RunArray::<Int16Type>::try_new(&ends, &values).unwrap())
                }
                Int32 => {
                    let ends = Int32Array::from_iter_values(run_ends.iter().map(|&end| end as i32));
                    Arc::new(RunArray::<Int32Type>::try_new(&ends, &values).unwrap())
                }
                _ => {
                    let ends = Int64Array::from_iter_values(run_ends.iter().map(|&end| end as i64));
                    Arc::new(RunArray::<Int64Type>::try_new(&ends, &values).unwrap())
                }
            }
        }
        other => panic!("no random arrays of type {other}"),
    }
}

fn bytes<T: ByteArrayType>(rows: usize, nulls: Option<NullBuffer>, rng: &mut Rng) -> ArrayRef {
    let texts: Vec<&str> = (0..rows).map(|_| rng.pick(&TEXTS)).collect();
    let offsets = OffsetBuffer::<T::Offset>::from_lengths(texts.iter().map(|text| text.len()));
    Arc::new(GenericByteArray::<T>::new(offsets, Buffer::from(texts.concat().into_bytes()), nulls))
}

fn list<O: OffsetSizeTrait>(field: &FieldRef, rows: usize, nulls: Option<NullBuffer>, rng: &mut Rng) -> ArrayRef {
    let lengths = lengths(rows, rng);
    let values = field_array(field, lengths.iter().sum(), rng);
    Arc::new(GenericListArray::<O>::new(field.clone(), OffsetBuffer::from_lengths(lengths), values, nulls))
}

/// Views in any order, that overlap and leave gaps.
fn list_view<O: OffsetSizeTrait>(field: &FieldRef, rows: usize, nulls: Option<NullBuffer>, rng: &mut Rng) -> ArrayRef {
    let len = rng.below(8);
    let values = field_array(field, len, rng);
    let offsets: Vec<usize> = (0..rows).map(|_| rng.below(len + 1)).collect();
    let sizes: Vec<O> = offsets.iter().map(|&at| O::usize_as(rng.below(len - at + 1))).collect();
    let offsets: Vec<O> = offsets.into_iter().map(O::usize_as).collect();
    Arc::new(GenericListViewArray::<O>::new(field.clone(), offsets.into(), sizes.into(), values, nulls))
}

/// A value in plain form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    /// As stored.
    Bytes(Vec<u8>),
    /// `.0 * 10^.1`, without trailing zeros in `.0`.
    Number(i256, i32),
    List(Vec<Value>),
    /// Of a union: type id and value.
    Tagged(i8, Box<Value>),
}

/// The value at `row`: with `keys` as keys are compared (numbers by value, one NaN, one zero), else its stored bits.
pub(crate) fn value(array: &dyn Array, row: usize, keys: bool) -> Value {
    use DataType::*;
    if array.is_null(row) {
        return Value::Null;
    }
    let list = |values: ArrayRef| Value::List((0..values.len()).map(|i| value(&values, i, keys)).collect());
    let data_type = array.data_type();
    match data_type {
        Null => Value::Null,
        Boolean => Value::Bytes(vec![array.as_boolean().value(row).into()]),
        Utf8 => Value::Bytes(array.as_string::<i32>().value(row).into()),
        LargeUtf8 => Value::Bytes(array.as_string::<i64>().value(row).into()),
        Utf8View => Value::Bytes(array.as_string_view().value(row).into()),
        Binary => Value::Bytes(array.as_binary::<i32>().value(row).into()),
        LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).into()),
        BinaryView => Value::Bytes(array.as_binary_view().value(row).into()),
        List(_) => list(array.as_list::<i32>().value(row)),
        LargeList(_) => list(array.as_list::<i64>().value(row)),
        ListView(_) => list(array.as_list_view::<i32>().value(row)),
        LargeListView(_) => list(array.as_list_view::<i64>().value(row)),
        FixedSizeList(_, _) => list(array.as_fixed_size_list().value(row)),
        Map(_, _) => list(Arc::new(array.as_map().value(row))),
        Struct(_) => Value::List(array.as_struct().columns().iter().map(|child| value(child, row, keys)).collect()),
        Union(_, _) => {
            let array = array.as_union();
            let id = array.type_id(row);
            match value(array.child(id), array.value_offset(row), keys) {
                Value::Null => Value::Null,
                value => Value::Tagged(id, Box::new(value)),
            }
        }
        Dictionary(_, _) => {
            let array = array.as_any_dictionary();
            value(array.values(), array.normalized_keys()[row], keys)
        }
        RunEndEncoded(_, _) => downcast_run_array! {
            array => value(array.values(), array.get_physical_index(row), keys),
            _ => unreachable!()
        },
        _ => {
            let data = array.to_data();
            let width = match data_type {
                FixedSizeBinary(width) => *width as usize,
                other => other.primitive_width().unwrap(),
            };
            let at = (data.offset() + row) * width;
            let bytes = data.buffers()[0][at..at + width].to_vec();
            if keys { number(data_type, bytes) } else { Value::Bytes(bytes) }
        }
    }
}

fn number(data_type: &DataType, bytes: Vec<u8>) -> Value {
    use DataType::*;
    let time = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => -3,
        TimeUnit::Microsecond => -6,
        TimeUnit::Nanosecond => -9,
    };
    let exponent = match data_type {
        Decimal32(_, s) | Decimal64(_, s) | Decimal128(_, s) | Decimal256(_, s) => -i32::from(*s),
        Timestamp(unit, _) | Time32(unit) | Time64(unit) | Duration(unit) => time(unit),
        other if other.is_integer() => 0,
        Float16 | Float32 | Float64 => return Value::Bytes(float(data_type, bytes)),
        _ => return Value::Bytes(bytes),
    };
    let negative = data_type.is_signed_integer() || !data_type.is_integer();
    let fill = if negative && bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 32];
    wide[..bytes.len()].copy_from_slice(&bytes);
    let (mut value, mut exponent, ten) = (i256::from_le_bytes(wide), exponent, i256::from(10));
    if value == i256::ZERO {
        return Value::Number(value, 0);
    }
    while value.wrapping_rem(ten) == i256::ZERO {
        (value, exponent) = (value.wrapping_div(ten), exponent + 1);
    }
    Value::Number(value, exponent)
}

/// The bits of all NaN as one, of -0.0 as those of 0.0.
fn float(data_type: &DataType, bytes: Vec<u8>) -> Vec<u8> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(&bytes);
    let bits = u64::from_le_bytes(wide);
    let (sign, infinity) = match data_type {
        DataType::Float16 => (1 << 15, 0x7c00),
        DataType::Float32 => (1 << 31, 0x7f80_0000),
        _ => (1 << 63, 0x7ff0 << 48),
    };
    match bits & !sign {
        0 => vec![0],
        magnitude if magnitude > infinity => vec![255],
        _ => bytes,
    }
}
