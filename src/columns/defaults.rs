//! Values for columns where a row is missing.

use arrow_array::{Array, ArrayRef};
use arrow_schema::Schema;

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
