//! A build for other processes, without a named file: memory that the kernel frees with its last user.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::errors::{io_error, unwrapped, with_path};
use super::header::Header;
use super::mapping::Mapped;
use super::open::{OpenOptions, open_file, open_mapped, verify_file};
use super::save::write_build;
use super::write::write_sections;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::memory::Reservation;
use crate::prepare::{PreparedBuild, Snapshot};

const SHARE: &str = "share a build through";

/// A build that other processes of this host can open, by [`path`](Self::path) and [`fingerprint`](Self::fingerprint).
///
/// On Linux it is sealed memory without a name, freed by the kernel once no handle and no mapping of it is left, also
/// when processes are killed. It can be opened while a process that has a handle lives. Elsewhere it is a temporary file that
/// the first handle removes.
#[derive(Debug)]
pub struct SharedBuild {
    /// Keeps the memory, which others open through this process.
    file: File,
    fingerprint: u128,
    #[cfg(not(target_os = "linux"))]
    path: std::path::PathBuf,
    #[cfg(not(target_os = "linux"))]
    owner: bool,
    /// Of the process that shared the build, last: the memory goes first.
    _charge: Option<Reservation>,
}

impl PreparedBuild {
    /// Copies the build into memory that other processes map. See [`SharedBuild`]. A pool that pays for the build pays for
    /// the copy too, as long as the handle lives.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{OpenOptions, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let shared = build.share()?;
    /// assert_eq!(shared.open(&OpenOptions::default())?.rows()?, build.rows()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSupported`] for types that Arrow IPC does not carry, [`Error::External`] with the [`io::Error`] of the
    /// system, [`Error::ResourcesExhausted`] from the pool.
    pub fn share(&self) -> Result<SharedBuild> {
        self.share_with(None, &Cancel::default())
    }

    /// [`share`](Self::share) that looks at `cancel` while it copies, and says which snapshot the copy is, by default that of
    /// the build.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{Cancel, Error, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let cancel = Cancel::new();
    /// cancel.cancel();
    /// assert!(matches!(build.share_with(None, &cancel), Err(Error::Cancelled)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`share`](Self::share), and [`Error::Cancelled`].
    pub fn share_with(&self, snapshot: Option<&Snapshot>, cancel: &Cancel) -> Result<SharedBuild> {
        let fingerprint = self.fingerprint_with(cancel)?;
        let mut charge = self.pool().map(|pool| Reservation::new(pool, "shared build"));
        if let Some(charge) = &mut charge {
            // Written to a sink, only to learn the size.
            let size = write_sections(self, snapshot, io::sink(), cancel)?.file_length();
            charge.try_grow(usize::try_from(size).unwrap_or(usize::MAX))?;
        }
        let (mut shared, path) =
            SharedBuild::create(fingerprint, charge).map_err(|error| io_error(SHARE, Path::new("memory"), error))?;
        let filled = write_build(self, snapshot, &mut shared.file, cancel);
        let filled = filled.and_then(|()| verify_file(&shared.file, cancel));
        let sealed = filled.and_then(|()| shared.seal().map_err(unwrapped));
        sealed.map_err(|error| with_path(error, SHARE, &path))?;
        Ok(shared)
    }
}

