//! Planning a join with a prepared build by the names of columns: which columns are keys, how the output columns are named,
//! and which probe columns are read at all.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use super::as_of::AsOf;
use super::defaults::check_join_defaults;
use super::join_type::JoinType;
use super::names::{Chosen, Names, settle};
use super::output::MARK;
use super::spec::JoinSpec;
use super::validate::Validate;
use crate::columns::{Positions, position};
use crate::error::{Error, Result, internal_err, plan_err};
use crate::expr::{Expr, Side};
use crate::prepare::PreparedBuild;

/// What [`join`](crate::join) is asked for, apart from its two sides. The default is an inner join on the build's key names
/// with all columns.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinOptions {
    /// Key pairs as names (probe column, build column); `None` is the build's key names on both sides. Every key column of
    /// the build is in a pair; several probe columns may be joined with one of them.
    pub on: Option<Vec<(String, String)>>,
    /// Which rows come out.
    pub join_type: JoinType,
    /// Makes it an as-of join: of the build rows of a key, the one that a value of the probe row chooses.
    pub as_of: Option<AsOf>,
    /// Residual predicate on candidate pairs; of an as-of join on the pairs that it chose.
    pub filter: Option<Expr>,
    /// Output columns in order, as (new name, column); a column without a new name keeps its own, `None` is all columns. A
    /// column is named as in the output of all columns, or as `probe.x` or `build.y`; `probe.*` and `build.*` are the
    /// columns of that side in the output of all columns.
    pub select: Option<Vec<(Option<String>, String)>>,
    /// Put before the names of build columns.
    pub prefix: String,
    /// Appended to names of build columns that are taken, as by the probe side.
    pub suffix: String,
    /// For each column of the build an array of one value of its type, which probe rows without a match have instead of
    /// null, or `None` for null. No values at all are nulls in all columns.
    pub defaults: Vec<Option<ArrayRef>>,
    /// Whether outer joins that keep unmatched build rows give each key once, filled from the build side on these rows.
    /// `None` is yes where the key types are equal and no probe column is joined with several build columns.
    pub coalesce: Option<bool>,
    /// Largest number of output rows.
    pub limit: Option<usize>,
    /// How many rows of each side may share a key.
    pub validate: Validate,
}

impl Default for JoinOptions {
    fn default() -> Self {
        Self {
            on: None,
            join_type: JoinType::default(),
            as_of: None,
            filter: None,
            select: None,
            prefix: String::new(),
            suffix: "_right".to_owned(),
            defaults: Vec::new(),
            coalesce: None,
            limit: None,
            validate: Validate::default(),
        }
    }
}

/// The join of `build` with probe rows of the schema `probe`, and the positions of the probe columns that it reads where
/// these are not all: the join is then one of these columns alone.
pub(crate) fn plan_by_name(
    build: &PreparedBuild,
    options: &JoinOptions,
    probe: &SchemaRef,
) -> Result<(JoinSpec, Option<Vec<usize>>)> {
    let (schema, join_type) = (build.schema(), options.join_type);
    let pairs = key_pairs(build, options.on.as_deref(), probe)?;
    let searched = |as_of: &AsOf| Ok::<_, Error>((as_of.column(build, probe)?, as_of.clone()));
    let mut as_of = options.as_of.as_ref().map(searched).transpose()?;
    if as_of.is_some() {
        check_as_of(options)?;
    }
    // Each key of the build is looked up by the first probe column that is joined with it, and equal to the others.
    let mut also = pairs.clone();
    let mut on: Vec<(usize, usize)> = Vec::with_capacity(build.keys().len());
    for &key in build.keys() {
        let Some(&pair) = pairs.iter().find(|&&(of, _)| of == key) else {
            return internal_err!("key column {key} of the build is in no pair");
        };
        also.retain(|other| *other != pair);
        on.push(pair);
    }
    let coalesce = coalesces(options, &pairs, schema, probe)?;
    check_join_defaults(schema, join_type, &options.defaults)?;
    let (mut projection, mut out) = all_columns(build, options, coalesce, probe)?;
    if let Some(select) = &options.select {
        (projection, out) = select_columns(select, options, (&projection, &out), schema, probe)?;
    }

    let (builds, probes) = (schema.fields().len(), probe.fields().len());
    let searched = as_of.as_ref().map(|(column, _)| *column);
    let read = columns_read(options, (&pairs, searched), &projection, schema, probe)?;
    let all_read = read.len() == probes;
    if !all_read {
        let place = |column: usize| read.partition_point(|&other| other < column);
        for position in projection.iter_mut().filter(|position| **position >= builds) {
            *position = builds + if *position == builds + probes { read.len() } else { place(*position - builds) };
        }
        on.iter_mut().chain(&mut also).for_each(|(_, column)| *column = place(*column));
        as_of.iter_mut().for_each(|(column, _)| *column = place(*column));
    }
    let probe = if all_read { probe.clone() } else { probe.project(&read)?.into() };
    let spec = JoinSpec {
        on,
        join_type,
        null_equality: build.null_equality().to_vec(),
        filter: options.filter.clone(),
        projection: Some(projection),
        limit: options.limit,
        validate: options.validate,
        coalesce: coalesce && join_type.extends_build(),
        names: Some(out),
        also,
        as_of,
        defaults: options.defaults.clone(),
        ..JoinSpec::new(schema.clone(), probe)
    };
    Ok((spec, (!all_read).then_some(read)))
}

