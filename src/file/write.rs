//! A build as the bytes of a file.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat;

use super::PIECE;
use super::errors::unwrapped;
use super::header::{ALIGN, Header, Section, padded};
use super::meta::{Meta, encode_snapshot};
use super::rows::write_rows;
use super::section::{SectionKind, SectionName};
use crate::cancel::Cancel;
use crate::columns::copy_size::copy_bound;
use crate::columns::{Bounds, concat as concat_columns, has_run_ends, key_type};
use crate::error::{Result, not_supported};
use crate::index::StoredIndex;
use crate::memory::Reservation;
use crate::prepare::{Membership, PreparedBuild, Snapshot};

enum Content<'a> {
    Bytes(Vec<u8>),
    /// Of a file in memory.
    Stored(&'a [u8]),
    Buffer(Buffer),
    Rows(RecordBatch),
}

/// A section that is to be written: its name, whether a reader has to know it, and what it holds.
type Unwritten<'a> = (SectionName, bool, Content<'a>);

fn section(kind: SectionKind, content: Content<'_>) -> Unwritten<'_> {
    (kind.into(), kind.is_required(), content)
}

/// Writes all sections of `build`, after room for the header, which it returns. The same build gives the same bytes, apart
/// from the snapshot: the given one, else that of the build.
///
/// # Errors
/// [`Error::NotSupported`] for types that IPC does not carry; what `out` fails with; [`Error::Cancelled`].
pub(super) fn write_sections(
    build: &PreparedBuild,
    snapshot: Option<&Snapshot>,
    out: impl Write,
    cancel: &Cancel,
) -> Result<Header> {
    if build.order().is_some() {
        return not_supported!(
            "a build in the order of a column is not saved or shared yet; save it without order_by, or its rows as Parquet"
        );
    }
    let mut copies = build.pool().map(|pool| Reservation::new(pool, "rows to save"));
    let (header, mut contents) = match build.file() {
        Some(file) => stored(file.bytes)?,
        None => {
            let contents = contents(build, copies.as_mut(), cancel)?;
            (Header::new(build.fingerprint_with(cancel)?, Vec::new()), contents)
        }
    };
    if let Some(snapshot) = snapshot.or(build.snapshot()) {
        // The last one, so that the rows of builds that differ in nothing else are in one place.
        contents.push(section(SectionKind::Snapshot, Content::Bytes(encode_snapshot(snapshot))));
    }
    let mut out = Counted { out, checksum: crc32fast::Hasher::new(), written: 0, cancel };
    let mut sections = Vec::with_capacity(contents.len());
    out.pad_to(Header::size(contents.len()))?;
    for (name, is_required, content) in contents {
        let offset = out.written;
        out.checksum = crc32fast::Hasher::new();
        match content {
            Content::Bytes(bytes) => out.write_all(&bytes).map_err(unwrapped)?,
            Content::Stored(bytes) => out.write_all(bytes).map_err(unwrapped)?,
            Content::Buffer(buffer) => out.write_all(&buffer).map_err(unwrapped)?,
            Content::Rows(rows) => write_rows(&mut out, &rows)?,
        }
        let (checksum, length) = (out.checksum.clone().finalize(), out.written - offset);
        sections.push(Section { name, is_required, checksum, offset, length });
        out.pad_to(padded(out.written))?;
    }
    Ok(Header { sections, ..header })
}

/// All sections of a saved build but its snapshot, as they are: also those that this version does not know.
fn stored(file: &[u8]) -> Result<(Header, Vec<Unwritten<'_>>)> {
    let header = Header::decode(file)?;
    let sections = header.sections.iter().filter(|section| !section.name.is(SectionKind::Snapshot));
    let content = |at: &Section| Content::Stored(&file[at.offset as usize..][..at.length as usize]);
    let contents = sections.map(|section| (section.name, section.is_required, content(section))).collect();
    Ok((header, contents))
}

fn contents(
    build: &PreparedBuild,
    copies: Option<&mut Reservation>,
    cancel: &Cancel,
) -> Result<Vec<Unwritten<'static>>> {
    let StoredIndex { kind, num_keys, null_group, groups, numbers, parts } =
        StoredIndex::of(build.index(), build.groups());
    let meta = Meta {
        spec: build.spec().clone(),
        rows: build.num_rows(),
        keys: num_keys,
        null_group,
        kind,
        groups,
        in_list: matches!(build.membership(), Membership::InList(_)),
        has_null_key: build.has_null_key(),
        row_sum: build.whole_fingerprint(cancel)?.row_sum,
        numbers,
    };
    let rows = without_slices(build.rows()?, copies, cancel)?;
    let mut contents = vec![
        section(SectionKind::Meta, Content::Bytes(meta.encode()?)),
        section(SectionKind::Rows, Content::Rows(rows.clone())),
    ];
    if let Some(column) = build.index().key_column() {
        let stored = rows.column(build.keys()[0]).data_type();
        if key_type(stored) != *stored {
            let key = one_batch(vec![column.get()?.clone()], build.num_rows())?;
            contents.push(section(SectionKind::Key, Content::Rows(key)));
        }
    }
    contents.push(section(SectionKind::Bounds, Content::Rows(bounds(build.bounds())?)));
    let part = |(part, buffer)| section(SectionKind::Index(part), Content::Buffer(buffer));
    contents.extend(parts.into_iter().map(part));
    Ok(contents)
}

/// `rows` with their run-ends copied, which `copies` pays for. The IPC writer cuts run-ends in a list to what is shown after
/// it has counted the buffers of their views, so there must be nothing to cut.
fn without_slices(rows: &RecordBatch, mut copies: Option<&mut Reservation>, cancel: &Cancel) -> Result<RecordBatch> {
    let copy = |(i, column): (usize, &ArrayRef)| {
        if !has_run_ends(column.data_type()) {
            return Ok(Arc::clone(column));
        }
        if let Some(copies) = &mut copies {
            copies.try_grow(copy_bound(&[rows.project(&[i])?])?)?;
        }
        concat_columns(&[Arc::clone(column)], cancel)
    };
    let columns = rows.columns().iter().enumerate().map(copy).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &options)?)
}

/// The least values of all keys as one row, the greatest as another.
fn bounds(bounds: &[Option<Bounds>]) -> Result<RecordBatch> {
    let column = |bounds: &Option<Bounds>| -> Result<ArrayRef> {
        match bounds {
            Some(bounds) => Ok(concat(&[bounds.min().as_ref(), bounds.max().as_ref()])?),
            None => Ok(Arc::new(NullArray::new(2))),
        }
    };
    one_batch(bounds.iter().map(column).collect::<Result<_>>()?, 2)
}

/// Columns named by their positions.
fn one_batch(columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(i, column)| Field::new(i.to_string(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// Counts and sums up what goes through, and lets the cancel signal end it.
struct Counted<'a, W> {
    out: W,
    checksum: crc32fast::Hasher,
    written: u64,
    cancel: &'a Cancel,
}

impl<W: Write> Counted<'_, W> {
    /// Writes zeros up to the position `end`.
    fn pad_to(&mut self, end: u64) -> Result<()> {
        while self.written < end {
            let zeros = [0; ALIGN as usize];
            let more = (end - self.written).min(ALIGN) as usize;
            self.write_all(&zeros[..more]).map_err(unwrapped)?;
        }
        Ok(())
    }
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        let written = self.out.write(&bytes[..bytes.len().min(PIECE)])?;
        self.checksum.update(&bytes[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
