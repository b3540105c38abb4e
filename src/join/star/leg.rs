//! One join of a star join.

use std::sync::Arc;

use arrow_array::ArrayRef;

use crate::error::{Result, plan_err};
use crate::expr::Expr;
use crate::join::JoinType;
use crate::join::as_of::AsOf;
use crate::join::defaults::check_join_defaults;
use crate::join::names::Names;
use crate::join::validate::Validate;
use crate::prepare::PreparedBuild;

/// One join of a [`StarJoin`](super::StarJoin): a prepared build, and how the rows that reach it are joined with it.
#[derive(Debug, Clone)]
pub struct Leg {
    /// The build.
    pub build: Arc<PreparedBuild>,
    /// The columns that each key of the build is looked up by: all that meet one key must equal it. `None` for columns that
    /// have the names of the keys.
    pub on: Option<Vec<LegKey>>,
    /// Inner, left outer, semi, anti or mark.
    pub join_type: JoinType,
    /// Residual predicate on pairs.
    pub filter: Option<Expr>,
    /// Put before the names of the columns that the leg adds.
    pub prefix: String,
    /// Appended to names that are taken.
    pub suffix: String,
    /// The build columns that come out, as (new name, name); `None` for all but the keys.
    pub select: Option<Vec<(Option<String>, String)>>,
    /// For each column of the build an array of one value of its type, which rows without a match have instead of null, or
    /// `None` for null. No values at all are nulls in all columns. For left joins only.
    pub defaults: Vec<Option<ArrayRef>>,
    /// How many rows of each side may share a key.
    pub validate: Validate,
    /// Makes it an as-of join; its probe column is any at hand.
    pub as_of: Option<AsOf>,
}

/// What a key of a leg's build is looked up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegKey {
    /// A column of the probe side or of an earlier leg.
    pub column: String,
    /// The key column of the build; `None` for the one of the same name, or the only one.
    pub key: Option<String>,
}

impl Leg {
    /// An inner join on the key names of `build`.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{JoinType, Leg, LegKey, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]), ("name", Utf8, ["ada", "bob"]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let on = vec![LegKey { column: "user".to_owned(), key: Some("id".to_owned()) }];
    /// let leg = Leg { on: Some(on), join_type: JoinType::ProbeOuter, ..Leg::new(build) };
    /// assert_eq!(leg.suffix, "_right");
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn new(build: Arc<PreparedBuild>) -> Self {
        Self {
            build,
            on: None,
            join_type: JoinType::Inner,
            filter: None,
            prefix: String::new(),
            suffix: "_right".to_owned(),
            select: None,
            defaults: Vec::new(),
            validate: Validate::default(),
            as_of: None,
        }
    }

    /// What can be said without a probe side.
    pub(crate) fn check(&self) -> Result<()> {
        let kind = self.join_type.how();
        if self.join_type.is_build_driven() {
            return plan_err!(
                "a {kind} join gives build rows after the last probe row, and a star join gives the rows of each batch at \
                 once: its legs are inner, left, semi, anti or mark; join with this build by itself"
            );
        }
        if !self.join_type.pairs() && self.select.as_ref().is_some_and(|columns| !columns.is_empty()) {
            return plan_err!("select names build columns, a {kind} join gives none");
        }
        check_join_defaults(self.build.schema(), self.join_type, &self.defaults)?;
        self.key_columns()?;
        let Some(as_of) = &self.as_of else { return self.validate.check_build(&self.build) };
        as_of.order_column(&self.build)?;
        match self.validate {
            Validate::ManyToMany | Validate::ManyToOne => Ok(()),
            validate => plan_err!("validate={validate} is not checked by an as-of join, whose rows share build rows"),
        }
    }

    fn key_names(&self) -> Vec<&str> {
        let schema = self.build.schema();
        self.build.keys().iter().map(|&key| schema.field(key).name().as_str()).collect()
    }

    /// The columns that each key is looked up by, in key order; each key has at least one.
    pub(super) fn key_columns(&self) -> Result<Vec<Vec<&str>>> {
        let keys = self.key_names();
        let Some(on) = &self.on else { return Ok(keys.into_iter().map(|key| vec![key]).collect()) };
        let mut columns: Vec<Vec<&str>> = vec![Vec::new(); keys.len()];
        for LegKey { column, key } in on {
            let named = |name: &str| keys.iter().position(|key| *key == name);
            let at = match key {
                Some(key) => named(key),
                // "planes.model" may stand for the key "model".
                None => named(column)
                    .or_else(|| column.split_once('.').and_then(|(_, name)| named(name)))
                    .or_else(|| (on.len() == 1 && keys.len() == 1).then_some(0)),
            };
            match at {
                Some(at) if columns[at].contains(&column.as_str()) => {
                    return plan_err!("on names the key {:?} twice for the column {column:?}", keys[at]);
                }
                Some(at) => columns[at].push(column),
                None => {
                    return plan_err!(
                        "on names the key {:?}, the build was prepared on {keys:?}; name keys of the build, as in \
                         on={{column: key}}",
                        key.as_ref().unwrap_or(column)
                    );
                }
            }
        }
        let missing: Vec<&str> =
            keys.iter().zip(&columns).filter(|(_, columns)| columns.is_empty()).map(|(key, _)| *key).collect();
        if !missing.is_empty() {
            return plan_err!("on leaves out the keys {missing:?} of the build; all of its keys are joined on");
        }
        Ok(columns)
    }

    /// How the columns that the leg adds are named; `table` is the leg's name.
    pub(super) fn names<'a>(&'a self, table: &'a str) -> Names<'a> {
        Names { table, prefix: &self.prefix, suffix: &self.suffix }
    }
}
