//! Values that stand in columns where a row is missing.

use arrow_array::{Array, ArrayRef};
use arrow_schema::Schema;

use super::{NONE, Selection, concat, gather};
use crate::cancel::Cancel;
use crate::error::{Result, plan_err};

/// Checks that `defaults` has for each column of `schema` one value of its type, or none; no defaults at all are fine too.
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) where it has not.
pub(crate) fn check_defaults(schema: &Schema, defaults: &[Option<ArrayRef>]) -> Result<()> {
    let fields = schema.fields();
    if !defaults.is_empty() && defaults.len() != fields.len() {
        return plan_err!("{} defaults were given for {} columns", defaults.len(), fields.len());
    }
    for (field, default) in fields.iter().zip(defaults) {
        if let Some(default) = default.as_ref().filter(|one| one.len() != 1 || one.data_type() != field.data_type()) {
            return plan_err!(
                "a default of column {:?} is one value of type {}, {} of type {} were given",
                field.name(),
                field.data_type(),
                default.len(),
                default.data_type()
            );
        }
    }
    Ok(())
}

/// `found`, the values of `rows`, with `default` where the row is [`NONE`].
///
/// # Errors
/// As of [`concat`] and [`gather`].
pub(crate) fn or_default(
    found: ArrayRef,
    default: Option<&ArrayRef>,
    rows: &[u32],
    cancel: &Cancel,
) -> Result<ArrayRef> {
    let Some(default) = default.filter(|_| rows.contains(&NONE)) else { return Ok(found) };
    let last = found.len() as u32;
    let both = concat(&[found, default.clone()], cancel)?;
    let place = |(i, &row): (usize, &u32)| if row == NONE { last } else { i as u32 };
    let places: Vec<u32> = rows.iter().enumerate().map(place).collect();
    gather(&both, Selection::try_new(&places, both.len())?)
}
