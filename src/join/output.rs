//! The output columns of a join, and what each is copied from.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::JoinType;
use crate::columns::can_hold_nulls;
use crate::error::{Result, plan_err};

/// One output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputColumn {
    /// Column of the build side.
    Build(usize),
    /// Column of the probe side.
    Probe(usize),
    /// A key column of the probe side, filled from the build side on unmatched build rows.
    Key {
        /// Column of the build side.
        build: usize,
        /// Column of the probe side.
        probe: usize,
    },
    /// Whether the probe row has a match.
    Mark,
}

impl OutputColumn {
    /// Position in (build columns, probe columns, mark).
    pub(crate) fn position(self, build_columns: usize, probe_columns: usize) -> usize {
        match self {
            OutputColumn::Build(i) => i,
            OutputColumn::Probe(i) | OutputColumn::Key { probe: i, .. } => build_columns + i,
            OutputColumn::Mark => build_columns + probe_columns,
        }
    }
}

/// What an output column of rows that were found by probing is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ColumnOrigin {
    /// Copied from the build side.
    Build(usize),
    /// Copied from the probe side.
    Probe(usize),
    /// The same array as an earlier output column.
    Output(usize),
    /// Made from the matches.
    Mark,
}

/// The output of a join.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<OutputColumn>,
    /// One per column.
    pub(crate) origins: Vec<ColumnOrigin>,
}

/// The name of the column that a mark join adds.
pub(crate) const MARK: &str = "mark";

impl Output {
    /// The output columns of `join_type`: build columns, then probe columns, then the mark; or those of them that
    /// `projection` names by their position in (build columns, probe columns, mark). `on` holds the key pairs as
    /// (build column, probe column); with `coalesce`, a probe key is filled from the build on unmatched build rows.
    pub(crate) fn try_new(
        join_type: JoinType,
        build: &SchemaRef,
        probe: &SchemaRef,
        on: &[(usize, usize)],
        projection: Option<&[usize]>,
        coalesce: bool,
    ) -> Result<Self> {
        let (builds, probes) = (build.fields().len(), probe.fields().len());
        let column = |position: usize| -> Result<OutputColumn> {
            let column = match position {
                p if p < builds => OutputColumn::Build(p),
                p if p < builds + probes => match on.iter().find(|&&(_, probe)| coalesce && probe == p - builds) {
                    Some(&(build, probe)) => OutputColumn::Key { build, probe },
                    None => OutputColumn::Probe(p - builds),
                },
                p if p == builds + probes && join_type == JoinType::ProbeMark => OutputColumn::Mark,
                _ => {
                    return plan_err!(
                        "projection names column {position}, the join has {builds} build columns and {probes} probe columns"
                    );
                }
            };
            let given = match column {
                OutputColumn::Build(_) => join_type.has_build_columns(),
                OutputColumn::Probe(_) | OutputColumn::Key { .. } | OutputColumn::Mark => join_type.has_probe_columns(),
            };
            if !given {
                return plan_err!(
                    "projection names column {position}, a {join_type} join gives no columns of that side"
                );
            }
            Ok(column)
        };
        let all = (0..builds + probes + usize::from(join_type == JoinType::ProbeMark))
            .filter(|&position| column(position).is_ok());
        let columns: Vec<OutputColumn> = match projection {
            Some(positions) => positions.iter().map(|&position| column(position)).collect::<Result<_>>()?,
            None => all.map(column).collect::<Result<_>>()?,
        };
        let kind = format_args!("{join_type} join");
        let fields: Vec<FieldRef> = columns
            .iter()
            .map(|column| match *column {
                OutputColumn::Build(i) => extended(&build.fields()[i], join_type.extends_probe(), kind),
                OutputColumn::Probe(i) => extended(&probe.fields()[i], join_type.extends_build(), kind),
                OutputColumn::Key { build: b, probe: p } => {
                    extended(&probe.fields()[p], join_type.extends_build() && build.field(b).is_nullable(), kind)
                }
                OutputColumn::Mark => Ok(Arc::new(Field::new(MARK, DataType::Boolean, false))),
            })
            .collect::<Result<_>>()?;
        // The probe side's schema metadata wins, as that of the side that streams.
        let mut metadata = build.metadata().clone();
        metadata.extend(probe.metadata().iter().map(|(key, value)| (key.clone(), value.clone())));
        let origins = origins(join_type, build, probe, on, &columns);
        Ok(Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), columns, origins })
    }
}

