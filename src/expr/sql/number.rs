//! Numbers as text.

use arrow_buffer::i256;

use crate::expr::literal::Literal;

/// Reads `-12.50` or `125E-1` exactly.
pub(in crate::expr) fn decimal(text: &str) -> Option<Literal> {
    let (number, exponent) = match text.trim().split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i16>().ok()?),
        None => (text.trim(), 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if digits.len() + fraction.len() == 0 || !all_digits(digits) || !all_digits(fraction) {
        return None;
    }
    let scale = i16::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let scale = i8::try_from(scale).ok().filter(|scale| (-76..=76).contains(scale))?;
    let value = format!("{}{fraction}", whole.strip_prefix('+').unwrap_or(whole));
    // No decimal has more digits; leading zeros count as well, so that the text has a bound.
    (value.len() <= 78).then(|| i256::from_string(&value).map(|value| Literal::Decimal { value, scale }))?
}

pub(super) fn float(text: &str) -> Option<Literal> {
    text.trim().parse().ok().map(Literal::Float)
}
