//! Our reader of C streams: tolerates null error texts, asks nothing after an error or the end.

use std::ffi::{CStr, c_int};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::Python;

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use super::import::{Columns, import_batch};
use super::schema::import_schema;
use crate::error::{Error, Result, plan_err};
use crate::memory::Reservation;

/// A stream of record batches that a producer gives through C functions. The functions may wait for threads that need
/// Python's lock, so all calls, release included, are made detached and while no lock of ours is held.
pub(super) struct CStream {
    /// None after the end or an error.
    stream: Option<ArrowArrayStream>,
    schema: SchemaRef,
}

impl CStream {
    /// Takes over `stream` and asks for its schema. To be called detached.
    pub(super) fn open(mut stream: ArrowArrayStream) -> Result<Self> {
        let Some(get_schema) = stream.get_schema else {
            return plan_err!("an Arrow C stream has no get_schema function");
        };
        let mut schema = ArrowSchema::empty();
        // SAFETY: the producer's function, on its own stream that was not released.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if code != 0 {
            return Err(failure(&mut stream, code, "its schema"));
        }
        let schema = import_schema(&schema)?;
        Ok(Self { stream: Some(stream), schema })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, None at the end and ever after. To be called detached.
    pub(super) fn next(
        &mut self,
        columns: Option<&Columns>,
        copies: Option<&mut Reservation>,
    ) -> Result<Option<RecordBatch>> {
        // Taken, so that an error or the end leaves nothing to ask again.
        let Some(mut stream) = self.stream.take() else {
            return Ok(None);
        };
        let Some(get_next) = stream.get_next else {
            return plan_err!("an Arrow C stream has no get_next function");
        };
        let mut array = ArrowArray::empty();
        // SAFETY: the producer's function, on its own stream that was neither released nor ended.
        let code = unsafe { get_next(&raw mut stream, &raw mut array) };
        if code != 0 {
            return Err(failure(&mut stream, code, "its next batch"));
        }
        if array.is_released() {
            return Ok(None);
        }
        let batch = import_batch(array, &self.schema, columns, copies)?;
        self.stream = Some(stream);
        Ok(Some(batch))
    }
}

impl Drop for CStream {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else { return };
        let mut stream = Some(stream);
        Python::try_attach(|py| {
            let stream = stream.take();
            py.detach(|| drop(stream));
        });
        // Python shuts down: a producer that needs it would hang, so its stream is left to the process's end.
        std::mem::forget(stream);
    }
}

/// The producer's whole text, where it has one.
fn failure(stream: &mut ArrowArrayStream, code: c_int, what: &str) -> Error {
    // SAFETY: the producer's function, on its own stream; the text is valid until the next call, and copied here.
    let text = stream.get_last_error.map(|last_error| unsafe { last_error(stream) }).filter(|text| !text.is_null());
    Error::Execution(match text {
        // SAFETY: as above; a text is NUL-terminated.
        Some(text) => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        None => {
            format!("a producer failed to give {what}, without a text: {}", std::io::Error::from_raw_os_error(code))
        }
    })
}
