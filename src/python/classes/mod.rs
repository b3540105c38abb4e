//! The Python classes, one file each, with the functions that make them; what a large one needs is beside it.

pub(crate) mod config;
mod current_join;
pub(crate) mod dynamic_filter;
pub(crate) mod expr;
pub(crate) mod hash_join;
pub(crate) mod join_parameters;
pub(crate) mod leg;
pub(crate) mod pool;
pub(crate) mod prepared;
pub(crate) mod saved;
pub(crate) mod session;
pub(crate) mod source;
pub(crate) mod star_join;
