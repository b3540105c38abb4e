//! Schemas as bytes: an Arrow IPC message.

use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_flatbuffer_bytes;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{Schema, SchemaRef};

use super::types::is_sound;
use crate::panics::caught;

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
    let schema = caught(|| try_schema_from_flatbuffer_bytes(message))?.ok()?;
    schema.fields().iter().all(|field| is_sound(field.data_type())).then(|| Arc::new(schema))
}
