//! Casts that were asked for.

use arrow_array::new_empty_array;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};

use super::compare::Value;
use super::kind::{has_offset, offset_zone};
use super::tree::Expr;
use super::type_name::is_cast_target;
use crate::error::{Error, Result};

/// One cast between two types, chosen once at bind.
#[derive(Debug)]
pub(super) struct Cast {
    /// What the value is cast to one after the other.
    steps: Vec<DataType>,
    /// Null instead of an error.
    or_null: bool,
    /// For errors.
    text: String,
}

impl Cast {
    /// The cast, or why there is none.
    pub(super) fn new(from: &DataType, to: &DataType, or_null: bool, expr: &Expr) -> Result<Cast, String> {
        use DataType::Timestamp;
        if !is_cast_target(to) {
            return Err("which values are not cast to".to_owned());
        }
        // Arrow reads offsets only; another name of a zone changes no value.
        let mut steps = vec![from.clone()];
        if let (Timestamp(unit, Some(zone)), false) = (from, matches!(to, Timestamp(..))) {
            steps.push(Timestamp(*unit, Some(offset_zone(zone))));
        }
        if let (Timestamp(unit, Some(zone)), false) = (to, matches!(from, Timestamp(_, Some(_)))) {
            if !has_offset(zone) {
                return Err("which needs a database of time zones; cast to UTC".to_owned());
            }
            steps.extend([Timestamp(*unit, Some(offset_zone(zone))), to.clone()]);
        } else {
            steps.push(to.clone());
        }
        if let (Timestamp(_, Some(zone)), false) = (from, matches!(to, Timestamp(..)) || to.is_integer())
            && !has_offset(zone)
        {
            return Err(format!("which needs the rules of zone {zone}; cast to a timestamp in UTC first"));
        }
        // Arrow itself says which types it casts.
        let mut sample = new_empty_array(from);
        for step in &steps {
            sample = cast_with_options(&sample, step, &options(or_null)).map_err(|_| "which is no cast".to_owned())?;
        }
        Ok(Cast { steps, or_null, text: expr.short() })
    }

    pub(super) fn evaluate(&self, value: &Value) -> Result<Value> {
        let mut array = value.array.clone();
        for step in &self.steps {
            if array.data_type() != step {
                array = cast_with_options(&array, step, &options(self.or_null)).map_err(|error| self.failed(&error))?;
            }
        }
        Ok(Value { array, scalar: value.scalar })
    }

    fn failed(&self, error: &ArrowError) -> Error {
        Error::Execution(format!("{} failed: {error}; TRY_CAST gives null instead", self.text))
    }
}

fn options(or_null: bool) -> CastOptions<'static> {
    CastOptions { safe: or_null, ..Default::default() }
}
