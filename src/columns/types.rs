//! Walks over nested types.

use arrow_schema::DataType;

/// True where `test` holds for `data_type` or for any type that it is made of: children, values of dictionaries and of runs.
pub(crate) fn any_part(data_type: &DataType, test: &impl Fn(&DataType) -> bool) -> bool {
    use DataType::*;
    test(data_type)
        || match data_type {
            Dictionary(_, values) => any_part(values, test),
            List(field) | LargeList(field) | ListView(field) | LargeListView(field) => {
                any_part(field.data_type(), test)
            }
            FixedSizeList(field, _) | Map(field, _) | RunEndEncoded(_, field) => any_part(field.data_type(), test),
            Struct(fields) => fields.iter().any(|field| any_part(field.data_type(), test)),
            Union(fields, _) => fields.iter().any(|(_, field)| any_part(field.data_type(), test)),
            _ => false,
        }
}

/// False for sizes, keys and run ends that no array can have. Arrow's reader of schemas does not check them.
pub(crate) fn is_sound(data_type: &DataType) -> bool {
    use DataType::*;
    !any_part(data_type, &|part| match part {
        FixedSizeBinary(size) | FixedSizeList(_, size) => *size < 0,
        Map(entries, _) => !matches!(entries.data_type(), Struct(fields) if fields.len() == 2),
        Dictionary(keys, _) => !keys.is_dictionary_key_type(),
        RunEndEncoded(ends, _) => !ends.data_type().is_run_ends_type(),
        _ => false,
    })
}

/// False for types that keys cannot have: maps and unions, for which there is no generally accepted equality.
pub(crate) fn has_equality(data_type: &DataType) -> bool {
    !any_part(data_type, &|part| matches!(part, DataType::Map(_, _) | DataType::Union(_, _)))
}

/// True where some value in an array of this type is a float.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
    any_part(data_type, &DataType::is_floating)
}

/// True where the type or one inside of it is run-end encoded.
pub(crate) fn has_run_ends(data_type: &DataType) -> bool {
    any_part(data_type, &|part| matches!(part, DataType::RunEndEncoded(_, _)))
}
