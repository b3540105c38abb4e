//! A build gets a name: written beside, then renamed, so that the name means the old file or the new, never half of one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::open::verify_file;
use super::write::{failed, write_sections};
use crate::error::{Error, Result};
use crate::prepare::PreparedBuild;

/// Choices of [`PreparedBuild::save`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveOptions {
    /// Permission bits of the file, where there are such. By default `0o600`: the user alone reads it.
    pub mode: u32,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self { mode: 0o600 }
    }
}

impl PreparedBuild {
    /// Saves the build as one file that [`open`](Self::open) maps. The same batches give the same file, byte for byte.
    ///
    /// The file is written beside `path` (beside what it points to, where that is a symbolic link), read back and checked, brought to the disk, and renamed; a crash at any point
    /// leaves what was there before, or the new file. Who has the old file open keeps it.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for types that Arrow IPC does not carry, [`Error::External`] with the [`io::Error`] of the
    /// file system. Nothing is left behind then.
    pub fn save(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        let target = target(path.as_ref()).map_err(|error| io_error("save a build as", path.as_ref(), error))?;
        let path = target.as_path();
        let mut temporary = Temporary::beside(path).map_err(|error| io_error("save a build as", path, error))?;
        temporary.fill(self, options).map_err(|error| name(error, "save a build as", path))?;
        fs::rename(&temporary.path, path).map_err(|error| io_error("save a build as", path, error))?;
        temporary.renamed = true;
        sync_directory(path).map_err(|error| io_error("save a build as", path, error))
    }
}

/// The file that `path` means: behind symbolic links, which stay. A name of anything but a file is not to be replaced.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => fs::canonicalize(path),
        Ok(data) if data.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, pipe or socket, not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_path_buf()),
        Err(error) => Err(error),
    }
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
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut beside = std::ffi::OsString::from(".");
            beside.push(name);
            beside.push(format!(".{}-{number}.tmp", std::process::id()));
            let path = path.with_file_name(beside);
            match create_private(&path) {
                Ok(file) => return Ok(Self { path, file, renamed: false }),
                // Of a process that had our id and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&mut self, build: &PreparedBuild, options: &SaveOptions) -> Result<()> {
        write_build(build, &mut self.file)?;
        // A file that cannot be opened must not take the place of one that can.
        verify_file(&self.file)?;
        set_mode(&self.file, options.mode).and_then(|()| self.file.sync_all()).map_err(failed)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that brought us here says more.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes the whole file of `build`.
pub(super) fn write_build(build: &PreparedBuild, file: &mut File) -> Result<()> {
    if let Some(bytes) = build.mapped_file() {
        return file.write_all(bytes).map_err(failed);
    }
    let mut out = BufWriter::with_capacity(1 << 16, &mut *file);
    let header = write_sections(build, &mut out)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.rewind().and_then(|()| file.write_all(&header.encode())).map_err(failed)
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

/// The rename itself is on the disk after this.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// An error of the file system that says what was done with which file.
pub(super) fn io_error(doing: &str, path: &Path, error: io::Error) -> Error {
    Error::External(Box::new(io::Error::new(error.kind(), format!("cannot {doing} {}: {error}", path.display()))))
}

/// `error` with the name of the file.
pub(super) fn name(error: Error, doing: &str, path: &Path) -> Error {
    let named = |text: String| format!("cannot {doing} {}: {text}", path.display());
    match error {
        Error::Execution(text) => Error::Execution(named(text)),
        Error::NotSupported(text) => Error::NotSupported(named(text)),
        Error::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => io_error(doing, path, *error),
            Err(error) => Error::External(error),
        },
        other => other,
    }
}
