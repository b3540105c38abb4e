//! The three structs of the Arrow C data and stream interfaces, as the specification lays them out.

use std::ffi::{c_char, c_int, c_void};

/// `struct ArrowSchema`.
#[repr(C)]
pub(crate) struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
pub(crate) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *const *const c_void,
    pub(super) children: *const *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(super) private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub(crate) struct ArrowArrayStream {
    pub(super) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(super) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(super) private_data: *mut c_void,
}

/// A struct of the interface: released once, by whoever holds it last; without a release callback it is empty.
macro_rules! released_on_drop {
    ($name:ident { $($field:ident: $empty:expr),* }) => {
        impl $name {
            /// One that was never filled.
            pub(super) fn empty() -> Self {
                Self { $($field: $empty,)* release: None, private_data: std::ptr::null_mut() }
            }

            /// True before it was filled, and after it was moved out of or released.
            pub(super) fn is_released(&self) -> bool {
                self.release.is_none()
            }

            /// Moves the struct out of `source`, which is left released.
            ///
            /// # Safety
            /// `source` points to an initialized struct that nobody else uses meanwhile.
            pub(super) unsafe fn take(source: *mut Self) -> Self {
                // SAFETY: the caller's promise; the structs may be moved bitwise, as the specification says.
                unsafe { std::ptr::replace(source, Self::empty()) }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: a struct with a release callback is to be released once, by its holder.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: the specification lets a struct move between threads.
        unsafe impl Send for $name {}
    };
}

released_on_drop!(ArrowSchema {
    format: std::ptr::null(),
    name: std::ptr::null(),
    metadata: std::ptr::null(),
    flags: 0,
    n_children: 0,
    children: std::ptr::null_mut(),
    dictionary: std::ptr::null_mut()
});
released_on_drop!(ArrowArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: std::ptr::null(),
    children: std::ptr::null(),
    dictionary: std::ptr::null_mut()
});
released_on_drop!(ArrowArrayStream { get_schema: None, get_next: None, get_last_error: None });

// SAFETY: an array is immutable until it is released, and only its one holder releases it.
unsafe impl Sync for ArrowArray {}