/// Refuses what an as-of join, which gives at most one row for each probe row as it comes, does not have.
fn check_as_of(options: &JoinOptions) -> Result<()> {
    let how = options.join_type;
    if how.is_build_driven() {
        return plan_err!(
            "an as-of join gives no rows of the build that no probe row chose; how={:?} is not possible, the kinds are \
             inner, left, semi, anti, mark",
            how.how()
        );
    }
    match options.validate {
        Validate::ManyToMany | Validate::ManyToOne => Ok(()),
        validate => plan_err!("validate={validate} is not checked by an as-of join, whose probe rows share build rows"),
    }
}

/// Whether each key is given once.
fn coalesces(options: &JoinOptions, pairs: &[(usize, usize)], build: &SchemaRef, probe: &SchemaRef) -> Result<bool> {
    let same_types = pairs.iter().all(|&(b, p)| build.field(b).data_type() == probe.field(p).data_type());
    let several = pairs.iter().find(|&&(b, p)| pairs.iter().any(|&(other, of)| of == p && other != b));
    let outer = options.join_type.extends_build();
    let coalesce = options.coalesce.unwrap_or(!outer || (same_types && several.is_none()));
    if coalesce && outer {
        if !same_types {
            return plan_err!(
                "coalesce=True needs key columns of one type on both sides; pass coalesce=False to keep both"
            );
        }
        if let Some(&(_, column)) = several {
            return plan_err!(
                "coalesce=True needs one value for the probe column {:?} on unmatched build rows, several build columns \
                 are joined with it; pass coalesce=False to keep them",
                probe.field(column).name()
            );
        }
    }
    Ok(coalesce)
}

/// Positions and names of all output columns: the probe's, the mark, the build's.
fn all_columns(
    build: &PreparedBuild,
    options: &JoinOptions,
    coalesce: bool,
    probe: &SchemaRef,
) -> Result<(Vec<usize>, Vec<String>)> {
    let (schema, join_type) = (build.schema(), options.join_type);
    let (builds, probes) = (schema.fields().len(), probe.fields().len());
    let mut projection: Vec<usize> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    if join_type.has_probe_columns() {
        projection.extend(builds..builds + probes);
        out.extend(probe.fields().iter().map(|field| field.name().clone()));
    }
    let mut added: Vec<(Option<&str>, &str)> = Vec::new();
    if join_type == JoinType::ProbeMark {
        projection.push(builds + probes);
        added.push((None, MARK));
    }
    if join_type.has_build_columns() {
        let keeps_keys = !join_type.pairs() || !coalesce;
        for i in (0..builds).filter(|i| keeps_keys || !build.keys().contains(i)) {
            projection.push(i);
            added.push((None, schema.field(i).name()));
        }
    }
    let taken: HashSet<String> = out.iter().cloned().collect();
    out.extend(names_of(options).choose(&added, &taken)?);
    Ok((projection, out))
}

/// How the columns of the build are named.
fn names_of(options: &JoinOptions) -> Names<'_> {
    Names { table: "build", prefix: &options.prefix, suffix: &options.suffix }
}

/// The probe columns that are keys, searched for, tested by the predicate or given.
fn columns_read(
    options: &JoinOptions,
    (pairs, searched): (&[(usize, usize)], Option<usize>),
    projection: &[usize],
    build: &SchemaRef,
    probe: &SchemaRef,
) -> Result<Vec<usize>> {
    let (builds, probes) = (build.fields().len(), probe.fields().len());
    let predicate = options.filter.as_ref().map(|filter| filter.bind(build, probe)).transpose()?;
    let tested = predicate.iter().flat_map(|predicate| predicate.columns());
    let tested = tested.filter(|(side, _)| *side == Side::Probe).map(|&(_, column)| column);
    let given = projection.iter().filter(|&&p| p >= builds && p < builds + probes).map(|p| p - builds);
    // A position in the predicate counts all columns.
    let all = 0..if options.filter.as_ref().is_some_and(Expr::has_positions) { probes } else { 0 };
    let read: BTreeSet<usize> =
        pairs.iter().map(|&(_, p)| p).chain(searched).chain(tested).chain(given).chain(all).collect();
    Ok(read.into_iter().collect())
}

