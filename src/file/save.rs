//! Saving a build: it is written to a temporary file and renamed, so that the name means the old file or the new one, never half
//! of one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::errors::{io_error, unwrapped, with_path};
use super::open::verify_file;
use super::write::write_sections;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::prepare::{PreparedBuild, Snapshot};

/// Choices of [`PreparedBuild::save`].
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// Permission bits of the file, where there are such. By default those of the file that is replaced, and `0o600` for a
    /// new one: the user alone reads it.
    pub mode: Option<u32>,
    /// Which snapshot of a table the file says that it holds; by default that of the file that the build was opened from, if
    /// it is one.
    pub snapshot: Option<Snapshot>,
    /// Asks saving to stop, up to the moment when the file takes its name.
    pub cancel: Cancel,
}

const SAVE: &str = "save a build as";

impl PreparedBuild {
    /// Saves the build as one file that [`open`](Self::open) maps. The same batches give the same file, byte for byte.
    ///
    /// The file is written beside `path` (beside what it points to, where that is a symbolic link), read back and checked,
    /// brought to the disk, and renamed; a crash at any point leaves what was there before, or the new file. A process that has
    /// the old file open keeps it. To put a copy of a saved file in the place of another, open it and save it there: copying over a
    /// file changes it for those who have it open.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{OpenOptions, PreparedBuild, RunOptions, SaveOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let build = prejoin::prepare(users, &["id"], &RunOptions::default())?;
    /// let path = std::env::temp_dir().join(format!("prejoin-save-{}", std::process::id()));
    /// build.save(&path, &SaveOptions::default())?;
    /// let opened = PreparedBuild::open(&path, &OpenOptions::default())?;
    /// assert_eq!(opened.fingerprint()?, build.fingerprint()?);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotSupported`](crate::Error::NotSupported) for types that Arrow IPC does not carry,
    /// [`External`](crate::Error::External) with the [`io::Error`] of the file system,
    /// [`Cancelled`](crate::Error::Cancelled). Nothing is left behind then.
    pub fn save(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        let path = path.as_ref();
        let failed = |error| io_error(SAVE, path, error);
        let (target, replaced) = target(path).map_err(failed)?;
        let mut temporary = Temporary::beside(&target).map_err(failed)?;
        let mode = options.mode.or(replaced).unwrap_or(0o600);
        temporary.fill(self, mode, options).map_err(|error| with_path(error, SAVE, path))?;
        options.cancel.check()?;
        fs::rename(&temporary.path, &target).map_err(failed)?;
        temporary.renamed = true;
        sync_directory(&target).map_err(failed)
    }
}

/// The file that `path` leads to, through symbolic links, and its mode where it exists. Anything but a file is
/// not replaced.
fn target(path: &Path) -> io::Result<(PathBuf, Option<u32>)> {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => Ok((fs::canonicalize(path)?, mode(&data))),
        Ok(data) if data.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, pipe or socket, not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Links that form a circle give another error than `NotFound`, so this loop ends.
            let mut target = path.to_path_buf();
            while let Ok(next) = fs::read_link(&target) {
                target = target.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok((target, None))
        }
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn mode(data: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> Option<u32> {
    None
}

/// A file that is removed unless it was renamed.
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // Without the name of the file, which may already have the greatest length of a name.
            let path = path.with_file_name(format!(".prejoin-{}-{number}.tmp", std::process::id()));
            match create_private(&path) {
                Ok(file) => return Ok(Self { path, file, renamed: false }),
                // Left by a killed process of the same id, or made by one in another container.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&mut self, build: &PreparedBuild, mode: u32, options: &SaveOptions) -> Result<()> {
        write_build(build, options.snapshot.as_ref(), &mut self.file, &options.cancel)?;
        // A file that cannot be opened must not take the place of one that can.
        verify_file(&self.file, &options.cancel)?;
        set_mode(&self.file, mode).and_then(|()| self.file.sync_all()).map_err(unwrapped)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The caller already returns an error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes the whole file of `build`.
pub(super) fn write_build(
    build: &PreparedBuild,
    snapshot: Option<&Snapshot>,
    file: &mut File,
    cancel: &Cancel,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, &mut *file);
    let header = write_sections(build, snapshot, &mut out, cancel)?;
    out.flush().map_err(unwrapped)?;
    drop(out);
    file.rewind().and_then(|()| file.write_all(&header.encode())).map_err(unwrapped)
}

/// A new file that the user alone can read and write.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Brings the rename to the disk, where that is possible: a directory may be writable and not readable, and some file systems
/// do not support this.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(directory) = File::open(parent.unwrap_or(Path::new("."))) else { return Ok(()) };
    match directory.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
