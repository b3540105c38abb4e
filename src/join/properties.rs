//! What is known of a join's output before it runs.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::SchemaRef;

use super::declared::{Declared, Sides};
use super::join_type::{JoinType, PartitionMode};
use super::output::{Output, OutputColumn};
use super::spec::JoinSpec;
use crate::error::{Result, plan_err};
use crate::expr::Side;

/// Order and equalities of a join's output. Columns are positions in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// Columns that the rows of each partition are ordered by, ascending, the first one first. Empty where no order is
    /// known.
    pub ordering: Vec<usize>,
    /// Groups of at least two columns that hold equal values (as join keys are equal) or nulls alike in every row. Each
    /// group is ascending.
    pub equal_columns: Vec<Vec<usize>>,
    /// Number of partitions.
    pub partitions: usize,
}

impl Properties {
    /// True where the rows of each partition are known to be ordered by `columns`, ascending, the first one first.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{HashJoin, Source};
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("at", Int32, [3]), ("user", Int64, [1]))?);
    /// let join = HashJoin::builder(users, Source::from(events).with_ordering(vec![0])).on([("id", "user")]).build()?;
    /// let properties = join.properties()?;
    /// assert!(properties.is_ordered_by(&[1]));
    /// assert!(!properties.is_ordered_by(&[0]));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn is_ordered_by(&self, columns: &[usize]) -> bool {
        let mut ordering = self.ordering.as_slice();
        let mut seen: Vec<usize> = Vec::new();
        columns.iter().all(|&column| {
            // Among rows that agree on the columns so far, a column that equals one of them orders nothing.
            let known = |column: usize| seen.iter().any(|&earlier| self.are_equal(earlier, column));
            while let [first, rest @ ..] = ordering
                && known(*first)
            {
                ordering = rest;
            }
            if known(column) {
                return true;
            }
            let ordered = ordering.first().is_some_and(|&first| self.are_equal(first, column));
            seen.push(column);
            ordered
        })
    }

    /// True where both columns are known to hold equal values.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::HashJoin;
    ///
    /// let (users, events) = (record_batch!(("id", Int64, [1]))?, record_batch!(("at", Int32, [3]), ("user", Int64, [1]))?);
    /// let join = HashJoin::builder(users, events).on([("id", "user")]).build()?;
    /// assert!(join.properties()?.are_equal(0, 2));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn are_equal(&self, a: usize, b: usize) -> bool {
        a == b || self.equal_columns.iter().any(|group| group.contains(&a) && group.contains(&b))
    }
}

/// What is known of the output. See [`HashJoin::properties`](crate::HashJoin::properties).
pub(crate) fn properties(spec: &JoinSpec, output: &Output, sides: Sides<'_>) -> Result<Properties> {
    check_declared(Side::Build, spec.build_schema(), sides.build)?;
    check_declared(Side::Probe, spec.probe_schema(), sides.probe)?;
    let builds = spec.build_schema().fields().len();
    let columns = builds + spec.probe_schema().fields().len();

    // Columns of both sides, build columns first; `classes[i]` is the least column known to be equal to `i`.
    let mut classes: Vec<usize> = (0..columns).collect();
    let mut unite = |a: usize, b: usize| {
        let (least, other) = (classes[a].min(classes[b]), classes[a].max(classes[b]));
        classes.iter_mut().filter(|class| **class == other).for_each(|class| *class = least);
    };
    sides.build.equal_columns.iter().for_each(|&(a, b)| unite(a, b));
    sides.probe.equal_columns.iter().for_each(|&(a, b)| unite(builds + a, builds + b));
    // Every output row of these join types comes from a matching pair.
    if matches!(spec.join_type, JoinType::Inner | JoinType::ProbeSemi | JoinType::BuildSemi) {
        spec.pairs().for_each(|(b, p)| unite(b, builds + p));
    }

    let class = |column: &OutputColumn| match *column {
        OutputColumn::Build(i) => Some(classes[i]),
        OutputColumn::Probe(i) => Some(classes[builds + i]),
        // Filled from the build side on unmatched build rows.
        OutputColumn::Key { build, probe } => match spec.join_type {
            JoinType::BuildOuter => Some(classes[build]),
            JoinType::FullOuter => None,
            _ => Some(classes[builds + probe]),
        },
        OutputColumn::Mark => None,
    };
    let outputs: Vec<Option<usize>> = output.columns.iter().map(class).collect();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, class) in outputs.iter().enumerate() {
        class.iter().for_each(|class| groups.entry(*class).or_default().push(i));
    }

    let declared: Vec<usize> = match spec.join_type {
        // Unmatched build rows come last, beside nulls.
        JoinType::BuildOuter | JoinType::FullOuter => vec![],
        // Several build partitions are collected one after the other.
        JoinType::BuildSemi | JoinType::BuildAnti
            if spec.mode == PartitionMode::CollectLeft && sides.build.partitions > 1 =>
        {
            vec![]
        }
        JoinType::BuildSemi | JoinType::BuildAnti => sides.build.ordering.clone(),
        _ => sides.probe.ordering.iter().map(|&column| builds + column).collect(),
    };
    let mut outputs_of = HashMap::new();
    for (i, out) in output.columns.iter().enumerate() {
        outputs_of.entry(out.position(builds, columns - builds)).or_insert(i);
    }
    let itself = |column: usize| outputs_of.get(&column).copied();
    let given = |column: usize| groups.get(&classes[column]).map(|group| group[0]);
    let ordering = declared.into_iter().map_while(|column| itself(column).or_else(|| given(column))).collect();
    let equal_columns = groups.into_values().filter(|group| group.len() > 1).collect();
    Ok(Properties { ordering, equal_columns, partitions: sides.probe.partitions })
}

/// Refuses an order or equality of columns that the side does not have.
fn check_declared(side: Side, schema: &SchemaRef, declared: &Declared) -> Result<()> {
    let columns = schema.fields().len();
    let mut positions = declared.ordering.iter().chain(declared.equal_columns.iter().flat_map(|(a, b)| [a, b]));
    match positions.find(|&&column| column >= columns) {
        Some(column) => {
            plan_err!("the {side} source declares an order or equality of column {column}, it has {columns}")
        }
        None => Ok(()),
    }
}
