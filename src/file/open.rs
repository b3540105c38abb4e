//! Opening a saved build: the file becomes a build, in place.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};

use super::PIECE;
use super::errors::{damaged, io_error, unwrapped, with_path};
use super::header::{ALIGN, Header, Section, padded};
use super::mapping::Mapped;
use super::meta::{Meta, decode_snapshot};
use super::rows::StoredRows;
use super::section::{SectionKind, SectionName};
use crate::cancel::Cancel;
use crate::columns::{Bounds, LazyColumn, coerce, key_type, same_columns};
use crate::error::Result;
use crate::index::{IndexKind, IndexPart, Indexed, StoredIndex};
use crate::memory::{Pool, Reservation};
use crate::prepare::{Backing, BackingFile, BuildParts, BuildSpec, Fingerprint, Membership, PreparedBuild, Snapshot};

/// Choices of [`PreparedBuild::open`].
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Checks all sums and every offset, group id, row number and string at once. Without, opening takes microseconds
    /// whatever the size: the index is read with bounds checks only, and each column is checked by its first user.
    /// Default true.
    pub verify: bool,
    /// Pays for the mapped bytes, once per process however often the file is opened with it, or for the copy that `memory`
    /// asks for. By default no pool is charged.
    pub pool: Option<Arc<dyn Pool>>,
    /// Copies the file into memory of this process instead of mapping it: whatever happens to the file later does no harm,
    /// and nothing is shared. Default false.
    pub memory: bool,
    /// Asks opening to stop.
    pub cancel: Cancel,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { verify: true, pool: None, memory: false, cancel: Cancel::default() }
    }
}

const OPEN: &str = "open the saved build";

impl PreparedBuild {
    /// Maps the build that [`save`](Self::save) wrote: nothing is parsed, copied or rebuilt, and all processes of a host
    /// share one copy.
    ///
    /// A mapped file is trusted to stay as it is while the build lives: never write to it or cut it in place, as `cp` over it
    /// does; [`save`](Self::save) replaces it. Where that cannot be promised, [`OpenOptions::memory`] makes a copy.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{OpenOptions, PreparedBuild, RunOptions, SaveOptions};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2]))?;
    /// let path = std::env::temp_dir().join(format!("prejoin-open-{}", std::process::id()));
    /// prejoin::prepare(users, &["id"], &RunOptions::default())?.save(&path, &SaveOptions::default())?;
    /// let build = PreparedBuild::open(&path, &OpenOptions::default())?;
    /// assert_eq!((build.num_rows(), build.path()), (2, Some(path.as_path())));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Damaged`](crate::Error::Damaged) for a damaged or foreign file,
    /// [`NotSupported`](crate::Error::NotSupported) for one of another version, [`External`](crate::Error::External) with
    /// the [`io::Error`] of the file system, [`ResourcesExhausted`](crate::Error::ResourcesExhausted) from the pool,
    /// [`Cancelled`](crate::Error::Cancelled).
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let file = open_file(path).map_err(|error| io_error(OPEN, path, error))?;
        // The process may change its directory.
        let absolute = std::path::absolute(path).map_err(|error| io_error(OPEN, path, error))?;
        if options.memory {
            return open_copy(&file, absolute, options).map(Arc::new).map_err(|error| with_path(error, OPEN, path));
        }
        let mapped = Mapped::of(&file).map_err(|error| io_error(OPEN, path, error))?;
        // All callers without a pool share one build while it lives. With a pool, each gets another one, charged to that pool.
        if options.pool.is_none()
            && let Some(build) = mapped.opened(&absolute, options.verify)
        {
            return Ok(build);
        }
        let charge = options.pool.as_ref().map(|pool| mapped.charge(pool)).transpose()?;
        let build = open_mapped(Arc::clone(&mapped), Some(absolute), charge, options);
        let build = Arc::new(build.map_err(|error| with_path(error, OPEN, path))?);
        if options.pool.is_none() {
            mapped.remember(&build);
        }
        Ok(build)
    }
}

