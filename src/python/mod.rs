//! The Python extension module `prejoin._core`.
//!
//! Rules for what is added here: the body of every function, method and `__next__` runs in [`errors::guarded`];
//! `prejoin::Error` becomes an exception by `?`, and a Python exception travels through the core as `Error::External`;
//! long work runs in [`signals::detach_if_long`] with [`signals::interruptible`] as its cancel signal; data crosses in
//! [`interchange`] only.

mod arguments;
mod as_of;
mod attached;
mod classes;
mod errors;
mod execution;
mod few_batches;
mod foreign_words;
mod interchange;
mod join;
mod join_asof;
mod join_schema;
mod kind;
mod lookup;
mod map;
mod matrix;
mod read;
mod recent;
mod report;
mod rows;
mod shutdown;
mod signals;
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
    crate::silence_caught_panics();
    signals::remember_main_thread(module.py())?;
    errors::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<classes::config::PyConfig>()?;
    module.add_class::<classes::pool::PyMemoryPool>()?;
    module.add_class::<classes::prepared::PyPreparedBuild>()?;
    module.add_class::<classes::saved::PySharedBuild>()?;
    module.add_class::<classes::hash_join::PyHashJoin>()?;
    module.add_class::<classes::leg::PyLeg>()?;
    module.add_class::<classes::star_join::PyStarJoin>()?;
    module.add_class::<classes::session::PySession>()?;
    module.add_class::<classes::source::PySource>()?;
    module.add_class::<classes::dynamic_filter::PyDynamicFilter>()?;
    module.add_class::<classes::expr::PyExpr>()?;
    module.add_function(wrap_pyfunction!(classes::prepared::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(classes::saved::open, module)?)?;
    module.add_function(wrap_pyfunction!(classes::saved::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(classes::saved::reopen, module)?)?;
    module.add_function(wrap_pyfunction!(classes::saved::attach, module)?)?;
    module.add_function(wrap_pyfunction!(join::join, module)?)?;
    module.add_function(wrap_pyfunction!(join_asof::join_asof, module)?)?;
    module.add_function(wrap_pyfunction!(join_schema::join_schema, module)?)?;
    module.add_function(wrap_pyfunction!(classes::expr::col, module)?)?;
    module.add_function(wrap_pyfunction!(classes::expr::lit, module)?)?;
    module.add_function(wrap_pyfunction!(classes::expr::sql, module)?)?;
    module.add_function(wrap_pyfunction!(classes::hash_join::load_join, module)?)?;
    module.add_function(wrap_pyfunction!(classes::expr::load_expr, module)?)?;
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
