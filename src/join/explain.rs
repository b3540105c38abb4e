//! A join as text.

use super::validate::Validate;
use crate::columns::position;
use crate::expr::{ColumnId, ColumnRef, Side};
use crate::prepare::NullEquality;
use crate::run::HashJoin;
use crate::run::Source;

/// How [`HashJoin::explain`] writes a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExplainFormat {
    /// One line: the join and what was chosen for it.
    #[default]
    Indent,
    /// A drawing: what was chosen, one a line, and both inputs below.
    Tree,
}

impl HashJoin {
    /// The join as text. It says what is set, also where that is not valid any more.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use prejoin::{ExplainFormat, HashJoin};
    ///
    /// let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    /// let join = HashJoin::builder(schema.clone(), schema).on([("id", "id")]).limit(Some(10)).build()?;
    /// assert_eq!(
    ///     join.explain(ExplainFormat::Indent),
    ///     "HashJoin: mode=CollectLeft, join_type=Inner, on=[(build.id, probe.id)], limit=10, \
    ///      null_equality=NullEqualsNothing"
    /// );
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn explain(&self, format: ExplainFormat) -> String {
        let parts = self.parts();
        let lines = match format {
            ExplainFormat::Indent => vec![format!("HashJoin: {}", parts.join(", "))],
            ExplainFormat::Tree => {
                let mut lines = vec!["HashJoin".to_owned()];
                lines.extend(parts.iter().map(|part| format!("│   {part}")));
                lines.push(format!("├── build: {}", describe(self.build_source())));
                lines.push(format!("└── probe: {}", describe(self.probe_source())));
                lines
            }
        };
        lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
    }

    fn parts(&self) -> Vec<String> {
        let (build, probe) = (self.build_source().schema().fields().len(), self.probe_source().schema().fields().len());
        let column = |side| move |position| self.column(side, position);
        let pair =
            |(b, p): (usize, usize)| format!("({}, {})", self.column(Side::Build, b), self.column(Side::Probe, p));
        let mut parts = vec![
            format!("mode={}", self.mode),
            format!("join_type={}", self.join_type),
            format!("on=[{}]", self.pairs().map(pair).collect::<Vec<_>>().join(", ")),
        ];
        if let Some(filter) = &self.filter {
            parts.push(format!("filter={filter}"));
        }
        if let Some(projection) = &self.projection {
            let name = |&position: &usize| match position {
                p if p < build => column(Side::Build)(p),
                p if p == build + probe => "mark".to_owned(),
                p => column(Side::Probe)(p - build),
            };
            parts.push(format!("projection=[{}]", list(projection, name)));
        }
        if let Some(limit) = self.limit {
            parts.push(format!("limit={limit}"));
        }
        if self.null_aware {
            parts.push("null_aware=true".to_owned());
        }
        if self.validate != Validate::default() {
            parts.push(format!("validate={}", self.validate));
        }
        parts.push(match self.null_equality.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => format!("null_equality={first:?}"),
            each => format!("null_equality=[{}]", list(each, |each: &NullEquality| format!("{each:?}"))),
        });
        if let Some(filter) = self.dynamic_filter() {
            parts.push(format!("dynamic_filter={filter}"));
        }
        if let Some(prepared) = self.prepared_build() {
            parts.push(format!("prepared_build={} rows", prepared.num_rows()));
        }
        parts
    }

    /// A column by name, or by position where its name is not unique.
    fn column(&self, side: Side, i: usize) -> String {
        let source = match side {
            Side::Build => self.build_source(),
            Side::Probe => self.probe_source(),
        };
        let name = source.schema().fields().get(i).map(|field| field.name());
        let id = match name.filter(|name| position(source.schema(), name, "").is_ok()) {
            Some(name) => ColumnId::Name(name.clone()),
            None => ColumnId::Position(i),
        };
        ColumnRef { side: Some(side), id, at: None }.to_string()
    }
}

fn describe(source: &Source) -> String {
    let columns = list(source.schema().fields(), |field| format!("{}: {}", field.name(), field.data_type()));
    if source.is_placeholder() {
        return format!("Placeholder, columns=[{columns}]");
    }
    let mut text = format!("Source, partitions={}, columns=[{columns}]", source.partitions());
    if let Some(rows) = source.num_rows() {
        text += &format!(", rows={rows}");
    }
    if !source.ordering().is_empty() {
        let name = |&position: &usize| match source.schema().fields().get(position) {
            Some(field) => field.name().clone(),
            None => position.to_string(),
        };
        text += &format!(", ordered_by=[{}]", list(source.ordering(), name));
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
