//! The dicts that are given back: copies of the caller's rows, and values straight from the columns of the builds.

use std::sync::Arc;

use arrow_array::ArrayRef;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

use crate::index::NONE;
use crate::prepare::PreparedBuild;
use crate::python::values::objects::{Distinct, Objects, Rows};

/// Rows that are made before signals are looked for and other threads may run.
const CHUNK: usize = 8192;

/// One name of the dicts that are made.
pub(super) struct Entry {
    pub(super) name: Py<PyString>,
    pub(super) from: From,
}

/// Where the value of a name comes from.
pub(super) enum From {
    /// The caller's value of this name; nothing where the row does not have it.
    Given(Py<PyString>),
    Build(BuildColumn),
    /// Whether the row has a match on this side.
    Mark(usize),
    /// The caller's value of this name, and that of the build where the row comes from the build alone.
    Key(Py<PyString>, BuildColumn),
}

/// A column of a build.
pub(super) struct BuildColumn {
    /// 0 is the probe side.
    side: usize,
    build: Arc<PreparedBuild>,
    column: usize,
    objects: Objects,
    /// The value of rows without a match, as an array of one; `None` for None.
    default: Option<ArrayRef>,
}

impl BuildColumn {
    pub(super) fn try_new(py: Python<'_>, side: usize, build: &Arc<PreparedBuild>, column: usize) -> PyResult<Self> {
        let objects = Objects::try_new(py, build.rows_schema().field(column))?;
        Ok(Self { side, build: Arc::clone(build), column, objects, default: None })
    }

    /// The same column with its value of rows without a match, if it is among those of all columns.
    pub(super) fn with_default(mut self, defaults: &[Option<ArrayRef>]) -> Self {
        self.default = defaults.get(self.column).cloned().flatten();
        self
    }

    /// The position in the build.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// The value of one row.
    pub(super) fn one<'py>(&self, py: Python<'py>, row: u32) -> PyResult<Bound<'py, PyAny>> {
        self.objects.one(py, self.build.column(self.column)?, row as usize)
    }

    /// The value in an array of one value of the column's type.
    pub(super) fn of_array<'py>(&self, py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
        self.objects.one(py, array, 0)
    }

    /// Whether one object may be given to several rows.
    pub(super) fn shared(&self) -> bool {
        self.objects.shared()
    }

    /// A new object for each of `rows`.
    pub(super) fn fresh<'py>(&self, py: Python<'py>, rows: &[u32]) -> PyResult<Values<'py>> {
        Ok(Values { made: self.made(py, rows)?, places: None })
    }

    fn made<'py>(&self, py: Python<'py>, rows: &[u32]) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut made = self.objects.all(py, self.build.column(self.column)?, Rows::Chosen(rows))?;
        if let Some(default) = &self.default {
            for (value, _) in made.iter_mut().zip(rows).filter(|(_, row)| **row == NONE) {
                *value = self.of_array(py, default)?;
            }
        }
        Ok(made)
    }

    /// The values of some rows; objects that cannot be changed are made once for each row of `distinct`.
    pub(super) fn values<'py>(
        &self,
        py: Python<'py>,
        rows: &[u32],
        distinct: &Option<Arc<Distinct>>,
    ) -> PyResult<Values<'py>> {
        match distinct {
            Some(distinct) if self.objects.shared() => {
                Ok(Values { made: self.made(py, &distinct.rows)?, places: Some(Arc::clone(distinct)) })
            }
            _ => self.fresh(py, rows),
        }
    }
}

/// Values of some rows.
pub(super) struct Values<'py> {
    made: Vec<Bound<'py, PyAny>>,
    places: Option<Arc<Distinct>>,
}

impl<'py> Values<'py> {
    pub(super) fn get(&self, row: usize) -> &Bound<'py, PyAny> {
        match &self.places {
            Some(distinct) => &self.made[distinct.places[row] as usize],
            None => &self.made[row],
        }
    }
}

/// The rows of a side, most of them once, where enough of them repeat.
pub(super) fn distinct(rows: &[u32], build: &PreparedBuild) -> Option<Arc<Distinct>> {
    let distinct = Distinct::of(rows, build.num_rows());
    (distinct.rows.len() < rows.len() / 8 * 7).then(|| Arc::new(distinct))
}

