//! `prejoin.Leg`.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};

use super::expr::{PyExpr, condition_of_tables};
use super::prepared::PyPreparedBuild;
use super::saved::PySharedBuild;
use crate::index::Strategy;
use crate::join::{JoinType, Leg, LegKey, Validate};
use crate::python::arguments::{join_type, pairs, selection, validate_of};
use crate::python::as_of::of_leg;
use crate::python::errors::{guarded, type_error};
use crate::python::foreign_words::{Callee, refuse_unknown};
use crate::python::interchange::type_name;
use crate::python::map::join_defaults;

/// One join of a StarJoin: a prepared build, and how rows are joined with it.
///
/// Args:
///     build: A PreparedBuild, also an opened one, or a SharedBuild, which is opened.
///     on: What the build's keys are looked up by: None for columns that have the names of the keys, a name, a list of
///         names, or {column: build key or keys}. A column is one of the probe side or of an earlier leg, also one that
///         does not come out: its name, or "probe.x" or "planes.model" with the leg's name. Several columns may meet
///         one key.
///     how: "inner", "left", "semi", "anti" or "mark".
///     where: A condition on matched pairs, SQL text or made with `col` and `lit`; null means "no". "build.x" is a
///         column of this build, "probe.x" one of the probe side, "planes.x" one of the leg of that name; a name alone
///         is that of the only column that has it.
///     prefix: Put before the name of each build column, and before "mark".
///     suffix: Appended to names of build columns that are taken; where that is taken too, the leg's name goes before
///         the column's.
///     select: The build columns that come out, a list or {new name: name}; all but the keys by default. Later legs
///         reach the others all the same.
///     default: What rows of a left join without a match have instead of null: {build column: value}, or one value for
///         all columns that come out. It is of the column's type. A later leg looks it up as any value.
///     validate: "m:m" checks nothing; "m:1" asks for a build with one row per key, "1:m" for rows of which no two
///         share a key of the build, "1:1" for both.
///     asof: For a build prepared with `order_by`: the column whose values choose one row of each key, a name as of
///         `on` or {column: order column}; this makes the leg an as-of join.
///     strategy: "backward", "forward" or "nearest", as for `join_asof`.
///     tolerance: Largest distance of the row that `asof` chooses.
///     allow_exact_matches: Whether `asof` takes rows at the value itself.
///
/// Raises:
///     PlanError: For a `how` or `validate` other than these, keys that the build does not have, a build that
///         `validate` refuses, a default of another type, and a condition that cannot be read.
///     TypeError: For anything but a build, and for arguments that do not exist.
///
/// Example:
///     >>> import prejoin, pyarrow as pa
///     >>> users = prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
///     >>> prejoin.Leg(users, on={"user": "id"}, how="left")
///     Leg(keys=['id'], rows=2, on={'user': 'id'}, how='left')
#[pyclass(name = "Leg", module = "prejoin", frozen)]
pub(crate) struct PyLeg {
    /// What was given: the build, or the handle that it was opened from, which pickles.
    given: Py<PyAny>,
    build: Py<PyPreparedBuild>,
    on: Option<Py<PyAny>>,
    select: Option<Py<PyAny>>,
    default: Option<Py<PyAny>>,
    asof: Option<Py<PyAny>>,
    tolerance: Option<Py<PyAny>>,
    leg: Leg,
}

