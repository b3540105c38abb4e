//! The index of keys of any type and number: arrow-row encodes the key columns of a row as one byte string, equal keys as equal
//! strings. The distinct strings are stored one after the other; a hash table finds them by half of their hash.

use std::cell::Cell;
use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::ScalarBuffer;
use arrow_data::ArrayData;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::allocate::{admitted, bytes, held, release, scratch_size, with_capacity};
use super::frozen_table::{FrozenTable, LONG};
use super::hash::{self, SEEDS, scale, seed};
use super::hash_build::{Built, build};
use super::hits::ProbeChunk;
use super::key_chunk::KeyChunk;
use super::partition::KeySource;
use super::plain_rows::{EncodedChunk, PlainRows};
use super::{Hits, IndexContext, KeyRows, NONE, step_counter};
use crate::columns::floats::canonical;
use crate::columns::{Selection, Share, gather_shared, has_floats};
use crate::error::{Error, Result};
use crate::memory::Reservation;

/// A table of encoded keys, and the keys.
#[derive(Debug)]
pub(super) struct RowsIndex {
    pub(super) encoder: Encoder,
    pub(super) table: FrozenTable<1>,
    pub(super) seed: u64,
    pub(super) collide: u64,
    pub(super) keys: EncodedKeys,
}

/// Encodes the key columns of a range of rows.
#[derive(Debug)]
pub(super) struct Encoder {
    converter: RowConverter,
    nulls_equal: Vec<bool>,
}

/// The type in which a key column is encoded: for a dictionary, the type of its values.
fn encoded_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

impl Encoder {
    fn new(columns: &[ArrayRef], nulls_equal: &[bool]) -> Result<Self> {
        Self::of_types(columns.iter().map(|column| column.data_type()), nulls_equal)
    }

    pub(super) fn of_types<'a>(types: impl Iterator<Item = &'a DataType>, nulls_equal: &[bool]) -> Result<Self> {
        let fields = types.map(|data_type| SortField::new(encoded_type(data_type).clone()));
        Ok(Self { converter: RowConverter::new(fields.collect())?, nulls_equal: nulls_equal.to_vec() })
    }

    /// Encodes rows `start..start + len`, and fills `chunk` with those that no null keeps from matching.
    pub(super) fn encode(
        &self,
        columns: &[ArrayRef],
        start: usize,
        len: usize,
        chunk: &mut KeyChunk,
    ) -> Result<EncodedChunk> {
        let live = chunk.live(len);
        let mut parts = Vec::with_capacity(columns.len());
        for (column, nulls_equal) in columns.iter().zip(&self.nulls_equal) {
            let part = column.slice(start, len);
            if !nulls_equal && let Some(nulls) = part.logical_nulls() {
                live.iter_mut().zip(nulls.iter()).for_each(|(live, valid)| *live &= valid);
            }
            parts.push(canonical_keys(&part)?);
        }
        chunk.words(len);
        chunk.compact(start, len);
        Ok(match PlainRows::encode(&parts) {
            Some(rows) => EncodedChunk::Plain(rows),
            None => EncodedChunk::Converted(self.converter.convert_columns(&parts)?),
        })
    }
}

/// `array` with dictionaries decoded, all NaN as the same bits, and -0.0 as 0.0, at every level of nesting.
fn canonical_keys(array: &ArrayRef) -> Result<ArrayRef> {
    let decoded;
    let array = match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            decoded = take(dictionary.values(), dictionary.keys(), None)?;
            &decoded
        }
        None => array,
    };
    if !has_floats(array.data_type()) {
        return Ok(array.clone());
    }
    let data = array.to_data();
    if data.child_data().is_empty() {
        return Ok(make_array(canonical_data(&data)?));
    }
    // The children of a slice may hold the values of other rows too. A copy holds the values of its rows only.
    let rows: Vec<u32> = (0..array.len() as u32).collect();
    let copy = gather_shared(array, Selection::try_new(&rows, array.len())?, Share::Never)?;
    Ok(make_array(canonical_data(&copy.to_data())?))
}

fn canonical_data(data: &ArrayData) -> Result<ArrayData> {
    macro_rules! floats {
        ($t:ty, $nan:expr) => {{
            let array = make_array(data.clone());
            array.as_primitive::<$t>().unary::<_, $t>(|value| canonical(value, $nan)).into_data()
        }};
    }
    Ok(match data.data_type() {
        DataType::Float16 => floats!(Float16Type, <Float16Type as arrow_array::ArrowPrimitiveType>::Native::NAN),
        DataType::Float32 => floats!(Float32Type, f32::NAN),
        DataType::Float64 => floats!(Float64Type, f64::NAN),
        other if has_floats(other) => {
            let children = data.child_data().iter().map(canonical_data).collect::<Result<_>>()?;
            data.clone().into_builder().child_data(children).build()?
        }
        _ => data.clone(),
    })
}

