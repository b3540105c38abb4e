//! Python values as Arrow arrays and constants.

pub(crate) mod columns;
mod decimals;
pub(crate) mod default;
pub(crate) mod keys;
pub(crate) mod literal;
mod nested;
pub(crate) mod objects;
mod objects_by_call;
pub(crate) mod order;
mod temporal;
