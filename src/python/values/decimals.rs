//! Python's decimals and ints as keys of a decimal type, exactly.

use std::str::FromStr;

use arrow_array::types::DecimalType;
use arrow_schema::DataType;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use super::columns::{Cell, primitives, refused};
use super::literal::{Digits, digits, literal};
use crate::columns::Coerced;
use crate::expr::Literal;
use crate::python::interchange::is_a;

/// The most digits that a decimal has.
const DIGITS: usize = 76;

/// `values` as an array of `data_type`, a decimal.
pub(crate) fn decimals<T: DecimalType>(
    values: &[Bound<'_, PyAny>],
    data_type: &DataType,
    name: &str,
) -> PyResult<Option<Coerced>>
where
    T::Native: FromStr,
{
    let (precision, scale) = match *data_type {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => (p, s),
        _ => return Ok(None),
    };
    primitives::<T>(values, data_type, |value| {
        let digits = read(value)?.ok_or_else(|| refused(value, data_type, name))?;
        Ok(Some(digits.and_then(|digits| scaled(digits, precision, scale)?.parse().ok())))
    })
}

/// The number, missing where it is not finite; None for a value of another kind.
fn read(value: &Bound<'_, PyAny>) -> PyResult<Option<Cell<Digits>>> {
    let py = value.py();
    let finite = |decimal: &Bound<'_, PyAny>| Ok(Some(digits(decimal)?.map_or(Cell::Missing, Cell::Value)));
    if is_a(value, "decimal", "Decimal")? {
        return finite(value);
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return finite(&py.import(intern!(py, "decimal"))?.getattr(intern!(py, "Decimal"))?.call1((value,))?);
    }
    Ok(match literal(value) {
        Ok(Literal::Null) => Some(Cell::Null),
        Ok(Literal::Integer(value)) => Some(Cell::Value(of_text(&value.to_string(), 0))),
        Ok(Literal::Decimal { value, scale }) => Some(Cell::Value(of_text(&value.to_string(), -i64::from(scale)))),
        Ok(_) => None,
        // An object that is not a constant is not a key either; Ctrl-C is passed on.
        Err(error) if error.is_instance_of::<PyException>(py) => None,
        Err(error) => return Err(error),
    })
}

fn of_text(text: &str, exponent: i64) -> Digits {
    let digits = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    Digits { negative: text.starts_with('-'), digits, exponent }
}

/// The number as text in units of 10^-`scale`; None if it is not a whole number of them or has over `precision` digits.
fn scaled(Digits { negative, digits, exponent }: Digits, precision: u8, scale: i8) -> Option<String> {
    let Some(last) = digits.iter().rposition(|&digit| digit != 0) else { return Some("0".into()) };
    let first = digits.iter().position(|&digit| digit != 0)?;
    let exponent = exponent.checked_add((digits.len() - 1 - last) as i64)?.checked_add(scale.into())?;
    let zeros = usize::try_from(exponent).ok().filter(|&zeros| zeros <= DIGITS)?;
    let digits = &digits[first..=last];
    if digits.len() + zeros > usize::from(precision) {
        return None;
    }
    let mut text = if negative { "-".to_owned() } else { String::new() };
    text.extend(digits.iter().map(|&digit| char::from(b'0' + digit)));
    text.extend(std::iter::repeat_n('0', zeros));
    Some(text)
}