fn open_copy(mut file: &File, path: PathBuf, options: &OpenOptions) -> Result<PreparedBuild> {
    let length = file.metadata().map_err(unwrapped)?.len();
    // The header is read first, so that another file is refused before it is copied.
    let mut start = Vec::new();
    file.take(Header::MAX_HEADER as u64).read_to_end(&mut start).map_err(unwrapped)?;
    Header::decode_start(&start, length)?;
    file.rewind().map_err(unwrapped)?;
    let len = usize::try_from(length).unwrap_or(usize::MAX);
    let mut charge = options.pool.as_ref().map(|pool| Reservation::new(pool, "copy of a saved build"));
    if let Some(charge) = &mut charge {
        charge.try_grow(len)?;
    }
    let copy = Mapped::copy_of(file, len, &options.cancel)?;
    open_mapped(copy, Some(path), charge.map(Arc::new), options)
}

/// Opens a regular file. Others may block, or have no length.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let regular = |data: fs::Metadata| match (data.is_file(), data.is_dir()) {
        (true, _) => Ok(()),
        (_, true) => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    regular(fs::metadata(path)?)?;
    let mut options = fs::OpenOptions::new();
    options.read(true);
    // Something else may have taken the name since: opening a pipe must not block.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    regular(file.metadata()?)?;
    Ok(file)
}

/// Makes a build of a file of this process, which may have no name; `charge` pays for its bytes.
pub(super) fn open_mapped(
    mapped: Arc<Mapped>,
    path: Option<PathBuf>,
    charge: Option<Arc<Reservation>>,
    options: &OpenOptions,
) -> Result<PreparedBuild> {
    let cancel = &options.cancel;
    let header = Header::decode(mapped.bytes())?;
    if options.verify {
        check_sums(&header, mapped.bytes(), cancel)?;
    }
    let stored = Stored { mapped, header };
    let meta = stored.meta()?;
    let rows = stored.rows(SectionKind::Rows)?;
    check_schema(meta.spec.schema(), rows.schema())?;
    let columns = match options.verify {
        true => rows.columns(meta.rows, cancel)?.into_iter().map(LazyColumn::from).collect(),
        false => (0..rows.schema().fields().len()).map(|column| later(&rows, column, meta.rows)).collect::<Vec<_>>(),
    };
    let types: Vec<DataType> =
        meta.spec.keys().iter().map(|&key| key_type(meta.spec.schema().field(key).data_type())).collect();
    let (index, groups) = {
        let nulls_equal: Vec<bool> = meta.spec.null_equality().iter().map(|nulls| nulls.nulls_equal()).collect();
        let column = stored.key_column(&meta, &columns, &types, options.verify)?;
        let indexed = Indexed { types: &types, nulls_equal: &nulls_equal, rows: meta.rows, column };
        stored.index(&meta).restore(&indexed, options.verify.then_some(cancel))?
    };
    if options.verify {
        let key = |key: usize| columns[meta.spec.keys()[key]].get();
        index.check_encoding(&groups, |row| {
            (0..types.len()).map(|i| Ok(coerce(&key(i)?.slice(row, 1), &types[i])?.keys)).collect()
        })?;
        let mut has_null_key = false;
        for i in 0..types.len() {
            has_null_key |= key(i)?.logical_null_count() > 0;
        }
        if stored.fingerprint(&meta)?.value != stored.header.fingerprint {
            return Err(damaged("its fingerprint is not that of its rows"));
        }
        if has_null_key != meta.has_null_key {
            return Err(damaged("it says whether there are null keys, and that is wrong"));
        }
    }
    let fingerprint = Fingerprint { value: stored.header.fingerprint, row_sum: meta.row_sum };
    let (bounds, snapshot) = (stored.bounds(&types)?, stored.snapshot()?);
    let membership = match meta.in_list {
        true => {
            let keys = meta.spec.keys().iter().map(|&key| columns[key].get().cloned()).collect::<Result<Vec<_>>>()?;
            Membership::list(rows.schema(), meta.spec.keys(), keys)?
                .ok_or_else(|| damaged("its keys are of a type that has no IN-list"))?
        }
        false => Membership::Map,
    };
    let backing = StoredBacking {
        rows_bytes: stored.size(SectionKind::Rows),
        mapped: stored.mapped,
        path,
        is_verified: options.verify,
        charge,
    };
    Ok(PreparedBuild::from_parts(BuildParts {
        fingerprint: Some(fingerprint),
        snapshot,
        spec: meta.spec,
        schema: Arc::clone(rows.schema()),
        columns,
        num_rows: meta.rows,
        has_null_key: Some(meta.has_null_key),
        index,
        groups,
        order: None,
        bounds,
        membership,
        backing: Box::new(backing),
    }))
}

