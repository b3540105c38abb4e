//! The join behind a `prejoin.HashJoin`: what it is now, how it is changed, and the plan of its calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::prepare::PreparedBuild;
use crate::probe::ProbePlan;
use crate::python::execution::run_options;
use crate::python::interchange::PySchema;
use crate::run::{HashJoin, RunOptions};

/// A join that may be changed. The lock is never held while Python code or anything long runs.
pub(super) struct CurrentJoin(Mutex<State>);

struct State {
    join: HashJoin,
    /// What a call of the attached join validated, until the join is changed.
    called: Option<Arc<Called>>,
    /// Number of changes so far.
    changes: u64,
}

/// The plan of an attached join for whole batches, with the options of a call that names none.
pub(super) struct Called {
    pub(super) plan: Arc<ProbePlan>,
    pub(super) schema: PySchema,
}

impl CurrentJoin {
    pub(super) fn new(join: HashJoin) -> Self {
        Self(Mutex::new(State { join, called: None, changes: 0 }))
    }

    /// The join as it is now.
    pub(super) fn get(&self) -> HashJoin {
        self.state().join.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the join, or leaves it as it was if `change` fails; returns the changed join.
    fn change(&self, change: impl FnOnce(&mut HashJoin) -> Result<()>) -> Result<HashJoin> {
        let mut join = self.get();
        change(&mut join)?;
        let old = std::mem::replace(&mut self.state().join, join.clone());
        // Without the lock: the last reference to a Python object may go with it.
        drop(old);
        Ok(join)
    }

    /// Changes what is joined how, so that the next call plans again.
    pub(super) fn set(&self, change: impl FnOnce(&mut HashJoin) -> Result<()>) -> PyResult<()> {
        self.change(change)?;
        let mut state = self.state();
        state.changes += 1;
        let called = state.called.take();
        drop(state);
        drop(called);
        Ok(())
    }

    /// The plan of a call, made by the first one since the join was changed. `prepared` is the attached build.
    pub(super) fn called(&self, py: Python<'_>, prepared: &Arc<PreparedBuild>) -> PyResult<Arc<Called>> {
        let (join, changes) = {
            let state = self.state();
            if let Some(called) = &state.called {
                return Ok(Arc::clone(called));
            }
            (state.join.clone(), state.changes)
        };
        let options = RunOptions { cancel: Cancel::default(), ..run_options(None, None, None)? };
        let plan = Arc::new(join.probe_plan(Arc::clone(prepared), &options)?);
        let called = Arc::new(Called { plan, schema: PySchema::new(py, join.schema()?)? });
        let mut state = self.state();
        if state.changes == changes {
            state.called = Some(Arc::clone(&called));
        }
        Ok(called)
    }

    /// The join with a fresh run, whose `metrics` are shown from now on.
    pub(super) fn new_run(&self) -> Result<HashJoin> {
        self.change(|join| {
            join.reset_run();
            Ok(())
        })
    }
}
