//! A join as text.

use std::fmt::Display;

use arrow_schema::SchemaRef;

use super::as_of::AsOf;
use super::declared::{Declared, Sides};
use super::spec::JoinSpec;
use super::validate::Validate;
use crate::columns::Positions;
use crate::expr::{ColumnId, ColumnRef, Side};
use crate::prepare::NullEquality;

/// How [`HashJoin::explain`](crate::HashJoin::explain) writes a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExplainFormat {
    /// One line: the join and its options.
    #[default]
    Indent,
    /// A drawing: the options, one a line, and both inputs below.
    Tree,
}

/// The join as text. See [`HashJoin::explain`](crate::HashJoin::explain).
pub(crate) fn explain(
    spec: &JoinSpec,
    sides: Sides<'_>,
    dynamic_filter: Option<&dyn Display>,
    format: ExplainFormat,
) -> String {
    let mut options = options(spec);
    if let Some(filter) = dynamic_filter {
        options.push(format!("dynamic_filter={filter}"));
    }
    if let Some(prepared) = sides.attached {
        options.push(format!("prepared_build={} rows", prepared.num_rows()));
    }
    let lines = match format {
        ExplainFormat::Indent => vec![format!("HashJoin: {}", options.join(", "))],
        ExplainFormat::Tree => {
            let build = match sides.attached {
                Some(_) => format!("Placeholder, columns=[{}]", columns(spec.build_schema())),
                None => source(spec.build_schema(), sides.build),
            };
            let mut lines = vec!["HashJoin".to_owned()];
            lines.extend(options.iter().map(|option| format!("│   {option}")));
            lines.push(format!("├── build: {build}"));
            lines.push(format!("└── probe: {}", source(spec.probe_schema(), sides.probe)));
            lines
        }
    };
    lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
}

fn options(spec: &JoinSpec) -> Vec<String> {
    let (build, probe) = (Positions::new(spec.build_schema(), "build"), Positions::new(spec.probe_schema(), "probe"));
    let build_column = |i| column(Side::Build, &build, i);
    let probe_column = |i| column(Side::Probe, &probe, i);
    let pair = |(b, p): (usize, usize)| format!("({}, {})", build_column(b), probe_column(p));
    let mut options = vec![
        format!("mode={}", spec.mode),
        format!("join_type={}", spec.join_type),
        format!("on=[{}]", spec.pairs().map(pair).collect::<Vec<_>>().join(", ")),
    ];
    if let Some((probe, as_of)) = &spec.as_of {
        let as_of = AsOf { probe: Some(probe_column(*probe)), ..as_of.clone() };
        options.push(format!("asof={as_of}"));
    }
    if let Some(filter) = &spec.filter {
        options.push(format!("filter={filter}"));
    }
    if let Some(projection) = &spec.projection {
        let (builds, probes) = (spec.build_schema().fields().len(), spec.probe_schema().fields().len());
        let name = |&position: &usize| match position {
            p if p < builds => build_column(p),
            p if p == builds + probes => "mark".to_owned(),
            p => probe_column(p - builds),
        };
        options.push(format!("projection=[{}]", list(projection, name)));
    }
    if let Some(limit) = spec.limit {
        options.push(format!("limit={limit}"));
    }
    if spec.null_aware {
        options.push("null_aware=true".to_owned());
    }
    if spec.validate != Validate::default() {
        options.push(format!("validate={}", spec.validate));
    }
    options.push(match spec.null_equality.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => format!("null_equality={first:?}"),
        each => format!("null_equality=[{}]", list(each, |each: &NullEquality| format!("{each:?}"))),
    });
    options
}

/// A column by name, or by position where its name is not unique.
fn column(side: Side, columns: &Positions<'_>, i: usize) -> String {
    let id = match columns.unique_name(i) {
        Some(name) => ColumnId::Name(name.to_owned()),
        None => ColumnId::Position(i),
    };
    ColumnRef { side: Some(side), id, at: None }.to_string()
}

fn columns(schema: &SchemaRef) -> String {
    list(schema.fields(), |field| format!("{}: {}", field.name(), field.data_type()))
}

fn source(schema: &SchemaRef, declared: &Declared) -> String {
    let mut text = format!("Source, partitions={}, columns=[{}]", declared.partitions, columns(schema));
    if let Some(rows) = declared.rows {
        text += &format!(", rows={rows}");
    }
    if !declared.ordering.is_empty() {
        let name = |&position: &usize| match schema.fields().get(position) {
            Some(field) => field.name().clone(),
            None => position.to_string(),
        };
        text += &format!(", ordered_by=[{}]", list(&declared.ordering, name));
    }
    text
}

fn list<'a, T: 'a>(items: impl IntoIterator<Item = &'a T>, text: impl Fn(&'a T) -> String) -> String {
    items.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Names and literals may hold line breaks and other control characters.
fn one_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        if c.is_control() {
            line.extend(c.escape_default())
        } else {
            line.push(c)
        }
        line
    })
}