/// Opens a file that was just written, to check it.
pub(super) fn verify_file(file: &File, cancel: &Cancel) -> Result<()> {
    let options = OpenOptions { cancel: cancel.clone(), ..OpenOptions::default() };
    open_mapped(Mapped::new(file).map_err(unwrapped)?, None, None, &options).map(drop)
}

fn later(rows: &Arc<StoredRows>, column: usize, len: usize) -> LazyColumn {
    let rows = Arc::clone(rows);
    LazyColumn::later(move || rows.column(column, len))
}

fn check_sums(header: &Header, file: &[u8], cancel: &Cancel) -> Result<()> {
    for section in &header.sections {
        let (start, end) = (section.offset as usize, (section.offset + section.length) as usize);
        let mut checksum = crc32fast::Hasher::new();
        for piece in file[start..end].chunks(PIECE) {
            cancel.check()?;
            checksum.update(piece);
        }
        if checksum.finalize() != section.checksum {
            return Err(damaged(&format!("the checksum of its section {} is wrong", section.name)));
        }
        if file[end..padded(end as u64) as usize].iter().any(|&byte| byte != 0) {
            return Err(damaged("there are bytes between its sections"));
        }
    }
    Ok(())
}

/// The rows may be nullable where the build says that they are not, and differ in nothing else.
fn check_schema(build: &Schema, rows: &Schema) -> Result<()> {
    let mut fields = build.fields().iter().zip(rows.fields());
    if same_columns(build, rows) && fields.all(|(build, rows)| build.metadata() == rows.metadata()) {
        Ok(())
    } else {
        Err(damaged("its rows have another schema than the build"))
    }
}

/// A file in memory that a build lies in.
struct StoredBacking {
    mapped: Arc<Mapped>,
    rows_bytes: usize,
    path: Option<PathBuf>,
    is_verified: bool,
    /// Last: the memory goes before its charge.
    charge: Option<Arc<Reservation>>,
}

impl Backing for StoredBacking {
    fn reserved_bytes(&self) -> usize {
        self.charge.as_ref().map_or(0, |charge| charge.size())
    }

    fn pool(&self) -> Option<&Arc<dyn Pool>> {
        self.charge.as_ref().map(|charge| charge.pool())
    }

    fn file(&self) -> Option<BackingFile<'_>> {
        Some(BackingFile {
            bytes: self.mapped.bytes(),
            rows_bytes: self.rows_bytes,
            path: self.path.as_deref(),
            is_private: self.mapped.is_private(),
            is_verified: self.is_verified,
        })
    }
}

/// A mapped file with its header.
struct Stored {
    mapped: Arc<Mapped>,
    header: Header,
}

