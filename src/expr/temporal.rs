//! Dates, times and spans of time as text, over the whole range that their literals hold.
//!
//! The digits after a second's point are the unit: none, 3, 6 or 9. What is written reads as the same literal.

use std::fmt::{self, Formatter};

use arrow_schema::TimeUnit;

use super::kind::{offset_zone, unit_scale};
use super::literal::Literal;

const DAY: i128 = 86_400;
pub(super) const NANOS: i128 = 1_000_000_000;

/// The date of a day counted from 1970-01-01, in the Gregorian calendar: year, month, day.
fn civil(days: i128) -> (i128, i128, i128) {
    // Eras of 400 years that begin on 1 March 0000; after Howard Hinnant's "chrono-compatible low-level date algorithms".
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i128::from(month <= 2), month, day)
}

/// The other way round; any day of any month.
fn days_of(year: i128, month: i128, day: i128) -> i128 {
    let year = year - i128::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day_of_year - 719_468
}

fn write_date(f: &mut Formatter<'_>, days: i128) -> fmt::Result {
    let (year, month, day) = civil(days);
    match year {
        0..=9999 => write!(f, "{year:04}-{month:02}-{day:02}"),
        _ => write!(f, "{year:+05}-{month:02}-{day:02}"),
    }
}

/// `value` units since midnight.
fn write_time(f: &mut Formatter<'_>, value: i128, unit: TimeUnit) -> fmt::Result {
    let digits = unit_scale(unit) as usize;
    let one = 10i128.pow(digits as u32);
    let (seconds, fraction) = (value.div_euclid(one), value.rem_euclid(one));
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if digits > 0 { write!(f, ".{fraction:0digits$}") } else { Ok(()) }
}

/// Writes a literal of this file's kinds, as SQL.
pub(super) fn write(literal: &Literal, f: &mut Formatter<'_>) -> fmt::Result {
    match literal {
        Literal::Date(days) => {
            f.write_str("DATE '")?;
            write_date(f, i128::from(*days))?;
        }
        Literal::Time { value, unit } => {
            f.write_str("TIME '")?;
            write_time(f, i128::from(*value), *unit)?;
        }
        Literal::Timestamp { value, unit, zone } => {
            f.write_str("TIMESTAMP '")?;
            let per_day = DAY * 10i128.pow(unit_scale(*unit) as u32);
            write_date(f, i128::from(*value).div_euclid(per_day))?;
            f.write_str(" ")?;
            write_time(f, i128::from(*value).rem_euclid(per_day), *unit)?;
            // The instant as of RFC 9557, which needs no database of zones.
            match zone.as_deref() {
                None => (),
                Some("UTC") => f.write_str("Z")?,
                Some(zone) => write!(f, "Z[{}]", zone.replace('\'', "''"))?,
            }
        }
        Literal::Duration { value, unit } => write!(f, "DURATION '{value} {}", unit_name(*unit))?,
        Literal::Interval { months, days, nanos } => {
            f.write_str("INTERVAL '")?;
            if *months != 0 {
                write!(f, "{months} months ")?;
            }
            if *days != 0 {
                write!(f, "{days} days ")?;
            }
            let (sign, nanos) = (if *nanos < 0 { "-" } else { "" }, i128::from(*nanos).abs());
            write!(f, "{sign}{}", nanos / NANOS)?;
            if nanos % NANOS != 0 {
                write!(f, ".{:09}", nanos % NANOS)?;
            }
            f.write_str(" seconds")?;
        }
        other => return write!(f, "{other:?}"),
    }
    f.write_str("'")
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The whole number that leads `text`, of at least `least` digits, and what follows.
fn digits(text: &str, least: usize) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    // Longer than any 64-bit count.
    if end < least || end > 20 {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

/// `2024-02-29`, with a sign where the year has more than four digits; then what follows.
fn date_prefix(text: &str) -> Option<(i128, &str)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, text) = digits(text, 4)?;
    let (month, text) = digits(text.strip_prefix('-')?, 1)?;
    let (day, text) = digits(text.strip_prefix('-')?, 1)?;
    let days = (1..=12).contains(&month).then(|| days_of(sign * year, month, day))?;
    // A day that the month does not have comes back as another.
    (civil(days) == (sign * year, month, day)).then_some((days, text))
}

