//! Memory of large builds is given back to the operating system, not only to the allocator.

use std::sync::atomic::{AtomicUsize, Ordering};

/// After a build of this many bytes, free pages are given back. For less it is not worth it: the next user of the pages faults
/// them in again, which adds about half to the time of preparing the next build.
const LARGE: usize = 8 << 20;

/// Free pages are also given back once smaller builds together may have left this many bytes of them.
const MANY: usize = 32 << 20;

/// Bytes that all reservations hold.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// The most that `RESERVED` was since the allocator was asked last. What it is less now, the allocator may hold as free pages,
/// however often these were used in the meantime.
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes that a reservation took.
pub(super) fn count_taken(bytes: usize) {
    let reserved = RESERVED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(reserved, Ordering::Relaxed);
}

/// Counts bytes that a reservation gave back.
pub(super) fn count_given_back(bytes: usize) {
    RESERVED.fetch_sub(bytes, Ordering::Relaxed);
}

/// The last field of what holds the memory of a build or of preparing one, with the most bytes that it held: once all that is
/// dropped, free pages go back to the system. Output batches leave theirs with the allocator, where the next ones find them.
#[derive(Debug, Default)]
pub(crate) struct ReturnsToSystem(usize);

impl ReturnsToSystem {
    /// For memory of `bytes`.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Notes that `bytes` are held now.
    pub(crate) fn saw(&mut self, bytes: usize) {
        self.0 = self.0.max(bytes);
    }
}

impl Drop for ReturnsToSystem {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        huge_pages::ask_for_no_more();
        let reserved = RESERVED.load(Ordering::Relaxed);
        if self.0 >= LARGE || MOST.load(Ordering::Relaxed).saturating_sub(reserved) >= MANY {
            MOST.store(reserved, Ordering::Relaxed);
            return_free_pages();
        }
    }
}

/// Asks for huge pages for a large allocation that was not written to yet: fewer faults while it is filled, and fewer
/// TLB misses in every probe. It is a hint only, and takes no memory beyond the allocation.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for_huge_pages<T>(values: &Vec<T>) {
    huge_pages::ask(values.as_ptr() as usize, values.capacity() * size_of::<T>());
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_for_huge_pages<T>(_: &Vec<T>) {}

/// The system remembers the request for an address range even when the memory is freed and used for something else: a few small
/// blocks of the allocator would take a huge page each. So it is withdrawn once preparing is done, which leaves the pages that
/// exist as they are.
#[cfg(target_os = "linux")]
mod huge_pages {
    use std::cell::RefCell;

    const HUGE: usize = 2 << 20;

    thread_local! {
        /// Start and length of what this thread asked huge pages for.
        static ASKED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
    }

    /// Asks for them for the whole huge pages that lie within `size` bytes.
    pub(super) fn ask(start: usize, size: usize) {
        let first = start.next_multiple_of(HUGE);
        let len = size.saturating_sub(first - start) / HUGE * HUGE;
        if len > 0 {
            advise(first, len, libc::MADV_HUGEPAGE);
            let _ = ASKED.try_with(|asked| asked.borrow_mut().push((first, len)));
        }
    }

    pub(super) fn ask_for_no_more() {
        let asked = ASKED.try_with(|asked| asked.take()).unwrap_or_default();
        asked.into_iter().for_each(|(start, len)| advise(start, len, libc::MADV_NOHUGEPAGE));
    }

    fn advise(start: usize, len: usize, advice: libc::c_int) {
        // SAFETY: neither advice changes contents or mappings, whatever the range is used for by now.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(start), len, advice) };
    }
}

#[cfg(all(feature = "python", feature = "allocator"))]
fn return_free_pages() {
    unsafe extern "C" {
        fn mi_thread_init();
        fn mi_collect(force: bool);
    }
    // SAFETY: functions of the allocator of this extension module, which any thread may call at any time. In a thread that
    // did not allocate yet the second alone does nothing.
    unsafe {
        mi_thread_init();
        mi_collect(true);
    }
}

/// Other allocators decide themselves when free pages go back to the system; most unmap the largest blocks at once.
#[cfg(not(all(feature = "python", feature = "allocator")))]
fn return_free_pages() {}
