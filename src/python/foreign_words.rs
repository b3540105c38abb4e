//! Arguments by the names that other libraries give them, each refused with what to write instead.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::errors::type_error;

/// What takes the arguments.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Callee {
    Prepare,
    Join,
    Leg,
    StarJoin,
}

impl Callee {
    fn name(self) -> &'static str {
        match self {
            Callee::Prepare => "prepare",
            Callee::Join => "join",
            Callee::Leg => "Leg",
            Callee::StarJoin => "StarJoin",
        }
    }

    fn parameters(self) -> &'static str {
        match self {
            Callee::Prepare => "source, on, schema, null_equal, keep, order_by, pool, config",
            Callee::Join => {
                "probe, build, on, how, where, select, prefix, suffix, default, coalesce, limit, batch_size, validate, \
                 dtype_backend"
            }
            Callee::Leg => {
                "build, on, how, where, prefix, suffix, select, default, validate, asof, strategy, tolerance, \
                 allow_exact_matches"
            }
            Callee::StarJoin => "legs, select, limit, batch_size",
        }
    }
}

/// Refuses arguments that `callee` does not have.
///
/// # Errors
/// TypeError, which says what to write instead where that is known.
pub(crate) fn refuse_unknown(callee: Callee, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(unknown) = unknown else { return Ok(()) };
    let Some((name, _)) = unknown.iter().next() else { return Ok(()) };
    let name = name.to_string();
    let advice = match advice(callee, &name, unknown) {
        Some(advice) => advice,
        None => format!("it takes {}", callee.parameters()),
    };
    Err(type_error(format!("{}() got an unexpected keyword argument '{name}'; {advice}", callee.name())))
}

fn advice(callee: Callee, name: &str, given: &Bound<'_, PyDict>) -> Option<String> {
    let shown = |name: &str| given.get_item(name).ok().flatten().map(|value| repr(&value)).unwrap_or_default();
    Some(match (name, callee) {
        ("nulls_equal" | "join_nulls" | "null_equality", Callee::Prepare) => "write null_equal=True".to_owned(),
        ("nulls_equal" | "join_nulls" | "null_equality" | "null_equal", _) => {
            "whether null keys match null keys is decided when the build is prepared: write prejoin.prepare(rows, on, \
             null_equal=True)"
                .to_owned()
        }
        ("left_on" | "right_on" | "by" | "keys" | "right_keys" | "on", Callee::StarJoin) => {
            "each leg has keys: write prejoin.StarJoin([prejoin.Leg(build, on={probe column: build column}), ..])"
                .to_owned()
        }
        ("by" | "keys" | "left_on" | "right_on" | "right_keys", Callee::Prepare) => {
            // Those of the build side, where both sides are named.
            let names = ["right_on", "right_keys", "by", "keys", "left_on"].into_iter();
            let found = names.map(shown).find(|shown| !shown.is_empty());
            format!("write on={}, the key columns of the build", found.unwrap_or_default())
        }
        ("by", _) => format!("write on={}", shown("by")),
        ("left_on" | "right_on" | "keys" | "right_keys", _) => {
            let of = |names: [&str; 2]| names.into_iter().find_map(|name| names_of(&given.get_item(name).ok()??));
            let pairs = of(["left_on", "keys"]).zip(of(["right_on", "right_keys"]));
            match pairs.filter(|(left, right)| left.len() == right.len()) {
                Some((left, right)) => {
                    let pair = |(left, right): (&String, &String)| format!("{left}: {right}");
                    let pairs: Vec<String> = left.iter().zip(&right).map(pair).collect();
                    format!("write on={{{}}}, that is {{probe column: build column}}", pairs.join(", "))
                }
                None => "write on={probe column: build column}".to_owned(),
            }
        }
        ("left_index" | "right_index", _) => {
            "an index is not a column; make it one, as by reset_index(), and name it in on=".to_owned()
        }
        ("suffixes" | "lsuffix" | "rsuffix" | "left_suffix" | "right_suffix", Callee::Join | Callee::Leg) => {
            let value = given.get_item(name).ok().flatten()?;
            let of_build = match name {
                "suffixes" => value.get_item(1).ok().map(|value| repr(&value)),
                "rsuffix" | "right_suffix" => Some(repr(&value)),
                _ => None,
            };
            format!(
                "write suffix={}, which is appended to names of build columns that are taken; names of probe columns stay",
                of_build.unwrap_or_else(|| "'_right'".to_owned())
            )
        }
        ("indicator", Callee::Join | Callee::Leg) => {
            "write how='mark', which adds a Boolean column mark: whether the probe row has a match".to_owned()
        }
        ("join_type" | "kind", Callee::Join | Callee::Leg) => format!("write how={}", shown(name)),
        ("coalesce_keys", Callee::Join) => format!("write coalesce={}", shown(name)),
        ("filter_expression" | "condition", Callee::Join | Callee::Leg) => {
            "write where=, a condition as SQL text or made with prejoin.col".to_owned()
        }
        ("sort" | "maintain_order", Callee::Join | Callee::Leg) => {
            "leave it out: rows come in the order of the probe side".to_owned()
        }
        ("columns", Callee::Join | Callee::Leg | Callee::StarJoin) => format!("write select={}", shown(name)),
        ("how" | "where" | "suffix" | "prefix" | "default" | "validate", Callee::StarJoin) => {
            format!("it belongs to a leg: write prejoin.Leg(build, {name}={})", shown(name))
        }
        _ => return None,
    })
}

fn repr(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "..".to_owned(), |repr| repr.to_string())
}

/// A name, or some names, as Python writes them.
fn names_of(given: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    if given.is_instance_of::<PyString>() {
        return Some(vec![repr(given)]);
    }
    let listed = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    let names: Vec<Bound<'_, PyAny>> = given.try_iter().ok().filter(|_| listed)?.collect::<PyResult<_>>().ok()?;
    names.iter().map(|name| name.is_instance_of::<PyString>().then(|| repr(name))).collect()
}
