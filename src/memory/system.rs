//! Memory of large builds goes back to the operating system, not to the allocator alone.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A build of so many bytes gives its pages back by itself. Less is not worth it: whoever comes next faults them in anew,
/// which for the next build costs about half of the time of preparing it.
const LARGE: usize = 8 << 20;

/// So many bytes of smaller builds give theirs back together.
const MANY: usize = 32 << 20;

/// Bytes that reservations gave back since the allocator was asked last.
static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes that a reservation gave back.
pub(super) fn count_given_back(bytes: usize) {
    GIVEN_BACK.fetch_add(bytes, Ordering::Relaxed);
}

/// The last field of what holds the memory of a build or of preparing one, with the most bytes that it held: once all that is
/// dropped, free pages go back to the system. Output batches leave theirs with the allocator, where the next ones find them.
#[derive(Debug, Default)]
pub(crate) struct ReturnsToSystem(usize);

impl ReturnsToSystem {
    /// For memory of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// So many bytes are held now.
    pub(crate) fn saw(&mut self, bytes: usize) {
        self.0 = self.0.max(bytes);
    }
}

impl Drop for ReturnsToSystem {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        huge_pages::ask_for_no_more();
        if self.0 >= LARGE || GIVEN_BACK.load(Ordering::Relaxed) >= MANY {
            GIVEN_BACK.store(0, Ordering::Relaxed);
            return_free_pages();
        }
    }
}

/// Asks for huge pages beneath a large allocation that nobody has written to yet: fewer faults while it is filled, and fewer
/// TLB misses in every probe. It is a hint only, and takes no memory beyond the allocation.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for_huge_pages<T>(values: &Vec<T>) {
    huge_pages::ask(values.as_ptr() as usize, values.capacity() * size_of::<T>());
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_for_huge_pages<T>(_: &Vec<T>) {}

/// The system remembers the wish for an address, whoever gets it next: a few small blocks of the allocator would take a huge
/// page each. So it is taken back once preparing is done, which leaves the pages that are there as they are.
#[cfg(target_os = "linux")]
mod huge_pages {
    use std::cell::RefCell;

    const HUGE: usize = 2 << 20;

    thread_local! {
        /// Start and length of what this thread asked huge pages for.
        static ASKED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
    }

    /// Asks for them beneath the whole huge pages of `size` bytes.
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
        // SAFETY: neither advice changes contents or mappings, whose ever the range is by now.
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

/// Another allocator keeps its own rules; those of the systems unmap large blocks as soon as they are free.
#[cfg(not(all(feature = "python", feature = "allocator")))]
fn return_free_pages() {}
