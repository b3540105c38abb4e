//! Which rows a join gives.

use std::fmt;

/// Which rows a join gives. *Build* is the prepared side, *probe* the side that streams past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JoinType {
    /// Matching pairs.
    #[default]
    Inner,
    /// Matching pairs, and probe rows without a match beside nulls.
    ProbeOuter,
    /// Matching pairs, and build rows without a match beside nulls.
    BuildOuter,
    /// Matching pairs, and the rows of both sides without a match beside nulls.
    FullOuter,
    /// Probe rows with a match, each once.
    ProbeSemi,
    /// Probe rows without a match (SQL `NOT EXISTS`).
    ProbeAnti,
    /// Every probe row, and a Boolean column `mark`: whether it has a match.
    ProbeMark,
    /// Build rows with a match, each once.
    BuildSemi,
    /// Build rows without a match.
    BuildAnti,
}

impl JoinType {
    /// Every join type.
    pub const ALL: [JoinType; 9] = [
        Self::Inner,
        Self::ProbeOuter,
        Self::BuildOuter,
        Self::FullOuter,
        Self::ProbeSemi,
        Self::ProbeAnti,
        Self::ProbeMark,
        Self::BuildSemi,
        Self::BuildAnti,
    ];

    /// The word for it in Python's `how=`, which error texts use.
    pub(crate) fn how(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::ProbeOuter => "left",
            Self::BuildOuter => "right",
            Self::FullOuter => "full",
            Self::ProbeSemi => "semi",
            Self::ProbeAnti => "anti",
            Self::ProbeMark => "mark",
            Self::BuildSemi => "build_semi",
            Self::BuildAnti => "build_anti",
        }
    }

    /// Matching pairs come out.
    pub(crate) fn pairs(self) -> bool {
        matches!(self, Self::Inner | Self::ProbeOuter | Self::BuildOuter | Self::FullOuter)
    }

    /// Build columns are in the output.
    pub(crate) fn has_build_columns(self) -> bool {
        self.pairs() || matches!(self, Self::BuildSemi | Self::BuildAnti)
    }

    /// The build adds columns to those of the probe side: its own, or the mark.
    pub(crate) fn gives_columns(self) -> bool {
        self.has_build_columns() || self == Self::ProbeMark
    }

    /// Probe columns are in the output.
    pub(crate) fn has_probe_columns(self) -> bool {
        !matches!(self, Self::BuildSemi | Self::BuildAnti)
    }

    /// Probe rows without a match come out beside null build columns.
    pub(crate) fn extends_probe(self) -> bool {
        matches!(self, Self::ProbeOuter | Self::FullOuter)
    }

    /// Build rows without a match come out beside null probe columns.
    pub(crate) fn extends_build(self) -> bool {
        matches!(self, Self::BuildOuter | Self::FullOuter)
    }

    /// The output depends on the whole probe side: build rows that are given once all probe rows were seen.
    pub(crate) fn is_build_driven(self) -> bool {
        self.extends_build() || matches!(self, Self::BuildSemi | Self::BuildAnti)
    }

    /// Every probe row comes out whether it matches or not.
    pub(crate) fn keeps_unmatched_probe(self) -> bool {
        self.extends_probe() || matches!(self, Self::ProbeAnti | Self::ProbeMark)
    }
}

impl fmt::Display for JoinType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Which build each probe partition probes. The names are DataFusion's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PartitionMode {
    /// All build partitions are collected into one build that every probe partition probes.
    #[default]
    CollectLeft,
    /// Build partition `i` is collected for probe partition `i` alone; both sides are partitioned by the keys.
    Partitioned,
}

impl fmt::Display for PartitionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
