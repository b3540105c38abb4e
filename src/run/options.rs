//! How a join runs.

use std::sync::Arc;

use crate::cancel::Cancel;
use crate::memory::{MemoryPool, Pool};
use crate::prepare::PrepareOptions;

/// How a join runs or a build is prepared, which does not change what comes out.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Largest number of rows of an output batch. Default 8192.
    pub batch_size: usize,
    /// Pays for builds and visited bits. Default an unlimited pool.
    pub pool: Arc<dyn Pool>,
    /// Choices for builds.
    pub config: PrepareOptions,
    /// Asks the work to stop.
    pub cancel: Cancel,
}

impl Default for RunOptions {
    fn default() -> Self {
        let (config, cancel) = (PrepareOptions::default(), Cancel::default());
        Self { batch_size: 8192, pool: Arc::new(MemoryPool::unlimited()), config, cancel }
    }
}
