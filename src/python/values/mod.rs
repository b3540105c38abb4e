//! Python values as Arrow arrays and constants.

mod columns;
mod decimals;
pub(crate) mod default;
pub(crate) mod keys;
pub(crate) mod literal;
mod nested;
pub(crate) mod order;
mod temporal;
