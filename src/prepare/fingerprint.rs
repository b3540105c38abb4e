//! Identity of a build's contents: a hash of its rows in any order, its schema, keys and null equality.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, UnionMode};

use super::BuildSpec;
use crate::cancel::Cancel;
use crate::columns::positions;
use crate::columns::{encode_schema, take_at};
use crate::error::{Result, not_supported};

/// Rows hashed at a time, and about how many bytes: bounds the memory that it takes and the time between two looks at the
/// cancel signal.
const PIECE: usize = 4096;
const PIECE_BYTES: usize = 1 << 20;

/// The hash of a null, and what others begin with. Nothing here may change: files hold fingerprints.
const NULL: u128 = 0x6e75_6c6c_9e37_79b9_7f4a_7c15_d6e8_feb9;
const ROW: u128 = 0x726f_7773_a076_1d64_78bd_642f_e703_7ed1;
const ORDER: u128 = 0x6f72_6465_a076_1d64_78bd_642f_a0b4_28db;
const HEAD: u128 = 0x6865_6164_a0b4_28db_9e37_79b9_7f4a_7c15;

/// A fingerprint, and the part of it that the rows make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) value: u128,
    /// The sum of the hashes of all rows, modulo 2^128: what rows add when they come, they take away when they go.
    pub(crate) row_sum: u128,
}

impl Fingerprint {
    /// The fingerprint of these rows. Their order does not matter, their number does.
    pub(crate) fn of_rows(spec: &BuildSpec, rows: &RecordBatch, cancel: &Cancel) -> Result<Self> {
        let head = head(spec)?;
        Ok(Self::with_head(head, rows.num_rows(), row_sum(rows, cancel)?))
    }

    /// The fingerprint of `rows` rows whose hashes have this sum.
    pub(crate) fn of_sum(spec: &BuildSpec, rows: usize, row_sum: u128) -> Result<Self> {
        Ok(Self::with_head(head(spec)?, rows, row_sum))
    }

    fn with_head(head: u128, rows: usize, row_sum: u128) -> Self {
        Self { value: mix(mix(head, rows as u128), row_sum), row_sum }
    }
}

/// The hash of the schema, the keys and their null equality.
fn head(spec: &BuildSpec) -> Result<u128> {
    let Some(schema) = encode_schema(spec.schema()) else {
        return not_supported!("a schema that Arrow IPC does not carry has no fingerprint: {}", spec.schema());
    };
    let mut state = mix_bytes(HEAD, &schema);
    for (&key, null_equality) in spec.keys().iter().zip(spec.null_equality()) {
        state = mix(state, (key as u128) << 1 | u128::from(null_equality.nulls_equal()));
    }
    if let Some(order) = spec.order() {
        state = mix(mix(state, ORDER), order as u128);
    }
    Ok(state)
}

