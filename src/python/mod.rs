//! The Python extension module `prejoin._core`.
//!
//! Rules for what is added here: the body of every function, method and `__next__` runs in [`errors::guarded`];
//! `prejoin::Error` becomes an exception by `?`, and a Python exception travels through the core as `Error::External`;
//! long work runs in [`signals::detach_if_long`] with [`signals::interruptible`] as its cancel signal; data crosses in
//! [`interchange`] only.

mod arguments;
mod config;
mod decimals;
mod dynamic_filter;
mod errors;
mod execution;
mod expr;
mod hash_join;
mod interchange;
mod join;
mod keys;
mod literal;
mod lookup;
mod nested;
mod pool;
mod prepared;
mod read;
mod report;
mod saved;
mod session;
mod shutdown;
mod signals;
mod source;
mod temporal;
mod values;

use pyo3::prelude::*;

/// The system's allocator gives large blocks back to the kernel at once, and the pages of every output batch are faulted
/// in anew: half of the time of a large join.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled part of the package `prejoin`; use that, not this.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    signals::remember_main_thread(module.py())?;
    errors::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<config::PyConfig>()?;
    module.add_class::<pool::PyMemoryPool>()?;
    module.add_class::<prepared::PyPreparedBuild>()?;
    module.add_class::<saved::PySharedBuild>()?;
    module.add_class::<hash_join::PyHashJoin>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<source::PySource>()?;
    module.add_class::<dynamic_filter::PyDynamicFilter>()?;
    module.add_class::<expr::PyExpr>()?;
    module.add_function(wrap_pyfunction!(prepared::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(saved::open, module)?)?;
    module.add_function(wrap_pyfunction!(saved::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(saved::reopen, module)?)?;
    module.add_function(wrap_pyfunction!(saved::attach, module)?)?;
    module.add_function(wrap_pyfunction!(join::join, module)?)?;
    module.add_function(wrap_pyfunction!(expr::col, module)?)?;
    module.add_function(wrap_pyfunction!(expr::lit, module)?)?;
    module.add_function(wrap_pyfunction!(expr::sql, module)?)?;
    module.add_function(wrap_pyfunction!(hash_join::load_join, module)?)?;
    module.add_function(wrap_pyfunction!(expr::load_expr, module)?)?;
    module.add_function(wrap_pyfunction!(read::read_all, module)?)?;
    module.add_function(wrap_pyfunction!(read::read, module)?)?;
    module.add_function(wrap_pyfunction!(read::crossing, module)?)?;
    module.add_function(wrap_pyfunction!(probe_steps, module)?)?;
    // PyO3 fills it; what is public says the package.
    module.delattr("__all__")
}

/// Key comparisons plus buckets visited by this thread, for tests; counted in profile `ci` only.
#[pyfunction]
#[pyo3(name = "_probe_steps")]
fn probe_steps() -> u64 {
    crate::index::probe_steps()
}