#[pymethods]
impl PyLeg {
    #[new]
    #[pyo3(signature = (build, on=None, how="inner", *, r#where=None, prefix="", suffix="_right", select=None,
                        default=None, validate=None, asof=None, strategy="backward", tolerance=None,
                        allow_exact_matches=true, **unknown),
           text_signature = "(build, on=None, how='inner', *, where=None, prefix='', suffix='_right', select=None, \
                             default=None, validate=None, asof=None, strategy='backward', tolerance=None, \
                             allow_exact_matches=True)")]
    #[allow(clippy::too_many_arguments)] // the signature of the Python class
    fn new(
        build: &Bound<'_, PyAny>,
        on: Option<&Bound<'_, PyAny>>,
        how: &str,
        r#where: Option<&Bound<'_, PyAny>>,
        prefix: &str,
        suffix: &str,
        select: Option<&Bound<'_, PyAny>>,
        default: Option<&Bound<'_, PyAny>>,
        validate: Option<&str>,
        asof: Option<&Bound<'_, PyAny>>,
        strategy: &str,
        tolerance: Option<&Bound<'_, PyAny>>,
        allow_exact_matches: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        guarded(|| {
            refuse_unknown(Callee::Leg, unknown)?;
            let prepared = match (build.cast::<PyPreparedBuild>(), build.cast::<PySharedBuild>()) {
                (Ok(prepared), _) => prepared.clone(),
                (_, Ok(shared)) => shared.call_method0("open")?.cast_into::<PyPreparedBuild>()?,
                _ => {
                    return Err(type_error(format!(
                        "a leg joins with a PreparedBuild or a SharedBuild, {} was given; prejoin.prepare(rows, on=..) \
                         makes one of rows",
                        type_name(build)
                    )));
                }
            };
            let build_side = prepared.get().build.clone();
            let select_names = select.map(selection).transpose()?;
            let given = |column: usize| match &select_names {
                None => true,
                Some(select) => select.iter().any(|(_, name)| name == build_side.schema().field(column).name()),
            };
            let defaults = join_defaults(default, &build_side, given)?;
            let leg = Leg {
                build: build_side,
                on: on.map(keys).transpose()?,
                join_type: join_type(how)?,
                filter: r#where.map(condition_of_tables).transpose()?,
                prefix: prefix.to_owned(),
                suffix: suffix.to_owned(),
                select: select_names,
                defaults,
                validate: validate_of(validate)?,
                as_of: of_leg(asof, strategy, tolerance, allow_exact_matches)?,
            };
            leg.check()?;
            let (on, select) = (on.map(own).transpose()?, select.map(own).transpose()?);
            let default = default.map(own_value).transpose()?;
            let (asof, tolerance) = (asof.map(own).transpose()?, tolerance.map(|given| given.clone().unbind()));
            let (given, build) = (build.clone().unbind(), prepared.unbind());
            Ok(Self { given, build, on, select, default, asof, tolerance, leg })
        })
    }

    /// The build.
    #[getter]
    fn build<'py>(&self, py: Python<'py>) -> &Bound<'py, PyPreparedBuild> {
        self.build.bind(py)
    }

    /// What the keys are looked up by, as it was given.
    #[getter]
    fn on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.on.as_ref().map(|on| own(on.bind(py)).map(|on| on.into_bound(py))).transpose()
    }

    /// Which rows come out.
    #[getter]
    fn how(&self) -> &'static str {
        self.leg.join_type.how()
    }

    /// The condition on pairs.
    #[getter]
    fn r#where(&self) -> Option<PyExpr> {
        self.leg.filter.clone().map(PyExpr::from)
    }

    /// What is put before the names of the build columns.
    #[getter]
    fn prefix(&self) -> &str {
        &self.leg.prefix
    }

    /// What is appended to names that are taken.
    #[getter]
    fn suffix(&self) -> &str {
        &self.leg.suffix
    }

    /// The build columns that come out, as they were given.
    #[getter]
    fn select<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.select.as_ref().map(|select| own(select.bind(py)).map(|select| select.into_bound(py))).transpose()
    }

    /// What rows without a match have instead of null, as it was given.
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.default.as_ref().map(|default| own_value(default.bind(py)).map(|own| own.into_bound(py))).transpose()
    }

    /// How many rows of each side may share a key.
    #[getter]
    fn validate(&self) -> String {
        self.leg.validate.to_string()
    }

    /// The values that are searched for in the build's order, as they were given; None where keys alone decide.
    #[getter]
    fn asof<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.asof.as_ref().map(|asof| own(asof.bind(py)).map(|asof| asof.into_bound(py))).transpose()
    }

    /// Which row an as-of join takes.
    #[getter]
    fn strategy(&self) -> String {
        self.leg.as_of.as_ref().map_or(Strategy::default(), |as_of| as_of.strategy).to_string()
    }

    /// Largest distance of a match of an as-of join, as it was given.
    #[getter]
    fn tolerance(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.tolerance.as_ref().map(|tolerance| tolerance.clone_ref(py))
    }

    /// Whether an as-of join takes rows at the value itself.
    #[getter]
    fn allow_exact_matches(&self) -> bool {
        self.leg.as_of.as_ref().is_none_or(|as_of| as_of.allow_exact_matches)
    }

    /// Pickles where the build does.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        guarded(|| {
            let options = PyDict::new(py);
            options.set_item("on", self.on(py)?)?;
            options.set_item("how", self.how())?;
            options.set_item("where", self.r#where())?;
            options.set_item("prefix", self.prefix())?;
            options.set_item("suffix", self.suffix())?;
            options.set_item("select", self.select(py)?)?;
            options.set_item("default", self.default(py)?)?;
            options.set_item("validate", self.validate())?;
            options.set_item("asof", self.asof(py)?)?;
            options.set_item("strategy", self.strategy())?;
            options.set_item("tolerance", self.tolerance(py))?;
            options.set_item("allow_exact_matches", self.allow_exact_matches())?;
            Ok((PyTuple::new(py, [&self.given])?, options))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.given)?;
        visit.call(&self.build)?;
        visit.call(&self.on)?;
        visit.call(&self.asof)?;
        visit.call(&self.tolerance)?;
        visit.call(&self.select)?;
        visit.call(&self.default)
    }

    /// Never shows table contents.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let build = &self.leg.build;
        let names = build.keys().iter().map(|&key| format!("'{}'", build.schema().field(key).name()));
        let mut parts =
            vec![format!("keys=[{}]", names.collect::<Vec<_>>().join(", ")), format!("rows={}", build.num_rows())];
        if let Some(on) = &self.on {
            parts.push(format!("on={}", on.bind(py).repr()?));
        }
        if self.leg.join_type != JoinType::Inner {
            parts.push(format!("how='{}'", self.how()));
        }
        if let Some(filter) = &self.leg.filter {
            parts.push(format!("where={}", PyString::new(py, &filter.to_string()).repr()?));
        }
        if !self.leg.prefix.is_empty() {
            parts.push(format!("prefix={}", PyString::new(py, &self.leg.prefix).repr()?));
        }
        if self.leg.suffix != "_right" {
            parts.push(format!("suffix={}", PyString::new(py, &self.leg.suffix).repr()?));
        }
        if let Some(select) = &self.select {
            parts.push(format!("select={}", select.bind(py).repr()?));
        }
        if let Some(default) = &self.default {
            parts.push(format!("default={}", default.bind(py).repr()?));
        }
        if self.leg.validate != Validate::default() {
            parts.push(format!("validate='{}'", self.leg.validate));
        }
        if let Some(asof) = &self.asof {
            parts.push(format!("asof={}", asof.bind(py).repr()?));
        }
        if self.strategy() != "backward" {
            parts.push(format!("strategy='{}'", self.strategy()));
        }
        if let Some(tolerance) = &self.tolerance {
            parts.push(format!("tolerance={}", tolerance.bind(py).repr()?));
        }
        if !self.allow_exact_matches() {
            parts.push("allow_exact_matches=False".to_owned());
        }
        Ok(format!("Leg({})", parts.join(", ")))
    }
}