impl Stored {
    fn meta(&self) -> Result<Meta> {
        Meta::decode(self.description(self.section(SectionKind::Meta)?)?)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>> {
        let section = self.header.section(SectionKind::Snapshot);
        section.map(|section| decode_snapshot(self.description(section)?)).transpose()
    }

    /// The bytes of a section that is checked even without `verify`: it is small, and all else relies on it.
    fn description(&self, section: Section) -> Result<&[u8]> {
        let bytes = self.bytes(section);
        match crc32fast::hash(bytes) == section.checksum {
            true => Ok(bytes),
            false => Err(damaged("the checksum of its description is wrong")),
        }
    }

    /// The fingerprint that the header ought to hold.
    fn fingerprint(&self, meta: &Meta) -> Result<Fingerprint> {
        Fingerprint::of_sum(&meta.spec, meta.rows, meta.row_sum)
    }

    fn section(&self, kind: SectionKind) -> Result<Section> {
        self.header.section(kind).ok_or_else(|| damaged(&format!("it has no section {}", SectionName::from(kind))))
    }

    fn bytes(&self, section: Section) -> &[u8] {
        &self.mapped.bytes()[section.offset as usize..][..section.length as usize]
    }

    fn buffer(&self, section: Section) -> arrow_buffer::Buffer {
        self.mapped.buffer(section.offset as usize, section.length as usize)
    }

    fn size(&self, kind: SectionKind) -> usize {
        self.header.section(kind).map_or(0, |section| section.length as usize)
    }

    fn rows(&self, kind: SectionKind) -> Result<Arc<StoredRows>> {
        StoredRows::open(self.buffer(self.section(kind)?))
    }

    fn index(&self, meta: &Meta) -> StoredIndex {
        let part = |section: &Section| Some((section.name.index_part()?, self.buffer(*section)));
        StoredIndex {
            kind: meta.kind,
            num_keys: meta.keys,
            null_group: meta.null_group,
            groups: meta.groups,
            numbers: meta.numbers.clone(),
            parts: self.header.sections.iter().filter_map(part).collect(),
        }
    }

    /// The first key column as it is indexed.
    fn key_column(&self, meta: &Meta, columns: &[LazyColumn], types: &[DataType], verify: bool) -> Result<LazyColumn> {
        let key = meta.spec.keys()[0];
        if self.header.section(SectionKind::Key).is_none() {
            // An index that reads this column finds it in another type and is refused.
            return match meta.kind == IndexKind::Bytes && types[0] != *meta.spec.schema().field(key).data_type() {
                true => Ok(LazyColumn::later(|| Err(damaged("it has no section \"key\"")))),
                false => Ok(columns[key].clone()),
            };
        }
        let rows = self.rows(SectionKind::Key)?;
        if rows.schema().fields().len() != 1 || *rows.schema().field(0).data_type() != types[0] {
            return Err(damaged("its indexed key column has another type"));
        }
        let column = later(&rows, 0, meta.rows);
        if verify {
            column.get()?;
        }
        Ok(column)
    }

    fn bounds(&self, types: &[DataType]) -> Result<Vec<Option<Bounds>>> {
        let stored = self.rows(SectionKind::Bounds)?;
        let columns = stored.columns(2, &Cancel::default())?;
        if columns.len() != types.len() {
            return Err(damaged("it has bounds of other keys"));
        }
        let one = |(column, data_type): (&ArrayRef, &DataType)| match column.data_type() {
            DataType::Null => Ok(None),
            found if found == data_type && column.null_count() == 0 => {
                Ok(Some(Bounds::new(column.slice(0, 1), column.slice(1, 1))))
            }
            found => Err(damaged(&format!("it has bounds of type {found} for a key of type {data_type}"))),
        };
        columns.iter().zip(types).map(one).collect()
    }
}

/// What the header of a saved build says, without opening the build.
#[derive(Clone)]
pub struct SavedInfo {
    /// What the build was prepared for: schema, key columns, null equality.
    pub spec: BuildSpec,
    /// Number of build rows.
    pub num_rows: usize,
    /// Number of distinct keys that a probe can match.
    pub num_keys: usize,
    /// Rows whose key another row before them has.
    pub duplicates: usize,
    /// Which index structure it has.
    pub index_kind: IndexKind,
    /// True where a filter gets the keys as a list.
    pub in_list: bool,
    /// Bytes of the rows, an Arrow IPC file, and where in the file it begins.
    pub rows: std::ops::Range<u64>,
    /// Bytes of the index: keys to groups.
    pub index_bytes: u64,
    /// Bytes of the groups: groups to rows.
    pub groups_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Identity of the contents.
    pub fingerprint: u128,
    /// Which snapshot of a table it is, where the file says so.
    pub snapshot: Option<Snapshot>,
    /// When the file was written, where the system knows it.
    pub created: Option<SystemTime>,
    /// Version of the crate that wrote it.
    pub crate_version: String,
    /// Version of its format.
    pub format_version: u32,
}

impl SavedInfo {
    /// Reads the header of a saved build and checks nothing else.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{RunOptions, SaveOptions, SavedInfo};
    ///
    /// let users = record_batch!(("id", Int64, [1, 2, 2]))?;
    /// let path = std::env::temp_dir().join(format!("prejoin-info-{}", std::process::id()));
    /// prejoin::prepare(users, &["id"], &RunOptions::default())?.save(&path, &SaveOptions::default())?;
    /// let info = SavedInfo::read(&path)?;
    /// assert_eq!((info.num_rows, info.num_keys, info.duplicates), (3, 2, 1));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`PreparedBuild::open`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, created) = open_file(path)
            .and_then(|file| Ok((Mapped::of(&file)?, file.metadata()?.modified().ok())))
            .map_err(|error| io_error("inspect the saved build", path, error))?;
        Self::of(file, created).map_err(|error| with_path(error, "inspect the saved build", path))
    }

