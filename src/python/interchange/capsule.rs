//! The PyCapsules of the Arrow PyCapsule interface: each may be consumed once.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use super::pyarrow::type_name;
use crate::python::errors::{plan, type_error};

macro_rules! take {
    ($function:ident, $struct:ident, $name:literal, $doc:literal) => {
        #[doc = $doc]
        pub(super) fn $function(capsule: &Bound<'_, PyAny>) -> PyResult<$struct> {
            let pointer = pointer(capsule, $name)?.cast::<$struct>();
            // SAFETY: a capsule of this name holds such a struct. Taking moves it out and marks it as released without calling
            // Python, so with a global interpreter lock no other thread comes in between. Where there is none, the critical
            // section on the capsule keeps out all other callers of this function; a foreign consumer of the same capsule at
            // the same time breaks the PyCapsule interface, which lets a capsule be consumed once.
            let taken = with_critical_section(capsule, || unsafe { $struct::take(pointer) });
            if taken.is_released() {
                return Err(plan(format!(
                    "the capsule {:?} was consumed before; a stream can be read once, open it again",
                    $name
                )));
            }
            Ok(taken)
        }
    };
}

take!(take_schema, ArrowSchema, c"arrow_schema", "Moves the schema out of its capsule.");
take!(take_array, ArrowArray, c"arrow_array", "Moves the array out of its capsule.");
take!(take_stream, ArrowArrayStream, c"arrow_array_stream", "Moves the stream out of its capsule.");

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut std::ffi::c_void> {
    let Ok(capsule) = capsule.cast::<PyCapsule>() else {
        return Err(type_error(format!("expected a PyCapsule named {name:?}, got {}", type_name(capsule))));
    };
    capsule.pointer_checked(Some(name)).map(std::ptr::NonNull::as_ptr).map_err(|_| {
        // SAFETY: the name is copied at once, and no Python code that could change it runs before.
        let found = capsule.name().ok().flatten().map(|found| unsafe { found.as_cstr() }.to_owned());
        type_error(format!("expected a PyCapsule named {name:?}, got one named {found:?}"))
    })
}

/// What `__arrow_c_array__` returned: the schema and the array.
pub(super) fn take_pair(pair: &Bound<'_, PyAny>) -> PyResult<(ArrowSchema, ArrowArray)> {
    match pair.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((take_schema(&pair.get_item(0)?)?, take_array(&pair.get_item(1)?)?)),
        _ => Err(type_error(format!("__arrow_c_array__ returns two capsules, {} came back", type_name(pair)))),
    }
}
