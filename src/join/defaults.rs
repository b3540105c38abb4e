//! Values for build columns of rows without a match.

use arrow_array::ArrayRef;
use arrow_schema::Schema;

use super::JoinType;
use crate::columns::check_defaults;
use crate::error::{Result, plan_err};

/// Checks that a join of this type may have these values for the columns of its build.
pub(super) fn check_join_defaults(build: &Schema, join_type: JoinType, defaults: &[Option<ArrayRef>]) -> Result<()> {
    if defaults.iter().any(Option::is_some) && !join_type.extends_probe() {
        return plan_err!(
            "default gives build columns of probe rows without a match a value; left and full joins return such rows, this \
             is a join of kind {}",
            join_type.how()
        );
    }
    check_defaults(build, defaults)
}
