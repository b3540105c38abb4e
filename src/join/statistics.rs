//! How many rows a join takes and gives, as far as that is known before it runs.

use super::join_type::JoinType;
use crate::run::HashJoin;

/// A number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimate {
    /// Known.
    Exact(usize),
    /// Guessed.
    Inexact(usize),
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Estimate {
    /// The number, known or guessed.
    pub fn value(self) -> Option<usize> {
        match self {
            Estimate::Exact(rows) | Estimate::Inexact(rows) => Some(rows),
            Estimate::Unknown => None,
        }
    }
}

impl From<Option<usize>> for Estimate {
    /// Exact where there is a number.
    fn from(rows: Option<usize>) -> Self {
        rows.map_or(Estimate::Unknown, Estimate::Exact)
    }
}

/// Row counts of a join. Nothing else is known of either side.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Rows of the build side: those of the attached build, or what the build source knows.
    pub build_rows: Estimate,
    /// Rows of the probe side, all partitions together: what the probe source knows.
    pub probe_rows: Estimate,
    /// Rows given, all partitions together.
    pub output_rows: Estimate,
}

impl HashJoin {
    /// Row counts before the join runs.
    ///
    /// The output is guessed as if every probe row met as many build rows as a build key has on average, and a
    /// predicate kept every pair, so it is a figure of the upper end. Without a known probe side it is that of as many
    /// probe rows as there are build rows. A guess is never 0.
    pub fn statistics(&self) -> Statistics {
        let prepared = self.prepared_build();
        let build = prepared.map_or(self.build_source().num_rows(), |prepared| Some(prepared.num_rows()));
        let probe = self.probe_source().num_rows();
        let mut output_rows = match (build, probe.or(build)) {
            (Some(build), Some(probe_guess)) => {
                let keys = prepared.map_or(build, |prepared| prepared.num_keys());
                self.guess(build, keys, probe, probe_guess)
            }
            _ => Estimate::Unknown,
        };
        if let Some(limit) = self.limit.map(|limit| limit.saturating_mul(self.partitions())) {
            output_rows = match output_rows {
                _ if limit == 0 => Estimate::Exact(0),
                // Partitions reach their limits one by one, so a cut is known only where one partition is all.
                Estimate::Exact(rows) if self.partitions() == 1 || rows == 0 => Estimate::Exact(rows.min(limit)),
                Estimate::Exact(rows) | Estimate::Inexact(rows) => Estimate::Inexact(rows.min(limit)),
                Estimate::Unknown => Estimate::Unknown,
            };
        }
        Statistics { build_rows: build.into(), probe_rows: probe.into(), output_rows }
    }

    fn guess(&self, build: usize, keys: usize, probe: Option<usize>, probe_guess: usize) -> Estimate {
        let pairs = (probe_guess as u128 * build as u128).checked_div(keys as u128).unwrap_or(0);
        let pairs = usize::try_from(pairs).unwrap_or(usize::MAX);
        let nothing = build == 0 || probe == Some(0);
        let rows = match self.join_type {
            JoinType::Inner | JoinType::ProbeSemi | JoinType::BuildSemi if nothing => return Estimate::Exact(0),
            JoinType::ProbeMark => return probe.map_or(Estimate::Inexact(probe_guess.max(1)), Estimate::Exact),
            JoinType::Inner => pairs,
            JoinType::ProbeOuter => pairs.max(probe_guess),
            JoinType::BuildOuter => pairs.max(build),
            JoinType::FullOuter => pairs.max(probe_guess).max(build),
            JoinType::ProbeSemi | JoinType::ProbeAnti => probe_guess,
            JoinType::BuildSemi | JoinType::BuildAnti => build,
        };
        Estimate::Inexact(rows.max(1))
    }
}
