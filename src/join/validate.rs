//! What a join may assume about repeated keys, and how that is checked.

use std::fmt;

use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result, plan_err};
use crate::prepare::PreparedBuild;

/// How many rows of each side may share a key. The probe side is named first, as the left one in `left.join(right)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Validate {
    /// Any number on both sides.
    #[default]
    ManyToMany,
    /// Every key of the build is in one row, and no two probe rows share a key of the build.
    OneToOne,
    /// No two probe rows share a key of the build.
    OneToMany,
    /// Every key of the build is in one row. That is known with the build, so it costs nothing while probing.
    ManyToOne,
}

impl Validate {
    /// Whether no two probe rows of one join may share a key of the build.
    pub(crate) fn probe_unique(self) -> bool {
        matches!(self, Self::OneToOne | Self::OneToMany)
    }

    /// Refuses a build with a repeated key where the build must have one row per key.
    pub(crate) fn check_build(self, build: &PreparedBuild) -> Result<()> {
        if build.is_unique() || !matches!(self, Self::OneToOne | Self::ManyToOne) {
            return Ok(());
        }
        plan_err!(
            "validate={self} needs a build with one row per key, {}; prepare it with keep first or last, or drop validate",
            repeated_key(build)
        )
    }

    /// The error for two probe rows that share the key of `group`.
    pub(crate) fn repeated_in_probe(self, build: &PreparedBuild, group: u32) -> Error {
        Error::Execution(format!(
            "validate={self} needs probe rows with different keys, two or more have {}",
            key_text(build, build.groups().first_row(group))
        ))
    }
}

impl fmt::Display for Validate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ManyToMany => "m:m",
            Self::OneToOne => "1:1",
            Self::OneToMany => "1:m",
            Self::ManyToOne => "m:1",
        })
    }
}

/// A key that several rows of `build` have, for an error text.
pub(crate) fn repeated_key(build: &PreparedBuild) -> String {
    let groups = build.groups();
    match (0..build.num_keys() as u32).find(|&group| groups.group_len(group) > 1) {
        Some(group) => {
            format!("{} rows of this one have {}", groups.group_len(group), key_text(build, groups.first_row(group)))
        }
        None => "this one repeats no key".to_owned(),
    }
}

/// The key of one build row as `"name" = value`, for an error text.
fn key_text(build: &PreparedBuild, row: u32) -> String {
    let options = FormatOptions::new().with_null("null");
    let value = |column: &dyn Array| {
        // An unverified file may name a row that does not exist.
        (column.len() > row as usize).then_some(())?;
        let formatter = ArrayFormatter::try_new(column, &options).ok()?;
        formatter.value(row as usize).try_to_string().ok()
    };
    let key = build.keys().iter().map(|&key| {
        let field = build.schema().field(key);
        let value = build.column(key).ok().and_then(|column| value(column.as_ref()));
        format!("{:?} = {}", field.name(), value.unwrap_or_else(|| format!("a value of type {}", field.data_type())))
    });
    key.collect::<Vec<_>>().join(", ")
}
