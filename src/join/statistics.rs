//! How many rows a join reads and gives, as far as that is known before it runs.

use super::declared::Sides;
use super::join_type::JoinType;
use super::spec::JoinSpec;

/// A number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimate {
    /// Known.
    Exact(usize),
    /// Estimated.
    Inexact(usize),
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Estimate {
    /// The number, known or estimated.
    ///
    /// ```
    /// use prejoin::Estimate;
    ///
    /// assert_eq!(Estimate::Inexact(7).value(), Some(7));
    /// assert_eq!(Estimate::Unknown.value(), None);
    /// ```
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
    /// Rows of the build side: those of the attached build, or what the build source declares.
    pub build_rows: Estimate,
    /// Rows of the probe side, all partitions together: what the probe source declares.
    pub probe_rows: Estimate,
    /// Rows given, all partitions together.
    pub output_rows: Estimate,
}

/// Row counts before the join runs. See [`HashJoin::statistics`](crate::HashJoin::statistics).
pub(crate) fn statistics(spec: &JoinSpec, sides: Sides<'_>) -> Statistics {
    let build = sides.attached.map_or(sides.build.rows, |prepared| Some(prepared.num_rows()));
    let (probe, partitions) = (sides.probe.rows, sides.probe.partitions);
    let mut output_rows = match (build, probe.or(build)) {
        (Some(build), Some(probe_guess)) => {
            let keys = sides.attached.map_or(build, |prepared| prepared.num_keys());
            guess(spec.join_type, build, keys, probe, probe_guess)
        }
        _ => Estimate::Unknown,
    };
    if let Some(limit) = spec.limit.map(|limit| limit.saturating_mul(partitions)) {
        output_rows = match output_rows {
            _ if limit == 0 => Estimate::Exact(0),
            // Partitions reach their limits one by one, so a cut is known only where one partition is all.
            Estimate::Exact(rows) if partitions == 1 || rows == 0 => Estimate::Exact(rows.min(limit)),
            Estimate::Exact(rows) | Estimate::Inexact(rows) => Estimate::Inexact(rows.min(limit)),
            Estimate::Unknown => Estimate::Unknown,
        };
    }
    Statistics { build_rows: build.into(), probe_rows: probe.into(), output_rows }
}

/// The output of a build of `build` rows with `keys` keys, and a probe side of `probe` rows or, where that is not known,
/// about `probe_guess`.
fn guess(join_type: JoinType, build: usize, keys: usize, probe: Option<usize>, probe_guess: usize) -> Estimate {
    let pairs = (probe_guess as u128 * build as u128).checked_div(keys as u128).unwrap_or(0);
    let pairs = usize::try_from(pairs).unwrap_or(usize::MAX);
    let nothing = build == 0 || probe == Some(0);
    let rows = match join_type {
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
