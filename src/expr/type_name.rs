//! The SQL names of Arrow's types, in both directions.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};

/// Names without parameters. A type is written by the first of its names.
const NAMES: &[(&str, DataType)] = &[
    ("BOOLEAN", DataType::Boolean),
    ("BOOL", DataType::Boolean),
    ("TINYINT", DataType::Int8),
    ("SMALLINT", DataType::Int16),
    ("INTEGER", DataType::Int32),
    ("INT", DataType::Int32),
    ("BIGINT", DataType::Int64),
    ("UTINYINT", DataType::UInt8),
    ("TINYINT UNSIGNED", DataType::UInt8),
    ("USMALLINT", DataType::UInt16),
    ("SMALLINT UNSIGNED", DataType::UInt16),
    ("UINTEGER", DataType::UInt32),
    ("INTEGER UNSIGNED", DataType::UInt32),
    ("INT UNSIGNED", DataType::UInt32),
    ("UBIGINT", DataType::UInt64),
    ("BIGINT UNSIGNED", DataType::UInt64),
    ("REAL", DataType::Float32),
    ("DOUBLE", DataType::Float64),
    ("DOUBLE PRECISION", DataType::Float64),
    ("FLOAT", DataType::Float64),
    ("VARCHAR", DataType::Utf8),
    ("TEXT", DataType::Utf8),
    ("STRING", DataType::Utf8),
    ("BYTEA", DataType::Binary),
    ("BLOB", DataType::Binary),
    ("VARBINARY", DataType::Binary),
    ("DATE", DataType::Date32),
    ("INTERVAL", DataType::Interval(IntervalUnit::MonthDayNano)),
];

/// The list of types in the error for an unknown name.
pub(super) const KNOWN: &str = "BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, each of these with UNSIGNED, REAL, DOUBLE, \
    DECIMAL(p, s), VARCHAR, BYTEA, DATE, TIME, TIMESTAMP [WITH TIME ZONE], INTERVAL, or an Arrow type in double quotes";

/// The type of a name in upper case with its parameters, if there is such a type.
pub(super) fn type_of(name: &str, parameters: &[i64]) -> Option<DataType> {
    let utc = || Some("UTC".into());
    let unit = match parameters {
        [0] => Some(TimeUnit::Second),
        [3] => Some(TimeUnit::Millisecond),
        [] | [6] => Some(TimeUnit::Microsecond),
        [9] => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    match name {
        "DECIMAL" | "NUMERIC" | "DEC" => {
            let (&precision, scale) = match parameters {
                [precision] => (precision, 0),
                [precision, scale] => (precision, *scale),
                _ => return None,
            };
            let precision = u8::try_from(precision).ok().filter(|precision| (1..=76).contains(precision))?;
            let scale = i8::try_from(scale).ok().filter(|scale| (0..=precision as i8).contains(scale))?;
            Some(match precision {
                ..=38 => DataType::Decimal128(precision, scale),
                _ => DataType::Decimal256(precision, scale),
            })
        }
        "TIME" | "TIME WITHOUT TIME ZONE" => Some(match unit? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit => DataType::Time64(unit),
        }),
        "TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE" => Some(DataType::Timestamp(unit?, None)),
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => Some(DataType::Timestamp(unit?, utc())),
        name if parameters.is_empty() => NAMES.iter().find(|known| known.0 == name).map(|known| known.1.clone()),
        _ => None,
    }
}

/// The type that Arrow's own name stands for, such as `LargeUtf8` or `Timestamp(ns, "UTC")`, if values can be cast to
/// it.
pub(super) fn arrow_type(text: &str) -> Option<DataType> {
    // Arrow's parser recurses at parentheses, so the depth has to be limited here.
    if text.len() > 200 || text.matches('(').count() > 2 {
        return None;
    }
    text.parse().ok().filter(is_cast_target)
}

/// True for the types that a value can be cast to.
pub(crate) fn is_cast_target(data_type: &DataType) -> bool {
    use DataType::*;
    data_type.is_primitive()
        || matches!(data_type, Boolean | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// The type as SQL text. Reading the text gives the same type.
pub(crate) fn name_of(data_type: &DataType) -> String {
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "",
        TimeUnit::Nanosecond => "(9)",
    };
    match data_type {
        DataType::Decimal128(precision, scale) if (0..=*precision as i8).contains(scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::Decimal256(precision @ 39.., scale) if (0..=*precision as i8).contains(scale) => {
            format!("DECIMAL({precision}, {scale})")
        }
        DataType::Time32(unit) | DataType::Time64(unit) => format!("TIME{}", digits(unit)),
        DataType::Timestamp(unit, None) => format!("TIMESTAMP{}", digits(unit)),
        DataType::Timestamp(unit, Some(zone)) if zone.as_ref() == "UTC" => {
            format!("TIMESTAMP{} WITH TIME ZONE", digits(unit))
        }
        other => match NAMES.iter().find(|known| known.1 == *other) {
            Some((name, _)) => (*name).to_owned(),
            None => format!("\"{}\"", other.to_string().replace('"', "\"\"")),
        },
    }
}