impl SharedBuild {
    /// A handle on the build that another process shared, by its [`path`](Self::path) and [`fingerprint`](Self::fingerprint).
    /// What is at the path now is checked before it is trusted: it must be a build with this fingerprint, on Linux in sealed
    /// memory.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{OpenOptions, RunOptions, SharedBuild};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let shared = prejoin::prepare(users, &["id"], &RunOptions::default())?.share()?;
    ///
    /// // In another process, which was sent the path and the fingerprint:
    /// let attached = SharedBuild::attach(shared.path(), shared.fingerprint())?;
    /// assert_eq!(attached.open(&OpenOptions::default())?.num_rows(), 2);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::External`] with the [`io::Error`] of the system: that process is gone, or does not let this one in.
    /// [`Error::Damaged`] where something else is in its place.
    pub fn attach(path: impl Into<PathBuf>, fingerprint: u128) -> Result<Self> {
        let path = path.into();
        let file = open_file(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let gone = "the process that shared this build is gone, and the build with it; keep a handle in a process \
                            that stays, or save the build to a file";
                Error::External(Box::new(io::Error::new(error.kind(), gone)))
            }
            // A shared build is a regular file.
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => replaced(),
            _ => io_error("attach to the shared build", &path, error),
        })?;
        if !is_sealed(&file) {
            return Err(replaced());
        }
        let mut start = Vec::new();
        let read = file.metadata().and_then(|data| {
            (&file).take(Header::MAX_HEADER as u64).read_to_end(&mut start)?;
            Ok(data.len())
        });
        let length = read.map_err(|error| io_error("attach to the shared build", &path, error))?;
        match Header::decode_start(&start, length) {
            Ok(header) if header.fingerprint == fingerprint => Ok(Self::of(file, path, fingerprint)),
            Err(error @ Error::NotSupported(_)) => Err(with_path(error, "attach to the shared build", &path)),
            _ => Err(replaced()),
        }
    }

    /// Maps the build. Everything is checked, unless `options` say otherwise.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::record_batch;
    /// use prejoin::{MemoryPool, OpenOptions, Pool, RunOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let shared = prejoin::prepare(users, &["id"], &RunOptions::default())?.share()?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::new(1 << 20));
    /// let build = shared.open(&OpenOptions { pool: Some(Arc::clone(&pool)), ..OpenOptions::default() })?;
    /// assert_eq!(pool.reserved(), build.memory().mapped);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`PreparedBuild::open`]; [`Error::Damaged`] where the process that shared it is gone and something else is in
    /// its place.
    pub fn open(&self, options: &OpenOptions) -> Result<Arc<PreparedBuild>> {
        const OPEN: &str = "open the shared build";
        let mapped = self.mapped().map_err(|error| io_error(OPEN, &self.path(), error))?;
        let charge = options.pool.as_ref().map(|pool| mapped.charge(pool)).transpose()?;
        let build = open_mapped(mapped, None, charge, options).map_err(|error| with_path(error, OPEN, &self.path()))?;
        match build.fingerprint()? == self.fingerprint {
            true => Ok(Arc::new(build)),
            false => Err(replaced()),
        }
    }

    /// Identity of its contents.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// assert_eq!(build.share()?.fingerprint(), build.fingerprint()?);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }
}

fn replaced() -> Error {
    let text =
        "something else is in the place of the shared build: the process that shared it is gone; share the build again";
    Error::Damaged(text.to_owned())
}

/// With these seals, no process can change the bytes.
#[cfg(target_os = "linux")]
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;

#[cfg(target_os = "linux")]
fn is_sealed(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: an open descriptor; the command takes no argument, and fails where there are no seals.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & SEALS == SEALS
}

/// Elsewhere it is an ordinary file.
#[cfg(not(target_os = "linux"))]
fn is_sealed(_: &File) -> bool {
    true
}

#[cfg(target_os = "linux")]
impl SharedBuild {
    fn create(fingerprint: u128, charge: Option<Reservation>) -> io::Result<(Self, PathBuf)> {
        use std::os::fd::FromRawFd;
        // SAFETY: the name is a C string; the flags are those of the call.
        let fd = unsafe { libc::memfd_create(c"prejoin".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        let this = Self { file, fingerprint, _charge: charge };
        let path = this.path();
        Ok((this, path))
    }

    fn of(file: File, _: PathBuf, fingerprint: u128) -> Self {
        Self { file, fingerprint, _charge: None }
    }

    /// Where processes of this host open it: through this process, also where another one shared it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let shared = prejoin::prepare(users, &["id"], &RunOptions::default())?.share()?;
    /// assert!(shared.path().exists());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    fn seal(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        // SAFETY: an open descriptor and an integer argument, as the command takes.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn mapped(&self) -> io::Result<Arc<Mapped>> {
        // Opened anew for reading only: a sealed file is not mapped through a descriptor that could write.
        Mapped::of(&File::open(self.path())?)
    }
}

#[cfg(not(target_os = "linux"))]
impl SharedBuild {
    fn create(fingerprint: u128, charge: Option<Reservation>) -> io::Result<(Self, PathBuf)> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("prejoin-{}-{number}.shared", std::process::id()));
            match super::save::create_private(&path) {
                Ok(file) => {
                    return Ok((Self { file, fingerprint, path: path.clone(), owner: true, _charge: charge }, path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
        }
    }

    fn of(file: File, path: PathBuf, fingerprint: u128) -> Self {
        Self { file, fingerprint, path, owner: false, _charge: None }
    }

    /// Where processes of this host open it.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::RunOptions;
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let shared = prejoin::prepare(users, &["id"], &RunOptions::default())?.share()?;
    /// assert!(shared.path().exists());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn seal(&self) -> io::Result<()> {
        Ok(())
    }

    fn mapped(&self) -> io::Result<Arc<Mapped>> {
        Mapped::of(&self.file)
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for SharedBuild {
    fn drop(&mut self) {
        if self.owner {
            // Where a mapped file cannot be removed, the system's own cleaning of temporary files does.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
