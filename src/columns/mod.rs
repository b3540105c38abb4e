//! What is done to Arrow columns, wherever it is needed: made late, gathered, concatenated, measured, brought to key types.

pub(crate) mod bounds;
mod child_range;
mod concat;
pub(crate) mod copy_size;
mod gather;
mod gather_nested;
mod ipc_schema;
mod key_type;
mod lazy;
mod schema;

pub use bounds::Bounds;
pub(crate) use concat::concat;
pub(crate) use gather::{Selection, Share, can_hold_nulls, fixed_width, gather, gather_shared, in_column, nulls, pick};
pub(crate) use ipc_schema::{decode_schema, encode_schema, is_sound};
pub(crate) use key_type::{Coerced, coerce, comparable, has_equality, key_type, positions};
pub(crate) use lazy::{Column, any_part};
pub(crate) use schema::{names, position};

/// Stands for a row number where there is no row. Columns have fewer rows than this.
pub(crate) const NONE: u32 = u32::MAX;
