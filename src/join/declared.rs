//! What is known of the two sides of a join before it runs.

use crate::prepare::PreparedBuild;

/// What a source declares about its rows, apart from their schema.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) partitions: usize,
    /// Number of rows of all partitions together.
    pub(crate) rows: Option<usize>,
    /// Columns that the rows of each partition are ordered by, ascending, the first one first.
    pub(crate) ordering: Vec<usize>,
    /// Pairs of columns that hold equal values.
    pub(crate) equal_columns: Vec<(usize, usize)>,
}

impl Declared {
    /// Nothing but the number of partitions.
    pub(crate) fn partitions(partitions: usize) -> Self {
        Self { partitions, rows: None, ordering: Vec::new(), equal_columns: Vec::new() }
    }
}

/// What is known of both sides of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) build: &'a Declared,
    pub(crate) probe: &'a Declared,
    /// The prepared build that replaces the rows of the build source.
    pub(crate) attached: Option<&'a PreparedBuild>,
}