/// The distinct encoded keys, one after the other.
#[derive(Debug)]
pub(super) struct EncodedKeys {
    pub(super) offsets: ScalarBuffer<u64>,
    pub(super) data: ScalarBuffer<u8>,
}

impl EncodedKeys {
    #[inline(always)]
    pub(super) fn value(&self, group: u32) -> &[u8] {
        let group = group as usize;
        &self.data[self.offsets[group] as usize..self.offsets[group + 1] as usize]
    }
}

/// The distinct keys as the input of the hash table: key number `n` is row `n`.
struct DistinctKeys<'a> {
    keys: &'a EncodedKeys,
    collide: u64,
}

impl KeySource<1> for DistinctKeys<'_> {
    fn all_live(&self) -> bool {
        true
    }

    fn hash(&self, seed: u64, start: usize, len: usize, chunk: &mut KeyChunk) {
        chunk.words(len);
        chunk.all(start, len);
        chunk.hash_live(|row| hash::collide(hash::bytes(self.keys.value(row), seed), self.collide));
    }

    fn lanes(&self, hash: u64, _: u32) -> [u32; 1] {
        [hash as u32]
    }

    fn lanes_in(&self, chunk: &KeyChunk, i: usize) -> [u32; 1] {
        [chunk.live_words()[i] as u32]
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.keys.value(a).cmp(self.keys.value(b))
    }
}

/// The distinct keys while they are collected, in the order in which they first appear.
///
/// The slots are an open hash table and not hashbrown's, because their size is known before: 6 bytes per row. A table of
/// hashbrown's needs up to 11.4 bytes per distinct key, and half as much again while it grows.
struct Collected {
    offsets: Vec<u64>,
    data: Vec<u8>,
    /// With a seed, an open hash table of group ids plus 1 (0 is a free slot). Without one, the group ids in the order of their
    /// keys.
    slots: Vec<u32>,
    seed: Option<u64>,
    collide: u64,
    walked: usize,
    looked_up: usize,
}

