//! Keys of any type and number: every key is encoded as one byte string (arrow-row), equal keys to equal strings.

use arrow_array::{Array, ArrayRef};
use arrow_row::{RowConverter, Rows, SortField};
use hashbrown::HashTable;

use super::Hits;
use crate::error::Result;

/// Encoded keys in a hash table.
#[derive(Debug)]
pub(super) struct RowsIndex {
    converter: RowConverter,
    keys: Rows,
    table: HashTable<u32>,
    nulls_equal: Vec<bool>,
}

impl RowsIndex {
    /// Builds the index and answers the group of each build row, `NONE` for rows that no key indexes.
    pub(super) fn build(columns: &[ArrayRef], nulls_equal: &[bool], groups: &mut Vec<u32>) -> Result<Self> {
        let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let encoded = converter.convert_columns(columns)?;
        let mut this = Self {
            keys: converter.empty_rows(0, 0),
            converter,
            table: HashTable::new(),
            nulls_equal: nulls_equal.to_vec(),
        };
        for row in 0..encoded.num_rows() {
            if this.dropped(columns, row) {
                groups.push(super::NONE);
                continue;
            }
            let key = encoded.row(row);
            let hash = hash(key.as_ref());
            let group = match this.table.find(hash, |&g| this.keys.row(g as usize) == key) {
                Some(&group) => group,
                None => {
                    let group = this.keys.num_rows() as u32;
                    this.keys.push(key);
                    let keys = &this.keys;
                    this.table.insert_unique(hash, group, |&g| self::hash(keys.row(g as usize).as_ref()));
                    group
                }
            };
            groups.push(group);
        }
        Ok(this)
    }

    fn dropped(&self, columns: &[ArrayRef], row: usize) -> bool {
        columns.iter().zip(&self.nulls_equal).any(|(c, &equal)| !equal && c.is_null(row))
    }

    pub(super) fn num_keys(&self) -> usize {
        self.keys.num_rows()
    }

    pub(super) fn probe(&self, columns: &[ArrayRef], start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        let columns: Vec<ArrayRef> = columns.iter().map(|c| c.slice(start, len)).collect();
        let encoded = self.converter.convert_columns(&columns)?;
        for row in 0..len {
            if self.dropped(&columns, row) {
                continue;
            }
            let key = encoded.row(row);
            if let Some(&group) = self.table.find(hash(key.as_ref()), |&g| self.keys.row(g as usize) == key) {
                hits.rows.push((start + row) as u32);
                hits.groups.push(group);
            }
        }
        Ok(())
    }

    pub(super) fn memory_size(&self) -> usize {
        self.keys.size() + self.table.allocation_size()
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