/// All pairs (key column of the build, probe column) that `on` asks for, each once; without it the build's key names on
/// both sides. Every key column is in some pair.
pub(crate) fn key_pairs(
    build: &PreparedBuild,
    on: Option<&[(String, String)]>,
    probe: &SchemaRef,
) -> Result<Vec<(usize, usize)>> {
    let schema = build.schema();
    let name = |key: usize| schema.field(key).name();
    let keys: BTreeSet<usize> = build.keys().iter().copied().collect();
    let asked: Vec<(usize, &str)> = match on {
        None => build.keys().iter().map(|&key| (key, name(key).as_str())).collect(),
        Some(on) => {
            let refused = || {
                Error::Plan(format!(
                    "on names the build columns {:?}, the build was prepared on {:?}; prepare it on the columns that are \
                     joined",
                    on.iter().map(|(_, build)| build).collect::<Vec<_>>(),
                    build.keys().iter().map(|&key| name(key)).collect::<Vec<_>>()
                ))
            };
            let mut asked = Vec::with_capacity(on.len());
            for (of_probe, of_build) in on {
                let mut named = keys.iter().copied().filter(|&key| name(key) == of_build);
                match (named.next(), named.next()) {
                    (Some(key), None) => asked.push((key, of_probe.as_str())),
                    (Some(_), Some(_)) => {
                        return plan_err!(
                            "on names the build column {of_build:?}, of which the build has more than one as a key; use \
                             HashJoin, whose keys may be positions"
                        );
                    }
                    (None, _) => return Err(refused()),
                }
            }
            let missing = keys.iter().any(|key| !asked.iter().any(|(of, _)| of == key));
            if missing || (1..asked.len()).any(|i| asked[..i].contains(&asked[i])) {
                return Err(refused());
            }
            asked
        }
    };
    let mut pairs = Vec::with_capacity(asked.len());
    for (key, of_probe) in asked {
        let pair = (key, position(probe, of_probe, "probe")?);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// The columns that `select` asks for, as projection and names; `projection` and `out` are those of all of them.
fn select_columns(
    select: &[(Option<String>, String)],
    options: &JoinOptions,
    (projection, out): (&[usize], &[String]),
    build: &SchemaRef,
    probe: &SchemaRef,
) -> Result<(Vec<usize>, Vec<String>)> {
    let (how, names) = (options.join_type, names_of(options));
    let (builds, probes) = (build.fields().len(), probe.fields().len());
    let of_side = |side: &str, position: usize| (side == "probe") == (builds..builds + probes).contains(&position);
    let (of_build, of_probe) = (Positions::new(build, "build"), Positions::new(probe, "probe"));
    // None for a name that several columns of the output have.
    let mut of_output: HashMap<&str, Option<usize>> = HashMap::with_capacity(out.len());
    for (name, &position) in out.iter().zip(projection) {
        of_output.entry(name).and_modify(|known| *known = None).or_insert(Some(position));
    }
    let (mut positions, mut chosen) = (Vec::with_capacity(select.len()), Vec::with_capacity(select.len()));
    let mut choose = |position: usize, name: Option<&'_ str>, repeats: bool, own| {
        positions.push(position);
        chosen.push(Chosen { name: name.map(|name| Cow::Owned(name.to_owned())), repeats, own, names });
    };
    for (new, name) in select {
        // Who asks by address gets the column's own name.
        let is_address = |known: &&Option<usize>| {
            let own = known.filter(|&position| position < builds).map(|position| build.field(position).name());
            own.is_some_and(|own| name.strip_prefix("build.") == Some(own))
        };
        match (of_output.get(name.as_str()).filter(|known| !is_address(known)), name.split_once('.')) {
            (Some(&Some(position)), _) => choose(position, Some(new.as_ref().unwrap_or(name)), false, name),
            (Some(None), _) => {
                return plan_err!(
                    "select names {name:?}, of which the output has two, since the probe side repeats it; choose all of \
                     its columns by \"probe.*\", or rename one of them"
                );
            }
            (None, Some((side @ ("build" | "probe"), of_side_name))) => {
                let gives = if side == "build" { how.gives_columns() } else { how.has_probe_columns() };
                if !gives || (side == "build" && of_side_name != "*" && !how.has_build_columns()) {
                    return plan_err!("select names {name:?}, a {} join gives no {side} columns", how.how());
                }
                match (of_side_name, side) {
                    ("*", _) if new.is_some() => {
                        return plan_err!(
                            "select gives all columns of the {side} side one name; list {name:?} without a new name"
                        );
                    }
                    ("*", _) => {
                        let all = out.iter().zip(projection).filter(|&(_, &position)| of_side(side, position));
                        all.for_each(|(name, &position)| choose(position, Some(name), side == "probe", name));
                    }
                    (own, "build") => choose(of_build.get(own)?, new.as_deref(), false, own),
                    (own, _) => choose(builds + of_probe.get(own)?, Some(new.as_deref().unwrap_or(own)), false, own),
                }
            }
            (None, _) => {
                let all: Vec<String> = out.iter().map(|name| format!("{name:?}")).collect();
                return plan_err!(
                    "select names {name:?}, which the output does not have; it has {}, and \"probe.x\" and \"build.x\" \
                     reach any column",
                    all.join(", ")
                );
            }
        }
    }
    let names = settle(&chosen)?;
    Ok((positions, names))
}
