//! Batches in from any Python object, batches out as pyarrow objects: our own small layer over the Arrow C data
//! interface.
//!
//! In: [`Source::open`] takes whatever a user may call a table and [`Source::next`] gives its batches;
//! [`batch_from_python`] takes one batch; [`schema_of`] a schema. Out: make one [`PySchema`] per output schema, then
//! [`PySchema::batch`], [`PySchema::table`], or [`reader`] for a lazy result. Functions that may wait for a producer say
//! whether they are to be called attached to Python or detached.

mod abi;
mod batch;
mod c_array;
mod capsule;
mod dicts;
mod export;
mod import;
mod import_size;
mod import_values;
mod lazy;
mod pyarrow;
mod schema;
mod source;
mod stream;

pub(crate) use batch::{batch_from_python, c_batch};
pub(crate) use import::Columns;
pub(crate) use lazy::{BatchStream, reader};
pub(crate) use pyarrow::{PySchema, is_refusal, pyarrow, schema_of, type_name};
pub(crate) use source::{Source, is_a};
