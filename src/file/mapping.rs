//! Files in memory: mapped, each once per process, or copied.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

use arrow_buffer::Buffer;
use memmap2::{Mmap, MmapMut};

use super::header::damaged;
use super::write::{PIECE, failed};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::memory::{Pool, Reservation};
use crate::prepare::PreparedBuild;

/// A mapped file, or a copy of one. It stays mapped as long as a buffer of it lives.
pub(crate) struct Mapped {
    map: Mmap,
    /// A copy, which nobody else has.
    private: bool,
    /// One per pool that was asked to pay for it.
    charges: Mutex<Vec<Weak<Reservation>>>,
    /// The builds of it that nobody pays for, by path and whether they are verified.
    builds: Mutex<Vec<Weak<PreparedBuild>>>,
}

/// Which bytes a file holds, as far as the system tells.
#[cfg(unix)]
type FileId = (u64, u64, u64, i64, i64);

#[cfg(unix)]
static MAPPED: Mutex<Vec<(FileId, Weak<Mapped>)>> = Mutex::new(Vec::new());

impl Mapped {
    /// Maps `file`, or answers the mapping that this process has of it.
    pub(super) fn of(file: &File) -> io::Result<Arc<Self>> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let data = file.metadata()?;
            let id = (data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec());
            if let Some(mut known) = briefly(&MAPPED) {
                known.retain(|(_, mapped)| mapped.strong_count() > 0);
                let same = known.iter().filter(|(other, _)| *other == id).find_map(|(_, mapped)| mapped.upgrade());
                return match same {
                    Some(mapped) => Ok(mapped),
                    None => {
                        let mapped = Self::new(file)?;
                        known.push((id, Arc::downgrade(&mapped)));
                        Ok(mapped)
                    }
                };
            }
        }
        Self::new(file)
    }

    /// Maps `file` once more.
    pub(super) fn new(file: &File) -> io::Result<Arc<Self>> {
        // SAFETY: read-only. That nobody changes or cuts the file in place while it is mapped is what `open` asks of its
        // callers; `save` never does.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self::with(map, false))
    }

    /// Copies `file` into memory of this process, where nothing that happens to the file reaches it. Read, never mapped: a
    /// file that is cut meanwhile is an error then.
    pub(super) fn copy_of(mut file: &File, len: usize, cancel: &Cancel) -> Result<Arc<Self>> {
        let mut map = MmapMut::map_anon(len).map_err(failed)?;
        // A hint: large indexes are probed at random.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        for piece in map.chunks_mut(PIECE) {
            cancel.check()?;
            file.read_exact(piece).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => damaged("it was cut while it was read"),
                _ => failed(error),
            })?;
        }
        Ok(Self::with(map.make_read_only().map_err(failed)?, true))
    }

    fn with(map: Mmap, private: bool) -> Arc<Self> {
        Arc::new(Self { map, private, charges: Mutex::default(), builds: Mutex::default() })
    }

    /// Whether this is memory of this process alone.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The bytes `start..start + len`, which keep the file mapped.
    ///
    /// # Panics
    /// If they do not lie in the file.
    pub(super) fn buffer(self: &Arc<Self>, start: usize, len: usize) -> Buffer {
        let bytes = &self.map[start..][..len];
        let start = NonNull::from(bytes).cast::<u8>();
        // SAFETY: the owner keeps these bytes mapped, where they are, for as long as the buffer lives.
        unsafe { Buffer::from_custom_allocation(start, len, Arc::new(AssertUnwindSafe(Arc::clone(self)))) }
    }

    /// A build that was opened from this file and lives, with this path, and verified if that is asked.
    pub(super) fn opened(&self, path: &Path, verify: bool) -> Option<Arc<PreparedBuild>> {
        let builds = briefly(&self.builds)?;
        let same = |build: &Arc<PreparedBuild>| build.path() == Some(path) && (build.is_verified() || !verify);
        builds.iter().filter_map(Weak::upgrade).find(same)
    }

    /// Remembers a build that was opened from this file.
    pub(super) fn remember(&self, build: &Arc<PreparedBuild>) {
        if let Some(mut builds) = briefly(&self.builds) {
            builds.retain(|build| build.strong_count() > 0);
            builds.push(Arc::downgrade(build));
        }
    }

    /// The charge of this file to `pool`, the same for all that ask at one time.
    ///
    /// # Errors
    /// [`Error::ResourcesExhausted`](crate::Error::ResourcesExhausted).
    pub(super) fn charge(&self, pool: &Arc<dyn Pool>) -> Result<Arc<Reservation>> {
        let mut charges = briefly(&self.charges);
        if let Some(charges) = &mut charges {
            charges.retain(|charge| charge.strong_count() > 0);
            let same = |charge: &Arc<Reservation>| Arc::ptr_eq(charge.pool(), pool);
            if let Some(charge) = charges.iter().filter_map(Weak::upgrade).find(same) {
                return Ok(charge);
            }
        }
        let mut charge = Reservation::new(pool, "mapped build");
        charge.try_grow(self.map.len())?;
        let charge = Arc::new(charge);
        if let Some(charges) = &mut charges {
            charges.push(Arc::downgrade(&charge));
        }
        Ok(charge)
    }
}

impl fmt::Debug for Mapped {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} bytes)", self.map.len())
    }
}

/// The lock, or nothing where it stays taken: a fork may have caught another thread with it, which the child does not
/// have. Its holders are done in microseconds.
fn briefly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..10_000 {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
