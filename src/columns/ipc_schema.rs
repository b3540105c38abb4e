//! Schemas as bytes: an Arrow IPC message.

use std::panic::catch_unwind;
use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Schema, SchemaRef};

/// The schema as bytes; `None` for one that IPC does not carry whole, such as a dictionary of dictionaries.
pub(crate) fn encode_schema(schema: &Schema) -> Option<Vec<u8>> {
    let (mut tracker, options) = (DictionaryTracker::new(false), IpcWriteOptions::default());
    let message =
        IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options).ipc_message;
    (decode_schema(&message)?.as_ref() == schema).then_some(message)
}

/// The schema that [`encode_schema`] made bytes of; `None` for other bytes.
pub(crate) fn decode_schema(message: &[u8]) -> Option<SchemaRef> {
    // arrow-ipc panics on a union of more than 128 children without type ids.
    let schema = catch_unwind(|| try_schema_from_flatbuffer_bytes(message)).ok()?.ok()?;
    schema.fields().iter().all(|field| is_sound(field.data_type())).then(|| Arc::new(schema))
}

/// False for sizes that no array can have, which nothing else looks at.
pub(crate) fn is_sound(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        FixedSizeBinary(size) => *size >= 0,
        FixedSizeList(field, size) => *size >= 0 && is_sound(field.data_type()),
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) => is_sound(field.data_type()),
        Map(field, _) => {
            matches!(field.data_type(), Struct(fields) if fields.len() == 2) && is_sound(field.data_type())
        }
        Struct(fields) => fields.iter().all(|field| is_sound(field.data_type())),
        Union(fields, _) => fields.iter().all(|(_, field)| is_sound(field.data_type())),
        Dictionary(keys, values) => keys.is_dictionary_key_type() && is_sound(values),
        RunEndEncoded(ends, values) => ends.data_type().is_run_ends_type() && is_sound(values.data_type()),
        _ => true,
    }
}