    fn of(mapped: Arc<Mapped>, created: Option<SystemTime>) -> Result<Self> {
        let header = Header::decode(mapped.bytes())?;
        let stored = Stored { mapped, header };
        let meta = stored.meta()?;
        let rows = stored.section(SectionKind::Rows)?;
        let size = |parts: &[IndexPart]| parts.iter().map(|&part| stored.size(SectionKind::Index(part)) as u64).sum();
        let of_groups = [IndexPart::GroupOffsets, IndexPart::GroupRows];
        let of_index: Vec<IndexPart> = IndexPart::ALL.into_iter().filter(|part| !of_groups.contains(part)).collect();
        let indexed = match (meta.groups, stored.header.section(SectionKind::Index(IndexPart::GroupOffsets))) {
            (2, Some(offsets)) => ends(stored.bytes(offsets)),
            (3, _) => stored.size(SectionKind::Index(IndexPart::GroupRows)) / 4,
            _ => meta.keys,
        };
        Ok(Self {
            num_rows: meta.rows,
            num_keys: meta.keys,
            duplicates: indexed.saturating_sub(meta.keys),
            index_kind: meta.kind,
            in_list: meta.in_list,
            rows: rows.offset..rows.offset + rows.length,
            index_bytes: size(&of_index) + stored.size(SectionKind::Key) as u64,
            groups_bytes: size(&of_groups),
            file_bytes: stored.mapped.bytes().len() as u64,
            fingerprint: stored.header.fingerprint,
            snapshot: stored.snapshot()?,
            created,
            crate_version: stored.header.crate_version,
            format_version: stored.header.format_version,
            spec: meta.spec,
        })
    }
}

impl fmt::Debug for SavedInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedInfo")
            .field("schema", self.spec.schema())
            .field("keys", &self.spec.keys())
            .field("num_rows", &self.num_rows)
            .field("num_keys", &self.num_keys)
            .field("index_kind", &self.index_kind)
            .field("fingerprint", &format_args!("{:032x}", self.fingerprint))
            .finish_non_exhaustive()
    }
}

/// The last of some `u32` less the first.
fn ends(offsets: &[u8]) -> usize {
    let number = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    number(offsets.last_chunk()).saturating_sub(number(offsets.first_chunk()))
}

// Sections begin where every array type may.
const _: () = assert!(ALIGN as usize >= align_of::<u128>());
