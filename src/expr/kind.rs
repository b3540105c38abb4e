//! Kinds of types: what compares with what.

use arrow_schema::{DataType, TimeUnit};

/// Types whose values compare with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    /// Integers and decimals: an integer times a power of ten.
    Number,
    Float,
    Text,
    Binary,
    Date32,
    Date64,
    Time,
    Timestamp {
        zoned: bool,
    },
    Duration,
    /// Months, days and time: for arithmetic, without a comparison.
    Interval,
    /// Nested types.
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Kind {
        use DataType::*;
        match data_type {
            Null => Kind::Null,
            Boolean => Kind::Boolean,
            Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Kind::Number,
            t if t.is_integer() => Kind::Number,
            Float16 | Float32 | Float64 => Kind::Float,
            Utf8 | LargeUtf8 | Utf8View => Kind::Text,
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Kind::Binary,
            Date32 => Kind::Date32,
            Date64 => Kind::Date64,
            Time32(_) | Time64(_) => Kind::Time,
            Timestamp(_, zone) => Kind::Timestamp { zoned: zone.is_some() },
            Duration(_) => Kind::Duration,
            Interval(_) => Kind::Interval,
            _ => Kind::Other,
        }
    }
}

/// The type of the values of a dictionary or run-end-encoded type, else the type itself.
pub(super) fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type()),
        plain => plain,
    }
}

/// Decimal digits after the point of the stored integer: a value is `stored / 10^scale` (numbers) or that many seconds.
pub(super) fn scale(data_type: &DataType) -> i8 {
    use DataType::*;
    match data_type {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => *scale,
        Time32(unit) | Time64(unit) | Timestamp(unit, _) | Duration(unit) => unit_scale(*unit),
        _ => 0,
    }
}

/// The finer of two units.
pub(super) fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    if unit_scale(a) >= unit_scale(b) { a } else { b }
}

/// Decimal digits after the point of seconds.
pub(super) fn unit_scale(unit: TimeUnit) -> i8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// True for the zones whose rules need no database: UTC by its names, and offsets.
pub(super) fn has_offset(zone: &str) -> bool {
    zone.starts_with(['+', '-'])
        || ["UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu"].iter().any(|name| name.eq_ignore_ascii_case(zone))
}

/// True for timestamps whose days are 24 hours each.
pub(super) fn has_fixed_days(timestamp: &DataType) -> bool {
    match timestamp {
        DataType::Timestamp(_, Some(zone)) => has_offset(zone),
        _ => true,
    }
}

/// A zone that Arrow reads without a database: an offset as it is, else UTC.
pub(super) fn offset_zone(zone: &str) -> std::sync::Arc<str> {
    if zone.starts_with(['+', '-']) { zone.into() } else { "+00:00".into() }
}
