//! Planning a join with a prepared build by the names of columns: which columns are keys, how the output columns are named,
//! and which probe columns are read at all.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_schema::SchemaRef;

use super::as_of::AsOf;
use super::join_type::JoinType;
use super::spec::JoinSpec;
use super::validate::Validate;
use crate::columns::{Positions, names, position};
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
    /// column is named as in the output of all columns, or as `probe.x` or `build.y`.
    pub select: Option<Vec<(Option<String>, String)>>,
    /// Appended to names of build columns that the probe side has too.
    pub suffix: String,
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
            suffix: "_right".to_owned(),
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
    let (mut projection, mut out) = all_columns(build, options, coalesce, probe);
    if let Some(select) = &options.select {
        (projection, out) = select_columns(select, join_type, (&projection, &out), schema, probe)?;
    }
    check_names((&projection, &out), options, schema, probe)?;

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
) -> (Vec<usize>, Vec<String>) {
    let (schema, join_type) = (build.schema(), options.join_type);
    let (builds, probes) = (schema.fields().len(), probe.fields().len());
    let mut projection: Vec<usize> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    if join_type.has_probe_columns() {
        projection.extend(builds..builds + probes);
        out.extend(probe.fields().iter().map(|field| field.name().clone()));
    }
    if join_type == JoinType::ProbeMark {
        projection.push(builds + probes);
        out.push("mark".to_owned());
    }
    if join_type.has_build_columns() {
        let both = join_type.pairs();
        let probe_names: HashSet<&String> = probe.fields().iter().map(|field| field.name()).collect();
        for i in (0..builds).filter(|i| !both || !coalesce || !build.keys().contains(i)) {
            projection.push(i);
            let name = schema.field(i).name();
            let clashes = both && probe_names.contains(name);
            out.push(if clashes { format!("{name}{}", options.suffix) } else { name.clone() });
        }
    }
    (projection, out)
}

/// Refuses two output columns of one name, unless it is the probe side that repeats the name.
fn check_names(
    (projection, out): (&[usize], &[String]),
    options: &JoinOptions,
    build: &SchemaRef,
    probe: &SchemaRef,
) -> Result<()> {
    let probe_part = if options.join_type.has_probe_columns() { probe.fields().len() } else { 0 };
    let mut seen = HashSet::new();
    for (i, name) in out.iter().enumerate() {
        if !seen.insert(name) && (i >= probe_part || options.select.is_some()) {
            // The build side itself repeats the name.
            let repeated = projection.get(i).filter(|&&p| p < build.fields().len()).is_some_and(|&p| {
                let of_build = build.field(p).name();
                build.fields().iter().filter(|field| field.name() == of_build).count() > 1
            });
            let advice = match options.join_type {
                _ if repeated && options.select.is_none() => {
                    "the build side has it twice; choose other columns by select=, or use HashJoin, which gives both, and \
                     whose projection may be positions"
                }
                _ if options.select.is_some() => "rename one by select={new name: name}",
                JoinType::ProbeMark => "rename the probe column, or choose columns by select=",
                _ => "choose another suffix=, or columns by select=",
            };
            return plan_err!(
                "the output would have two columns {name:?}; {advice} (probe columns: {}; build columns: {})",
                names(probe),
                names(build)
            );
        }
    }
    Ok(())
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
fn key_pairs(build: &PreparedBuild, on: Option<&[(String, String)]>, probe: &SchemaRef) -> Result<Vec<(usize, usize)>> {
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
    how: JoinType,
    (projection, out): (&[usize], &[String]),
    build: &SchemaRef,
    probe: &SchemaRef,
) -> Result<(Vec<usize>, Vec<String>)> {
    let (of_build, of_probe) = (Positions::new(build, "build"), Positions::new(probe, "probe"));
    // None for a name that several columns of the output have.
    let mut of_output: HashMap<&str, Option<usize>> = HashMap::with_capacity(out.len());
    for (name, &position) in out.iter().zip(projection) {
        of_output.entry(name).and_modify(|known| *known = None).or_insert(Some(position));
    }
    let column = |(new, name): &(Option<String>, String)| -> Result<(usize, String)> {
        let (position, own) = match (of_output.get(name.as_str()), name.split_once('.')) {
            (Some(&Some(position)), _) => (position, name.as_str()),
            (Some(None), _) => {
                return plan_err!(
                    "select names {name:?}, of which the output has two; say \"probe.{name}\" or \"build.{name}\""
                );
            }
            (None, Some((side @ ("build" | "probe"), _)))
                if !(if side == "build" { how.has_build_columns() } else { how.has_probe_columns() }) =>
            {
                return plan_err!("select names {name:?}, a {} join gives no {side} columns", how.how());
            }
            (None, Some(("build", own))) => (of_build.get(own)?, own),
            (None, Some(("probe", own))) => (build.fields().len() + of_probe.get(own)?, own),
            (None, _) => {
                let all: Vec<String> = out.iter().map(|name| format!("{name:?}")).collect();
                return plan_err!(
                    "select names {name:?}, which the output does not have; it has {}, and \"probe.x\" and \"build.x\" \
                     reach any column",
                    all.join(", ")
                );
            }
        };
        Ok((position, new.clone().unwrap_or_else(|| own.to_owned())))
    };
    Ok(select.iter().map(column).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}
