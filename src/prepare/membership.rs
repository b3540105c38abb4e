//! How a filter finds out which keys a build holds.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Fields, Schema};

use super::PrepareOptions;
use crate::columns::copy_size::sliced_size;
use crate::error::Result;

/// The keys of a build: a list for a small build, else its map.
#[derive(Clone)]
pub enum Membership {
    /// The key column itself, duplicates and nulls included; a struct of the key columns where there are several. It
    /// shares the build's memory and charge, so it lives no longer than the build does.
    InList(ArrayRef),
    /// The build's own index.
    Map,
}

impl Membership {
    /// The list of the key columns `keys` of `rows` if `options` allow one for `num_keys` distinct keys. Byte keys have
    /// none.
    pub(crate) fn new(rows: &RecordBatch, keys: &[usize], num_keys: usize, options: &PrepareOptions) -> Result<Self> {
        let (max_bytes, max_values) = (options.in_list_max_bytes, options.in_list_max_values);
        let columns: Vec<ArrayRef> = keys.iter().map(|&key| Arc::clone(rows.column(key))).collect();
        if keys.is_empty()
            || max_bytes == 0
            || max_values < num_keys.max(1)
            || !columns.iter().all(|column| is_listed(column.data_type()))
        {
            return Ok(Membership::Map);
        }
        let mut bytes = 0usize;
        for column in &columns {
            bytes = bytes.saturating_add(sliced_size(column)?);
        }
        if bytes > max_bytes {
            return Ok(Membership::Map);
        }
        Ok(Membership::InList(list_of(rows.schema_ref(), keys, columns)?))
    }

    /// The list of `columns`, which are the columns `keys` of `schema`; `None` for types that are never listed.
    pub(crate) fn list(schema: &Schema, keys: &[usize], columns: Vec<ArrayRef>) -> Result<Option<Self>> {
        match columns.iter().all(|column| is_listed(column.data_type())) {
            true => Ok(Some(Membership::InList(list_of(schema, keys, columns)?))),
            false => Ok(None),
        }
    }
}

fn is_listed(data_type: &DataType) -> bool {
    data_type.is_primitive() || *data_type == DataType::Boolean
}

fn list_of(schema: &Schema, keys: &[usize], columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    if let [column] = columns.as_slice() {
        return Ok(Arc::clone(column));
    }
    let fields: Fields = keys.iter().map(|&key| Arc::clone(&schema.fields()[key])).collect();
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}

impl fmt::Debug for Membership {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Membership::InList(list) => write!(f, "InList({} x {})", list.len(), list.data_type()),
            Membership::Map => f.write_str("Map"),
        }
    }
}