fn row_sum(rows: &RecordBatch, cancel: &Cancel) -> Result<u128> {
    let mut sum = 0u128;
    let mut hashes = Vec::new();
    let row_bytes = rows.get_array_memory_size() / rows.num_rows().max(1);
    let piece = (PIECE_BYTES / row_bytes.max(1)).clamp(16, PIECE);
    for start in (0..rows.num_rows()).step_by(piece) {
        let len = piece.min(rows.num_rows() - start);
        hashes.clear();
        hashes.resize(len, ROW);
        for column in rows.columns() {
            cancel.check()?;
            mix_column(&column.slice(start, len), &mut hashes)?;
        }
        // A sum does not depend on the order of rows; mixing once more keeps rows from cancelling each other out.
        sum = hashes.iter().fold(sum, |sum, &hash| sum.wrapping_add(mix(hash, ROW)));
    }
    Ok(sum)
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Two halves, each of all of both arguments.
#[inline]
fn mix(state: u128, value: u128) -> u128 {
    let (a, b) = (state as u64, (state >> 64) as u64);
    let (v, w) = (value as u64, (value >> 64) as u64);
    let low = fold(a ^ v ^ 0x9e37_79b9_7f4a_7c15, b ^ w.rotate_left(29) ^ 0xd6e8_feb8_6659_fd93);
    let high = fold(a.rotate_left(32) ^ w ^ 0xa076_1d64_78bd_642f, b ^ v.rotate_left(17) ^ 0xe703_7ed1_a0b4_28db);
    u128::from(low ^ b.rotate_left(11)) | u128::from(high ^ a.rotate_left(47)) << 64
}

fn mix_bytes(state: u128, bytes: &[u8]) -> u128 {
    let state = bytes.chunks(16).fold(state, |state, chunk| {
        let mut block = [0; 16];
        block[..chunk.len()].copy_from_slice(chunk);
        mix(state, u128::from_le_bytes(block))
    });
    mix(state, bytes.len() as u128)
}

fn is_null(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_some_and(|nulls| nulls.is_null(row))
}

/// Mixes the value of each row into its hash; the value under a null does not count.
fn mix_column(array: &ArrayRef, hashes: &mut [u128]) -> Result<()> {
    if let Some((positions, values)) = positions(array)? {
        let positions = positions.iter().map(|position| position.map(|position| position as usize));
        return mix_column(&take_at(&values, positions)?, hashes);
    }
    let nulls = array.nulls();
    let mut each = |value: &dyn Fn(usize, u128) -> u128| {
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = if is_null(nulls, row) { mix(*hash, NULL) } else { value(row, *hash) };
        }
    };
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            each(&|row, hash| mix_bytes(hash, array.value(row).as_ref()))
        }};
    }
    match array.data_type() {
        DataType::Null => each(&|_, hash| mix(hash, NULL)),
        DataType::Boolean => each(&|row, hash| mix(hash, array.as_boolean().value(row).into())),
        DataType::Utf8 => bytes!(array.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(array.as_string::<i64>()),
        DataType::Utf8View => bytes!(array.as_string_view()),
        DataType::Binary => bytes!(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(array.as_binary::<i64>()),
        DataType::BinaryView => bytes!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        DataType::List(_) => lists(array.as_list::<i32>().values(), nulls, hashes, list(array.as_list::<i32>()))?,
        DataType::LargeList(_) => lists(array.as_list::<i64>().values(), nulls, hashes, list(array.as_list::<i64>()))?,
        DataType::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            let offsets = map.value_offsets();
            lists(&entries, nulls, hashes, |row| offsets[row] as usize..offsets[row + 1] as usize)?;
        }
        DataType::FixedSizeList(_, size) => {
            let size = *size as usize;
            lists(array.as_fixed_size_list().values(), nulls, hashes, |row| row * size..(row + 1) * size)?;
        }
        DataType::ListView(_) => list_views::<i32>(array, hashes)?,
        DataType::LargeListView(_) => list_views::<i64>(array, hashes)?,
        DataType::Struct(_) => {
            let before = nulls.map(|_| hashes.to_vec());
            array.as_struct().columns().iter().try_for_each(|column| mix_column(column, hashes))?;
            for (row, before) in before.into_iter().flatten().enumerate().filter(|&(row, _)| is_null(nulls, row)) {
                hashes[row] = mix(before, NULL);
            }
        }
        DataType::Union(fields, mode) => {
            let union = array.as_union();
            for (id, _) in fields.iter() {
                let rows: Vec<usize> = (0..array.len()).filter(|&row| union.type_id(row) == id).collect();
                let at = rows.iter().map(|&row| match mode {
                    UnionMode::Sparse => row,
                    UnionMode::Dense => union.value_offset(row),
                });
                let chosen = take_at(union.child(id), at.map(Some))?;
                let mut of_child: Vec<u128> = rows.iter().map(|&row| mix(hashes[row], id as u128)).collect();
                mix_column(&chosen, &mut of_child)?;
                rows.iter().zip(of_child).for_each(|(&row, hash)| hashes[row] = hash);
            }
        }
        other => {
            let Some(width) = other.primitive_width() else {
                return not_supported!("no fingerprint is defined for type {other}");
            };
            let data = array.to_data();
            let values = &data.buffers()[0][data.offset() * width..];
            let low = |row: usize| {
                let mut block = [0; 16];
                let len = width.min(16);
                block[..len].copy_from_slice(&values[row * width..row * width + len]);
                u128::from_le_bytes(block)
            };
            match width {
                0..=16 => each(&|row, hash| mix(hash, low(row))),
                _ => each(&|row, hash| mix_bytes(hash, &values[row * width..(row + 1) * width])),
            }
        }
    }
    Ok(())
}

fn list<O: OffsetSizeTrait>(array: &arrow_array::GenericListArray<O>) -> impl Fn(usize) -> Range<usize> + '_ {
    let offsets = array.value_offsets();
    |row| offsets[row].as_usize()..offsets[row + 1].as_usize()
}

fn list_views<O: OffsetSizeTrait>(array: &ArrayRef, hashes: &mut [u128]) -> Result<()> {
    let array = array.as_list_view::<O>();
    let (offsets, sizes) = (array.value_offsets(), array.value_sizes());
    let range = |row: usize| offsets[row].as_usize()..offsets[row].as_usize() + sizes[row].as_usize();
    lists(array.values(), array.nulls(), hashes, range)
}

/// Mixes lists in: the hash of each item, then their number.
fn lists(
    items: &ArrayRef,
    nulls: Option<&NullBuffer>,
    hashes: &mut [u128],
    range: impl Fn(usize) -> Range<usize>,
) -> Result<()> {
    // Values under nulls are not read.
    let live = (0..hashes.len()).filter(|&row| !is_null(nulls, row)).map(&range).filter(|range| !range.is_empty());
    let shown = live.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)).unwrap_or(0..0);
    let mut of_items = vec![ROW; shown.len()];
    mix_column(&items.slice(shown.start, shown.len()), &mut of_items)?;
    for (row, hash) in hashes.iter_mut().enumerate() {
        if is_null(nulls, row) {
            *hash = mix(*hash, NULL);
            continue;
        }
        let range = range(row);
        let list = if range.is_empty() { &[] } else { &of_items[range.start - shown.start..range.end - shown.start] };
        *hash = mix(list.iter().fold(*hash, |hash, &item| mix(hash, item)), list.len() as u128);
    }
    Ok(())
}
