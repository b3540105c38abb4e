//! Work on Arrow columns that several folders need: late creation, gathering, concatenation, sizes, bounds, key types, schemas.

pub(crate) mod bounds;
mod child_range;
mod concat;
pub(crate) mod copy_size;
pub(crate) mod floats;
mod gather;
mod gather_nested;
mod ipc_schema;
mod key_type;
mod lazy;
mod schema;
mod selection;
mod stretches;
mod types;

pub use bounds::Bounds;
pub(crate) use concat::concat;
pub(crate) use gather::{Share, can_hold_nulls, fixed_width, gather, gather_shared, in_column, nulls, pick, take_at};
pub(crate) use ipc_schema::{decode_schema, encode_schema};
pub(crate) use key_type::{Coerced, coerce, comparable, key_type, positions};
pub(crate) use lazy::LazyColumn;
pub(crate) use schema::{ColumnDifference, Positions, column_difference, names, position, same_columns};
pub(crate) use selection::Selection;
pub(crate) use types::{any_part, has_equality, has_floats, has_run_ends, is_sound};

/// Stands for a row number where there is no row. Columns have fewer rows than this.
pub(crate) const NONE: u32 = u32::MAX;
