//! What a saved build consists of: sections, each under a name.

use crate::index::IndexPart;

/// What a section holds. A new one is a variant, its name, and whether a reader has to know it; docs/format.md says what else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    Meta,
    Rows,
    /// The key column as it is indexed, where the index reads it and the rows have it in another form.
    Key,
    Bounds,
    Snapshot,
    Index(IndexPart),
}

impl SectionKind {
    /// The name in files, at most [`SectionName::LEN`] bytes.
    fn name(self) -> &'static str {
        match self {
            SectionKind::Meta => "meta",
            SectionKind::Rows => "rows",
            SectionKind::Key => "key",
            SectionKind::Bounds => "bounds",
            SectionKind::Snapshot => "snapshot",
            SectionKind::Index(part) => part.name(),
        }
    }

    /// Whether a reader that does not know the section refuses the file. Others skip it.
    pub(super) fn is_required(self) -> bool {
        self != SectionKind::Snapshot
    }
}

/// The name of a section as it is written, of a kind that is known or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionName(pub(super) [u8; Self::LEN]);

impl SectionName {
    /// Bytes of a name, with the zeros that pad it.
    pub(super) const LEN: usize = 16;

    pub(super) fn is(self, kind: SectionKind) -> bool {
        self == SectionName::from(kind)
    }

    /// The part of an index that a section of this name holds.
    pub(super) fn index_part(self) -> Option<IndexPart> {
        IndexPart::ALL.into_iter().find(|&part| self.is(SectionKind::Index(part)))
    }

    /// Whether this version knows sections of this name.
    pub(super) fn is_known(self) -> bool {
        use SectionKind::{Bounds, Key, Meta, Rows, Snapshot};
        [Meta, Rows, Key, Bounds, Snapshot].into_iter().any(|kind| self.is(kind)) || self.index_part().is_some()
    }
}

impl From<SectionKind> for SectionName {
    fn from(kind: SectionKind) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes[..kind.name().len()].copy_from_slice(kind.name().as_bytes());
        Self(bytes)
    }
}

impl std::fmt::Display for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        write!(f, "{:?}", String::from_utf8_lossy(name))
    }
}

impl std::fmt::Debug for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