impl PyLeg {
    pub(crate) fn leg(&self) -> &Leg {
        &self.leg
    }

    /// The leg that an object is: a Leg, or a build that is joined on the names of its keys.
    pub(crate) fn of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        match object.cast::<Self>() {
            Ok(leg) => Ok(leg.clone()),
            Err(_) => {
                let py = object.py();
                py.get_type::<Self>().call1((object,))?.cast_into::<Self>().map_err(Into::into)
            }
        }
    }
}

/// True for what a leg can be made of alone.
pub(crate) fn is_leg(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyLeg>()
        || object.is_instance_of::<PyPreparedBuild>()
        || object.is_instance_of::<PySharedBuild>()
}

/// `on=` of a leg.
fn keys(on: &Bound<'_, PyAny>) -> PyResult<Vec<LegKey>> {
    let named = on.is_instance_of::<PyDict>();
    let key = |(column, key): (String, String)| LegKey { column, key: named.then_some(key) };
    Ok(pairs(on)?.into_iter().map(key).collect())
}

/// A name, or a list of names, or a mapping to names or lists of them, that nobody else changes.
fn own(given: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = given.py();
    if given.is_instance_of::<PyString>() {
        return Ok(given.clone().unbind());
    }
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let copy = PyDict::new(py);
        for item in mapping.items()?.iter() {
            let (name, of): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            copy.set_item(name, own(&of)?)?;
        }
        return Ok(copy.into_any().unbind());
    }
    let items = given.try_iter()?.map(|item| own(&item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any().unbind())
}

/// A value, or a mapping to values that nobody else changes.
fn own_value(given: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    match given.cast::<PyMapping>() {
        Ok(mapping) => {
            let copy = PyDict::new(given.py());
            copy.update(mapping)?;
            Ok(copy.into_any().unbind())
        }
        Err(_) => Ok(given.clone().unbind()),
    }
}

/// For `explain`: what the leg joins on.
pub(crate) fn on_text(leg: &Leg) -> String {
    let names: Vec<&str> = leg.build.keys().iter().map(|&key| leg.build.schema().field(key).name().as_str()).collect();
    let text = |key: &LegKey| match (&key.key, names.as_slice()) {
        (Some(name), _) if *name != key.column => format!("{} = {name}", key.column),
        (None, [name]) if *name != key.column => format!("{} = {name}", key.column),
        _ => key.column.clone(),
    };
    let keys = match &leg.on {
        None => names.join(", "),
        Some(on) => on.iter().map(text).collect::<Vec<_>>().join(", "),
    };
    let as_of = leg.as_of.as_ref().map(|as_of| format!("asof {as_of}"));
    match as_of {
        Some(as_of) if keys.is_empty() => as_of,
        Some(as_of) => format!("on {keys}, {as_of}"),
        None => format!("on {keys}"),
    }
}