impl Output {
    /// The columns of the build side that output is copied from, some more than once.
    pub(crate) fn build_columns(&self, join_type: JoinType) -> impl Iterator<Item = usize> + '_ {
        let beside_matches = self.origins.iter().filter_map(|origin| match *origin {
            ColumnOrigin::Build(column) => Some(column),
            _ => None,
        });
        let of_rest = self.columns.iter().filter_map(move |column| match *column {
            OutputColumn::Build(column) | OutputColumn::Key { build: column, .. } if join_type.is_build_driven() => {
                Some(column)
            }
            _ => None,
        });
        beside_matches.chain(of_rest)
    }

    /// The same columns with other names.
    pub(crate) fn with_names(mut self, names: &[String]) -> Result<Self> {
        if names.len() != self.columns.len() {
            return plan_err!("{} names were given for {} output columns", names.len(), self.columns.len());
        }
        let rename = |(field, name): (&FieldRef, &String)| match field.name() == name {
            true => field.clone(),
            false => Arc::new(field.as_ref().clone().with_name(name)),
        };
        let fields: Vec<FieldRef> = self.schema.fields().iter().zip(names).map(rename).collect();
        self.schema = Arc::new(Schema::new_with_metadata(fields, self.schema.metadata().clone()));
        Ok(self)
    }
}

/// The field, made nullable where `nullable`; an error where its type cannot hold nulls. `by` names what gives the nulls.
pub(crate) fn extended(field: &FieldRef, nullable: bool, by: impl Display) -> Result<FieldRef> {
    if nullable && !can_hold_nulls(field.data_type()) {
        return plan_err!(
            "a {by} gives nulls in column {:?}, which its type {} has no place for; make a child of it \
             nullable, or leave the column out",
            field.name(),
            field.data_type()
        );
    }
    Ok(match nullable && !field.is_nullable() {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => field.clone(),
    })
}

fn origins(
    join_type: JoinType,
    build: &SchemaRef,
    probe: &SchemaRef,
    on: &[(usize, usize)],
    columns: &[OutputColumn],
) -> Vec<ColumnOrigin> {
    // With these join types, a build row that probing finds stands beside the probe row that matched it.
    let matched = matches!(join_type, JoinType::Inner | JoinType::BuildOuter);
    let origin = |column: OutputColumn| match column {
        // Reading the key from the probe row is sequential, from the build row random.
        OutputColumn::Build(i) => on
            .iter()
            .find(|&&(key, from)| {
                matched && key == i && copies(build.field(key).data_type(), probe.field(from).data_type())
            })
            .map_or(ColumnOrigin::Build(i), |&(_, from)| ColumnOrigin::Probe(from)),
        OutputColumn::Probe(i) | OutputColumn::Key { probe: i, .. } => ColumnOrigin::Probe(i),
        OutputColumn::Mark => ColumnOrigin::Mark,
    };
    let direct: Vec<ColumnOrigin> = columns.iter().map(|&column| origin(column)).collect();
    let mut first = HashMap::with_capacity(direct.len());
    let of = |(i, origin): (usize, ColumnOrigin)| match *first.entry(origin).or_insert(i) {
        earlier if earlier < i => ColumnOrigin::Output(earlier),
        _ => origin,
    };
    direct.into_iter().enumerate().map(of).collect()
}

/// True where matching keys of both sides are the same bits: they have one type, whose equality is equality of bits.
fn copies(build: &DataType, probe: &DataType) -> bool {
    use DataType::{Binary, Boolean, FixedSizeBinary, Interval, LargeBinary, LargeUtf8, Utf8};
    let by_bits = match build {
        Boolean | FixedSizeBinary(_) | Utf8 | LargeUtf8 | Binary | LargeBinary => true,
        other => other.is_primitive() && !other.is_floating() && !matches!(other, Interval(_)),
    };
    by_bits && build == probe
}
