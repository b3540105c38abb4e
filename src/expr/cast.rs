//! Casts that were asked for.

use arrow_arith::arity::unary;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, PrimitiveArray, new_empty_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};

use super::compare::Value;
use super::kind::{Kind, has_offset, offset_zone, unit_scale};
use super::text;
use super::tree::Expr;
use super::type_name::is_cast_target;
use crate::error::{Error, Result};

/// One cast between two types, chosen once at bind.
#[derive(Debug)]
pub(super) struct Cast {
    /// What is done to the value one after the other.
    steps: Vec<Step>,
    /// Null instead of an error.
    or_null: bool,
    /// For errors.
    text: String,
}

#[derive(Debug)]
enum Step {
    /// Arrow's own cast.
    To(DataType),
    /// A count of units becomes that of a unit so many times as long, downwards also before 1970, where Arrow goes
    /// towards zero.
    Floor(i64, DataType),
    /// Text is read as constants are.
    Read(DataType),
}

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

impl Cast {
    /// The cast, or why there is none.
    pub(super) fn new(from: &DataType, to: &DataType, or_null: bool, expr: &Expr) -> Result<Cast, String> {
        use DataType::{Date32, Date64, Timestamp};
        if !is_cast_target(to) {
            return Err("which values are not cast to".to_owned());
        }
        // Arrow reads offsets only.
        let local = |data_type: &DataType| match data_type {
            Timestamp(_, Some(zone)) => has_offset(zone),
            _ => true,
        };
        if !local(to) && !matches!(from, Timestamp(_, Some(_))) {
            return Err("which needs a database of time zones; cast to UTC".to_owned());
        }
        if let (Timestamp(_, Some(zone)), false) = (from, matches!(to, Timestamp(..)) || to.is_integer())
            && !local(from)
        {
            return Err(format!("which needs the rules of zone {zone}; cast to a timestamp in UTC first"));
        }
        let mut steps = vec![Step::To(from.clone())];
        let mut from = from.clone();
        if let (Date64, Timestamp(..)) = (&from, to) {
            from = Timestamp(TimeUnit::Millisecond, None);
            steps.push(Step::To(from.clone()));
        }
        if let (Timestamp(fine, zone), Timestamp(coarse, _)) = (&from, to)
            && let digits @ 1.. = unit_scale(*fine) - unit_scale(*coarse)
        {
            from = Timestamp(*coarse, zone.clone());
            steps.push(Step::Floor(10i64.pow(digits as u32), from.clone()));
        }
        match (&from, to) {
            _ if Kind::of(&from) == Kind::Text && text::reads(to) => steps.push(Step::Read(to.clone())),
            (Date64, Date32) => steps.push(Step::Floor(DAY, Date32)),
            // Another name of a zone changes no value.
            (Timestamp(_, Some(_)), Timestamp(..)) => steps.push(Step::To(to.clone())),
            (_, Timestamp(unit, Some(zone))) => {
                steps.extend([Step::To(Timestamp(*unit, Some(offset_zone(zone)))), Step::To(to.clone())]);
            }
            (Timestamp(unit, zone), _) => {
                steps.push(Step::To(Timestamp(*unit, zone.as_deref().map(offset_zone))));
                // A date is a whole day.
                if *to == Date64 {
                    steps.push(Step::To(Date32));
                }
                steps.push(Step::To(to.clone()));
            }
            _ => steps.push(Step::To(to.clone())),
        }
        // Arrow itself says which types it casts.
        let mut sample = new_empty_array(&from);
        for step in &steps {
            sample = step.apply(&sample, or_null).map_err(|_| "which is no cast".to_owned())?;
        }
        Ok(Cast { steps, or_null, text: expr.short() })
    }

    pub(super) fn evaluate(&self, value: &Value) -> Result<Value> {
        let mut array = value.array.clone();
        for step in &self.steps {
            array = step.apply(&array, self.or_null).map_err(|error| {
                Error::Execution(format!("{} failed: {error}; TRY_CAST gives null instead", self.text))
            })?;
        }
        Ok(Value { array, scalar: value.scalar })
    }
}

impl Step {
    fn apply(&self, array: &ArrayRef, or_null: bool) -> Result<ArrayRef, String> {
        let options = CastOptions { safe: or_null, ..Default::default() };
        let to = |array: &ArrayRef, data_type: &DataType| {
            cast_with_options(array, data_type, &options).map_err(|error| error.to_string())
        };
        match self {
            Step::To(data_type) if array.data_type() == data_type => Ok(array.clone()),
            Step::To(data_type) => to(array, data_type),
            Step::Floor(units, data_type) => {
                let counts = to(array, &DataType::Int64)?;
                let floored: PrimitiveArray<Int64Type> =
                    unary(counts.as_primitive::<Int64Type>(), |count| count.div_euclid(*units));
                to(&(std::sync::Arc::new(floored) as ArrayRef), data_type)
            }
            Step::Read(data_type) => text::read(array, data_type, or_null),
        }
    }
}