impl Collected {
    fn value(&self, group: u32) -> &[u8] {
        let group = group as usize;
        &self.data[self.offsets[group] as usize..self.offsets[group + 1] as usize]
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Removes all keys. Without a seed, keys will be found by bisection in place of hashing.
    fn restart(&mut self, seed: Option<u64>) {
        (self.seed, self.walked, self.looked_up) = (seed, 0, 0);
        self.offsets.truncate(1);
        self.data.clear();
        self.slots.fill(0);
    }

    /// The group of `key`, which is added if it is new. `None` where too many hashes are equal.
    fn group(&mut self, key: &[u8], retained: &mut Reservation) -> Result<Option<u32>> {
        let new = self.len() as u32;
        let Some(seed) = self.seed else {
            let known = &self.slots[..self.len()];
            return match known.binary_search_by(|&group| self.value(group).cmp(key)) {
                Ok(at) => Ok(Some(known[at])),
                Err(at) => {
                    self.slots.copy_within(at..new as usize, at + 1);
                    self.slots[at] = new;
                    self.push(key, retained)?;
                    Ok(Some(new))
                }
            };
        };
        let hash = hash::collide(hash::bytes(key, seed), self.collide);
        self.looked_up += 1;
        let mut slot = scale(hash, self.slots.len() as u64);
        while let Some(group) = self.slots[slot].checked_sub(1) {
            if self.value(group) == key {
                return Ok(Some(group));
            }
            self.walked += 1;
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
        self.slots[slot] = new + 1;
        self.push(key, retained)?;
        Ok(Some(new).filter(|_| self.walked <= LONG * (self.looked_up + LONG)))
    }

    fn push(&mut self, key: &[u8], retained: &mut Reservation) -> Result<()> {
        reserve(&mut self.data, key.len(), retained)?;
        reserve(&mut self.offsets, 1, retained)?;
        self.data.extend_from_slice(key);
        self.offsets.push(self.data.len() as u64);
        Ok(())
    }
}

/// Makes room for `more` values. Where they have to move, old and new memory are admitted together.
fn reserve<T: Copy>(values: &mut Vec<T>, more: usize, retained: &mut Reservation) -> Result<()> {
    if values.capacity() - values.len() < more {
        let capacity = (values.len() + more).max(values.capacity() / 2 * 3).max(64);
        move_to(values, capacity, retained)?;
    }
    Ok(())
}

fn move_to<T: Copy>(values: &mut Vec<T>, capacity: usize, retained: &mut Reservation) -> Result<()> {
    let mut larger = with_capacity(retained, capacity)?;
    larger.extend_from_slice(values);
    release(retained, std::mem::replace(values, larger));
    Ok(())
}

impl RowsIndex {
    /// Builds the index. Returns it with the groups and the number of keys.
    pub(super) fn build(
        columns: &[ArrayRef],
        nulls_equal: &[bool],
        context: IndexContext<'_>,
    ) -> Result<(Self, KeyRows, usize)> {
        let rows = columns[0].len();
        let encoder = Encoder::new(columns, nulls_equal)?;
        let collide = context.options.collide;
        let mut group_of: Vec<u32> = admitted(context.scratch, rows)?;
        let slots = admitted(context.scratch, rows / 2 * 3 + 2)?;
        let mut offsets = with_capacity(context.retained, 1)?;
        offsets.push(0);
        let mut keys = Collected { offsets, data: Vec::new(), slots, seed: None, collide, walked: 0, looked_up: 0 };
        for attempt in 0..=SEEDS {
            keys.restart((attempt < SEEDS).then(|| seed(attempt)));
            if collect(&encoder, columns, &mut keys, &mut group_of, context.retained, context.scratch, context.cancel)?
            {
                break;
            }
            step_counter::count(|| keys.walked);
        }
        step_counter::count(|| rows + keys.walked);
        release(context.scratch, std::mem::take(&mut keys.slots));
        let groups = KeyRows::from_group_of(&group_of, keys.len(), context.retained, context.cancel)?;
        release(context.scratch, group_of);
        let Collected { mut offsets, mut data, .. } = keys;
        let exact = (offsets.len(), data.len());
        move_to(&mut offsets, exact.0, context.retained)?;
        move_to(&mut data, exact.1, context.retained)?;
        let keys = EncodedKeys { offsets: offsets.into(), data: data.into() };
        let source = DistinctKeys { keys: &keys, collide };
        let Built { table, seed, num_keys, .. } = build(&source, exact.0 - 1, None, false, 1.25, context)?;
        Ok((Self { encoder, table, seed, collide, keys }, groups, num_keys))
    }

    pub(super) fn memory_size(&self) -> usize {
        self.table.memory_size() + held(&self.keys.offsets) + held(&self.keys.data)
    }

    pub(super) fn probe(&self, columns: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        let error = Cell::new(None);
        hits.probe_chunks(start, len, &RowsProbe { index: self, columns, error: &error });
        error.into_inner().map_or(Ok(()), Err)
    }
}

struct RowsProbe<'a> {
    index: &'a RowsIndex,
    columns: &'a [ArrayRef],
    error: &'a Cell<Option<Error>>,
}

impl ProbeChunk for RowsProbe<'_> {
    #[inline(always)]
    fn probe_chunk(&self, start: usize, len: usize, chunk: &mut KeyChunk, out: (&mut [u32], &mut [u32])) -> usize {
        let RowsIndex { encoder, table, seed, collide, keys } = self.index;
        let rows = match encoder.encode(self.columns, start, len, chunk) {
            Ok(rows) => rows,
            Err(error) => {
                self.error.set(Some(error));
                return 0;
            }
        };
        let key = |row: u32| rows.key(row as usize - start);
        chunk.hash_live(|row| hash::collide(hash::bytes(key(row), *seed), *collide));
        let touch = |group| keys.value(group).first().copied().unwrap_or(0);
        let equal = |group, row| keys.value(group) == key(row);
        table.probe_verified(chunk, touch, equal, |group, row| keys.value(group).cmp(key(row)), out)
    }
}

/// Collects all keys, and the group of each row. False where too many hashes are equal.
fn collect(
    encoder: &Encoder,
    columns: &[ArrayRef],
    keys: &mut Collected,
    group_of: &mut [u32],
    retained: &mut Reservation,
    scratch: &mut Reservation,
    cancel: &crate::cancel::Cancel,
) -> Result<bool> {
    let mut chunk = KeyChunk::default();
    group_of.fill(NONE);
    let held = scratch.size();
    for start in (0..group_of.len()).step_by(KeyChunk::ROWS) {
        cancel.check()?;
        let len = KeyChunk::ROWS.min(group_of.len() - start);
        let mut estimate = scratch_size(len, columns.len(), false)? + bytes::<u64>(len)?;
        for column in columns {
            // Strings are padded to blocks, which makes at most 10 bytes of 1. If the estimate is too low, it is corrected below.
            estimate += column.slice(start, len).to_data().get_slice_memory_size()?.saturating_mul(2) + 16 * len;
        }
        scratch.try_grow(estimate)?;
        let rows = encoder.encode(columns, start, len, &mut chunk)?;
        scratch.try_resize(held + estimate.max(rows.size()))?;
        for &row in chunk.live_rows() {
            match keys.group(rows.key(row as usize - start), retained)? {
                Some(group) => group_of[row as usize] = group,
                None => {
                    scratch.try_resize(held)?;
                    return Ok(false);
                }
            }
        }
        drop(rows);
        scratch.try_resize(held)?;
    }
    Ok(true)
}