/// `01:02`, `01:02:03` or with up to nine digits more: seconds, fraction and its unit; then what follows.
fn time_prefix(text: &str) -> Option<(i128, TimeUnit, &str)> {
    let (hour, text) = digits(text, 1)?;
    let (minute, text) = digits(text.strip_prefix(':')?, 2)?;
    let (second, text) = match text.strip_prefix(':') {
        Some(text) => digits(text, 2)?,
        None => (0, text),
    };
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    let Some(fraction) = text.strip_prefix('.') else { return Some((seconds, TimeUnit::Second, text)) };
    let (value, rest) = digits(fraction, 1)?;
    let given = fraction.len() - rest.len();
    let (unit, wanted) = match given {
        1..=3 => (TimeUnit::Millisecond, 3),
        4..=6 => (TimeUnit::Microsecond, 6),
        7..=9 => (TimeUnit::Nanosecond, 9),
        _ => return None,
    };
    Some((seconds * 10i128.pow(wanted) + value * 10i128.pow(wanted - given as u32), unit, rest))
}

/// `2024-02-29`, or a timestamp, whose date it is; of UTC where it has an offset.
pub(super) fn parse_date(text: &str) -> Option<Literal> {
    let (mut days, rest) = date_prefix(text.trim())?;
    if !rest.is_empty() {
        let Literal::Timestamp { value, unit, .. } = parse_timestamp(text)? else { return None };
        days = i128::from(value).div_euclid(DAY * 10i128.pow(unit_scale(unit) as u32));
    }
    i32::try_from(days).ok().map(Literal::Date)
}

/// `13:45`, `13:45:30.123456`
pub(super) fn parse_time(text: &str) -> Option<Literal> {
    let (value, unit, rest) = time_prefix(text.trim())?;
    let day = DAY * 10i128.pow(unit_scale(unit) as u32);
    (rest.is_empty() && value < day).then_some(Literal::Time { value: value as i64, unit })
}

/// `2024-02-29`, `2024-02-29 13:45:30.123`, `2024-02-29T13:45:30Z`, `2024-02-29 13:45:30+02:00`: local time without an
/// offset, else an instant.
pub(super) fn parse_timestamp(text: &str) -> Option<Literal> {
    let (days, rest) = date_prefix(text.trim())?;
    let (value, unit, rest) = match rest.strip_prefix(['T', 't', ' ']) {
        Some(rest) => time_prefix(rest.trim_start())?,
        None => (0, TimeUnit::Second, rest),
    };
    let one = 10i128.pow(unit_scale(unit) as u32);
    if value >= DAY * one {
        return None;
    }
    let (offset, zone) = match rest.trim_start() {
        "" => (0, None),
        rest => {
            let (offset, rest) = offset_prefix(rest)?;
            let name = match rest {
                "" => "UTC",
                named => named.strip_prefix('[')?.strip_suffix(']')?,
            };
            (offset, Some(name.into()))
        }
    };
    let value = i64::try_from((days * DAY - offset) * one + value).ok()?;
    Some(Literal::Timestamp { value, unit, zone })
}

/// Seconds of a zone that is an offset or a name of UTC.
pub(super) fn offset_of(zone: &str) -> Option<i128> {
    match offset_prefix(&offset_zone(zone))? {
        (offset, "") => Some(offset),
        _ => None,
    }
}

/// `Z`, ` UTC`, `+02`, `+0200` or `+02:00` in seconds; then what follows.
fn offset_prefix(text: &str) -> Option<(i128, &str)> {
    for name in ["Z", "z", "UTC"] {
        if let Some(rest) = text.strip_prefix(name) {
            return Some((0, rest));
        }
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let text = text.strip_prefix(['+', '-'])?;
    let (hour, rest) = match text.len() {
        4.. if text.as_bytes()[..4].iter().all(u8::is_ascii_digit) => (text[..2].parse::<i128>().ok()?, &text[2..]),
        _ => digits(text, 2)?,
    };
    let (minute, rest) = match rest.strip_prefix(':').unwrap_or(rest) {
        "" => (0, ""),
        rest if rest.starts_with('[') => (0, rest),
        rest => digits(rest, 2)?,
    };
    (hour <= 23 && minute <= 59).then_some((sign * (hour * 60 + minute) * 60, rest))
}

/// `1500 ms`: a count of seconds (`s`), milliseconds (`ms`), microseconds (`us`) or nanoseconds (`ns`).
pub(super) fn parse_duration(text: &str) -> Option<Literal> {
    let (value, unit) = text.trim().split_once(' ')?;
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let unit = units.into_iter().find(|known| unit_name(*known) == unit.trim())?;
    Some(Literal::Duration { value: value.parse().ok()?, unit })
}

/// `1 year 2 months -3 days 4.5 hours 01:02:03`: numbers with units, added up. `unit` is that of a last number without.
pub(super) fn parse_interval(text: &str, unit: Option<&str>) -> Option<Literal> {
    let (mut months, mut days, mut nanos) = (0i128, 0i128, 0i128);
    let mut words = text.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        let (sign, number) = match word.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, word.strip_prefix('+').unwrap_or(word)),
        };
        if number.contains(':') {
            let (value, unit, rest) = time_prefix(number)?;
            nanos += sign * value * 10i128.pow(9 - unit_scale(unit) as u32);
            if !rest.is_empty() {
                return None;
            }
            continue;
        }
        // The unit may follow at once: `5min`.
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let (number, attached) = number.split_at(end);
        let name = if attached.is_empty() { words.next().or(unit)? } else { attached };
        let (number, scale) = decimal(number)?;
        let whole = |factor: i128| {
            let value = sign * number * factor;
            (value % scale == 0).then(|| value / scale)
        };
        match name.to_ascii_lowercase().as_str() {
            "y" | "year" | "years" => months += whole(12)?,
            "mon" | "mons" | "month" | "months" => months += whole(1)?,
            "w" | "week" | "weeks" => days += whole(7)?,
            "d" | "day" | "days" => days += whole(1)?,
            "h" | "hour" | "hours" => nanos += whole(3600 * NANOS)?,
            "m" | "min" | "mins" | "minute" | "minutes" => nanos += whole(60 * NANOS)?,
            "s" | "sec" | "secs" | "second" | "seconds" => nanos += whole(NANOS)?,
            "ms" | "millisecond" | "milliseconds" => nanos += whole(1_000_000)?,
            "us" | "microsecond" | "microseconds" => nanos += whole(1_000)?,
            "ns" | "nanosecond" | "nanoseconds" => nanos += whole(1)?,
            _ => return None,
        }
    }
    Some(Literal::Interval {
        months: months.try_into().ok()?,
        days: days.try_into().ok()?,
        nanos: nanos.try_into().ok()?,
    })
}

