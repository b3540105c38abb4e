//! What is known of a join's output before it runs.

use super::join_type::{JoinType, PartitionMode};
use super::output::OutputColumn;
use crate::error::{Result, plan_err};
use crate::expr::Side;
use crate::run::HashJoin;
use crate::run::Source;

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
    pub fn are_equal(&self, a: usize, b: usize) -> bool {
        a == b || self.equal_columns.iter().any(|group| group.contains(&a) && group.contains(&b))
    }
}

impl HashJoin {
    /// What is known of the output: order, equal columns, partitions.
    ///
    /// Rows come in probe order, so the probe source's order holds unless unmatched build rows follow at the end; kinds
    /// that give build rows alone give them in build order. Build rows beside a probe row come in build order too, but
    /// start anew with each probe row, so the build source's order adds nothing of its own: (probe key, build column)
    /// is an order where the build column equals the key. What a source declared goes with it when a prepared build
    /// replaces it.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) if the join is not valid, or a source declares columns that it does not
    /// have.
    pub fn properties(&self) -> Result<Properties> {
        let (output, _) = self.check()?;
        let (build, probe) = (self.build_source(), self.probe_source());
        for (side, source) in [(Side::Build, build), (Side::Probe, probe)] {
            check_declared(side, source)?;
        }
        let builds = build.schema().fields().len();
        let columns = builds + probe.schema().fields().len();

        // Columns of both sides, build columns first; `classes[i]` is the least column known to be equal to `i`.
        let mut classes: Vec<usize> = (0..columns).collect();
        let mut unite = |a: usize, b: usize| {
            let (least, other) = (classes[a].min(classes[b]), classes[a].max(classes[b]));
            classes.iter_mut().filter(|class| **class == other).for_each(|class| *class = least);
        };
        build.equal_columns().iter().for_each(|&(a, b)| unite(a, b));
        probe.equal_columns().iter().for_each(|&(a, b)| unite(builds + a, builds + b));
        // Every output row of these kinds stands for a matching pair.
        if matches!(self.join_type, JoinType::Inner | JoinType::ProbeSemi | JoinType::BuildSemi) {
            self.pairs().for_each(|(b, p)| unite(b, builds + p));
        }

        let class = |column: &OutputColumn| match *column {
            OutputColumn::Build(i) => Some(classes[i]),
            OutputColumn::Probe(i) => Some(classes[builds + i]),
            // Filled from the build side on unmatched build rows.
            OutputColumn::Key { build, probe } => match self.join_type {
                JoinType::BuildOuter => Some(classes[build]),
                JoinType::FullOuter => None,
                _ => Some(classes[builds + probe]),
            },
            OutputColumn::Mark => None,
        };
        let outputs: Vec<Option<usize>> = output.columns.iter().map(class).collect();
        let group = |class: usize| (0..outputs.len()).filter(|&i| outputs[i] == Some(class)).collect::<Vec<_>>();
        let equal_columns = (0..columns).map(group).filter(|group| group.len() > 1).collect();

        let declared: Vec<usize> = match self.join_type {
            // Unmatched build rows come last, beside nulls.
            JoinType::BuildOuter | JoinType::FullOuter => vec![],
            // Several build partitions are collected one after the other.
            JoinType::BuildSemi | JoinType::BuildAnti
                if self.mode == PartitionMode::CollectLeft && build.partitions() > 1 =>
            {
                vec![]
            }
            JoinType::BuildSemi | JoinType::BuildAnti => build.ordering().to_vec(),
            _ => probe.ordering().iter().map(|&column| builds + column).collect(),
        };
        let itself =
            |column: usize| output.columns.iter().position(|out| out.position(builds, columns - builds) == column);
        let given = |column: usize| outputs.iter().position(|&class| class == Some(classes[column]));
        let ordering = declared.into_iter().map_while(|column| itself(column).or_else(|| given(column))).collect();
        Ok(Properties { ordering, equal_columns, partitions: self.partitions() })
    }
}

fn check_declared(side: Side, source: &Source) -> Result<()> {
    let columns = source.schema().fields().len();
    let mut declared = source.ordering().iter().chain(source.equal_columns().iter().flat_map(|(a, b)| [a, b]));
    match declared.find(|&&column| column >= columns) {
        Some(column) => {
            plan_err!("the {side} source declares an order or equality of column {column}, it has {columns}")
        }
        None => Ok(()),
    }
}