/// Lets other threads run and Ctrl-C through.
pub(super) fn breathe(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    py.detach(|| ());
    Ok(())
}

/// What the dicts of an output hold.
pub(super) struct Output {
    /// Each dict begins as a copy of the caller's row.
    pub(super) keeps_row: bool,
    /// In their order; with `keeps_row` those of the caller's row too, for rows of the build alone.
    pub(super) entries: Vec<Entry>,
}

impl Output {
    /// Whether a column of a build comes out, but for keys that are the caller's.
    pub(super) fn gives(&self, column: usize) -> bool {
        self.entries.iter().any(|entry| matches!(&entry.from, From::Build(of) if of.column() == column))
    }

    /// The dicts of `count` rows. `sides` holds the row numbers of the probe side, which are rows of `given`, and of the
    /// builds; [`NONE`] where a side has no row.
    pub(super) fn dicts<'py>(
        &self,
        py: Python<'py>,
        given: &[Bound<'py, PyDict>],
        count: usize,
        sides: &[Option<Vec<u32>>],
    ) -> PyResult<Bound<'py, PyList>> {
        let mut dicts = Vec::with_capacity(count);
        for start in (0..count).step_by(CHUNK) {
            if start > 0 {
                breathe(py)?;
            }
            let end = count.min(start + CHUNK);
            let part = |side: usize| sides.get(side).and_then(Option::as_ref).map_or(&[][..], |rows| &rows[start..end]);
            self.chunk(py, given, end - start, sides.len(), part, &mut dicts)?;
        }
        PyList::new(py, dicts)
    }

    fn chunk<'py, 'a>(
        &self,
        py: Python<'py>,
        given: &[Bound<'py, PyDict>],
        count: usize,
        sides: usize,
        part: impl Fn(usize) -> &'a [u32],
        dicts: &mut Vec<Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        // For each side that values come from.
        let mut repeated: Vec<Option<Option<Arc<Distinct>>>> = vec![None; sides];
        let mut values = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            values.push(match &entry.from {
                From::Given(_) | From::Mark(_) => None,
                From::Build(column) | From::Key(_, column) => {
                    let rows = part(column.side);
                    let distinct = repeated[column.side].get_or_insert_with(|| distinct(rows, &column.build));
                    Some(column.values(py, rows, distinct)?)
                }
            });
        }
        let of_builds: Vec<(usize, &Entry)> =
            self.entries.iter().enumerate().filter(|(_, e)| e.is_of_builds()).collect();
        let probe = part(0);
        let none = py.None().into_bound(py);
        for at in 0..count {
            let row = probe.get(at).filter(|&&row| row != NONE).map(|&row| &given[row as usize]);
            let value = |i: usize| values[i].as_ref().map_or(&none, |values| values.get(at));
            if let Some(row) = row.filter(|_| self.keeps_row) {
                let dict = row.copy()?;
                for &(i, entry) in &of_builds {
                    match entry.from {
                        From::Mark(side) => dict.set_item(&entry.name, mark(py, part(side)[at]))?,
                        _ => dict.set_item(&entry.name, value(i))?,
                    }
                }
                dicts.push(dict);
                continue;
            }
            let dict = PyDict::new(py);
            for (i, entry) in self.entries.iter().enumerate() {
                match (&entry.from, row) {
                    (From::Build(_), _) | (From::Key(..), None) => dict.set_item(&entry.name, value(i))?,
                    (From::Mark(side), _) => dict.set_item(&entry.name, mark(py, part(*side)[at]))?,
                    (From::Given(_), None) => dict.set_item(&entry.name, &none)?,
                    (From::Given(name) | From::Key(name, _), Some(row)) => {
                        if let Some(value) = row.get_item(name)? {
                            dict.set_item(&entry.name, value)?;
                        }
                    }
                }
            }
            dicts.push(dict);
        }
        Ok(())
    }
}

impl Entry {
    /// True for what a copy of the caller's row does not have.
    fn is_of_builds(&self) -> bool {
        matches!(self.from, From::Build(_) | From::Mark(_))
    }
}

fn mark(py: Python<'_>, row: u32) -> Bound<'_, PyBool> {
    PyBool::new(py, row != NONE).to_owned()
}