/// A number without a sign as a whole number over a power of ten, of at most 19 digits before and 9 after the point.
fn decimal(text: &str) -> Option<(i128, i128)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() > 19 || fraction.len() > 9 || whole.len() + fraction.len() == 0 {
        return None;
    }
    Some((format!("{whole}{fraction}").parse().ok()?, 10i128.pow(fraction.len() as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-800_000..800_000).step_by(97).chain([i128::from(i64::MIN), i128::from(i64::MAX), 0, -719_468]) {
            let (year, month, day) = civil(days);
            assert_eq!(days_of(year, month, day), days);
        }
        assert_eq!((civil(0), civil(11_016)), ((1970, 1, 1), (2000, 2, 29)));
    }

    #[test]
    fn texts() {
        let stamp =
            |value, unit, zone: Option<&str>| Some(Literal::Timestamp { value, unit, zone: zone.map(Into::into) });
        assert_eq!(parse_date("2000-02-29"), Some(Literal::Date(11_016)));
        assert_eq!(parse_timestamp("1970-01-02"), stamp(86_400, TimeUnit::Second, None));
        assert_eq!(parse_timestamp("1970-01-01 00:00:01.5"), stamp(1_500, TimeUnit::Millisecond, None));
        assert_eq!(parse_timestamp("1970-01-01T02:00:00+02:00"), stamp(0, TimeUnit::Second, Some("UTC")));
        assert_eq!(parse_timestamp("1970-01-01 02:00:00 +0200"), stamp(0, TimeUnit::Second, Some("UTC")));
        assert_eq!(parse_timestamp("1970-01-01 00:00Z[Asia/Tokyo]"), stamp(0, TimeUnit::Second, Some("Asia/Tokyo")));
        assert_eq!(parse_time("23:59:59.000001").map(|t| t.to_string()).as_deref(), Some("TIME '23:59:59.000001'"));
        let interval = |months, days, nanos| Some(Literal::Interval { months, days, nanos });
        assert_eq!(parse_interval("1 year 2 mons -3 days 1.5h", None), interval(14, -3, 5_400_000_000_000));
        assert_eq!(parse_interval("5", Some("minute")), interval(0, 0, 300_000_000_000));
        assert_eq!(parse_interval("-1 day -00:00:00.5", None), interval(0, -1, -500_000_000));
        for bad in ["", "x", "2023-02-29", "2023-13-01", "2023-1", "20230101", "2023-01-01 24:00:00", "é", "+é0é0"] {
            assert_eq!((parse_date(bad), parse_timestamp(bad), parse_time(bad)), (None, None, None), "{bad}");
        }
        for bad in ["2023-01-01 00:00:00+é0:0", "2023-01-01 00:00:00 +99", "2023-01-01 00:00:00.1234567891"] {
            assert_eq!(parse_timestamp(bad), None, "{bad}");
        }
        for bad in ["", "1", "1 fortnight", "0.5 months", "9999999999999999999 years", "day", "1..5 s", "é", "1 2"] {
            assert_eq!(parse_interval(bad, None), None, "{bad}");
        }
    }
}
