//! Rows as a complete Arrow IPC file of one batch, uncompressed, every buffer at a multiple of 64 bytes; and back in
//! place. It is one section of a saved build, so any Arrow library reads the rows of a saved build.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};

use super::PIECE;
use super::errors::{damaged, unwrapped};
use super::header::ALIGN;
use crate::cancel::Cancel;
use crate::columns::is_sound;
use crate::error::{Error, Result, not_supported};
use crate::panics::caught;

/// Writes `batch` as an IPC file.
///
/// # Errors
/// [`Error::NotSupported`] for types that IPC does not carry; what `out` fails with.
pub(super) fn write_rows(out: impl Write, batch: &RecordBatch) -> Result<()> {
    let options = IpcWriteOptions::try_new(ALIGN as usize, false, MetadataVersion::V5)?;
    let schema = batch.schema();
    let written = caught(|| {
        let mut writer = FileWriter::try_new_with_options(out, &schema, options)?;
        writer.write(batch)?;
        writer.finish()
    });
    match written {
        Some(Ok(())) => Ok(()),
        Some(Err(ArrowError::IoError(_, error))) => Err(unwrapped(error)),
        Some(Err(error)) => not_supported!("Arrow IPC does not carry these rows, so they are not saved: {error}"),
        None => not_supported!("Arrow IPC does not carry these rows, so they are not saved"),
    }
}

/// An IPC file of one batch, whose structure is checked and whose columns are not.
#[derive(Debug)]
pub(super) struct StoredRows {
    data: Buffer,
    schema: SchemaRef,
    /// The schema with binary for text, which has the same layout; that it is valid text is checked here.
    binary: SchemaRef,
    /// For each column the dictionaries in it, as positions in `dictionaries`.
    dictionaries_of: Vec<Vec<usize>>,
    dictionaries: Vec<Block>,
    batch: Block,
}

/// Values that are decoded at once while a whole file is checked.
const VALUES: usize = 1 << 20;

impl StoredRows {
    /// Reads footer and message headers.
    ///
    /// # Errors
    /// [`Error::Damaged`] for other bytes.
    pub(super) fn open(data: Buffer) -> Result<Arc<Self>> {
        // arrow-ipc panics on some damaged files.
        let opened = caught(|| Self::read_footer(data));
        Ok(Arc::new(opened.unwrap_or_else(|| Err(unreadable("footer")))?))
    }

    fn read_footer(data: Buffer) -> Result<Self> {
        let trailer = data.len().checked_sub(10).ok_or_else(|| unreadable("footer"))?;
        let length =
            read_footer_length(std::array::from_fn(|i| data[trailer + i])).map_err(|_| unreadable("footer"))?;
        let start = trailer.checked_sub(length).ok_or_else(|| unreadable("footer"))?;
        let footer = root_as_footer(&data[start..trailer]).map_err(|_| unreadable("footer"))?;
        let stored = footer.schema().ok_or_else(|| unreadable("schema"))?;
        let schema = try_fb_to_schema(stored).ok();
        let schema = schema.filter(|schema: &Schema| schema.fields().iter().all(|field| is_sound(field.data_type())));
        let schema = schema.ok_or_else(|| unreadable("schema"))?;
        let dictionaries: Vec<Block> = footer.dictionaries().into_iter().flatten().copied().collect();
        let batches: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let [batch] = batches[..] else { return Err(unreadable("batch")) };
        let ids_in = |field| {
            let mut ids = Vec::new();
            dictionary_ids(field, &mut ids);
            ids
        };
        let ids_of: Vec<Vec<i64>> = stored.fields().into_iter().flatten().map(ids_in).collect();
        let binary = Arc::new(as_binary(&schema));
        let mut this =
            Self { data, schema: Arc::new(schema), binary, dictionaries_of: Vec::new(), dictionaries, batch };
        let ids = this.dictionaries.iter().map(|block| this.check(block)).collect::<Result<Vec<_>>>()?;
        this.check(&batch)?;
        let mut of_id: HashMap<i64, Vec<usize>> = HashMap::new();
        for (i, id) in ids.into_iter().enumerate() {
            of_id.entry(id.ok_or_else(|| unreadable("dictionary"))?).or_default().push(i);
        }
        let at = |ids: Vec<i64>| ids.iter().filter_map(|id| of_id.get(id)).flatten().copied().collect();
        this.dictionaries_of = ids_of.into_iter().map(at).collect();
        Ok(this)
    }

    /// Finds a message and its body that lie in the file, and buffers that lie in the body. The id of a dictionary.
    fn check(&self, block: &Block) -> Result<Option<i64>> {
        let bytes = self.block(block).ok_or_else(|| unreadable("block"))?;
        let length = |length: i64| usize::try_from(length).ok();
        let (metadata, body) = (block.metaDataLength() as usize, block.bodyLength());
        let message = bytes[..metadata].get(8..).and_then(|message| root_as_message(message).ok());
        let message = message.filter(|message| message.version() == MetadataVersion::V5 && bytes[..4] == [0xff; 4]);
        let message = message.ok_or_else(|| unreadable("message"))?;
        let dictionary = message.header_as_dictionary_batch().filter(|dictionary| !dictionary.isDelta());
        let batch = message.header_as_record_batch().or_else(|| dictionary?.data());
        let batch = batch.filter(|batch| batch.compression().is_none()).ok_or_else(|| unreadable("message"))?;
        let inside = batch.buffers().into_iter().flatten().all(|buffer| {
            let end = length(buffer.offset()).and_then(|start| start.checked_add(length(buffer.length())?));
            buffer.offset() % ALIGN as i64 == 0 && end.is_some_and(|end| end as i64 <= body)
        });
        let nodes = batch.nodes().into_iter().flatten();
        let counted = nodes.into_iter().all(|node| 0 <= node.null_count() && node.null_count() <= node.length());
        match inside && counted && batch.length() >= 0 {
            true => Ok(dictionary.map(|dictionary| dictionary.id())),
            false => Err(unreadable("buffer")),
        }
    }

    fn block(&self, block: &Block) -> Option<Buffer> {
        let start = usize::try_from(block.offset()).ok().filter(|start| start.is_multiple_of(ALIGN as usize))?;
        let metadata = usize::try_from(block.metaDataLength()).ok()?;
        let length = metadata.checked_add(usize::try_from(block.bodyLength()).ok()?)?;
        let end = start.checked_add(length).filter(|&end| end <= self.data.len() && metadata >= 8)?;
        Some(self.data.slice_with_length(start, end - start))
    }

    /// The schema of the rows.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// LazyColumn `column`, its buffers in place; everything in it is checked.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a column that is not valid, or does not have `rows` rows.
    pub(super) fn column(&self, column: usize, rows: usize) -> Result<ArrayRef> {
        let mut columns = self.decode(column..column + 1, rows, &Cancel::default())?;
        columns.pop().ok_or_else(|| unreadable("column"))
    }

    /// All columns, as [`column`](Self::column) gives one.
    ///
    /// # Errors
    /// As [`column`](Self::column), and [`Error::Cancelled`].
    pub(super) fn columns(&self, rows: usize, cancel: &Cancel) -> Result<Vec<ArrayRef>> {
        // Arrow's own checks do not look at a cancel signal: large columns are decoded one by one, and small ones together,
        // since each time all fields are passed over.
        let (all, at_once) = (self.schema.fields().len(), (VALUES / rows.max(1)).max(1));
        let mut columns = Vec::with_capacity(all);
        // Without columns too, so that the number of rows is checked.
        for start in (0..all.max(1)).step_by(at_once) {
            cancel.check()?;
            columns.extend(self.decode(start..all.min(start + at_once), rows, cancel)?);
        }
        Ok(columns)
    }

    fn decode(&self, columns: Range<usize>, rows: usize, cancel: &Cancel) -> Result<Vec<ArrayRef>> {
        // arrow-ipc panics on some damaged files.
        let decoded = caught(|| self.try_decode(columns.clone()));
        let names = &self.schema.fields()[columns.clone()];
        let of = |names: &[FieldRef]| match names {
            [field] => format!("column {:?}: ", field.name()),
            _ => String::new(),
        };
        let invalid = |of: &str, error: &dyn Display| damaged(&format!("its rows are not valid: {of}{error}"));
        match decoded.unwrap_or_else(|| Err(ArrowError::IpcError("not readable".to_owned()))) {
            Ok(batch) if batch.num_rows() == rows => {
                let text = |(field, column): (&FieldRef, &ArrayRef)| {
                    let array = match field.data_type() {
                        DataType::Utf8 => text::<i32>(column, cancel)?,
                        DataType::LargeUtf8 => text::<i64>(column, cancel)?,
                        _ => Some(Arc::clone(column)),
                    };
                    array.ok_or_else(|| invalid(&of(slice::from_ref(field)), &"a value of it is not UTF-8"))
                };
                names.iter().zip(batch.columns()).map(text).collect()
            }
            Ok(batch) => Err(damaged(&format!("it has {} rows, and {rows} were saved", batch.num_rows()))),
            Err(error) => Err(invalid(&of(names), &error)),
        }
    }

    /// These columns, text as binary.
    fn try_decode(&self, columns: Range<usize>) -> std::result::Result<RecordBatch, ArrowError> {
        let block = |block| self.block(block).ok_or_else(|| ArrowError::IpcError("a block is cut".to_owned()));
        let decoder = FileDecoder::new(Arc::clone(&self.binary), MetadataVersion::V5);
        let mut decoder = decoder.with_require_alignment(true);
        let mut dictionaries: Vec<usize> = self.dictionaries_of[columns.clone()].iter().flatten().copied().collect();
        dictionaries.sort_unstable();
        dictionaries.dedup();
        for dictionary in dictionaries {
            let dictionary = &self.dictionaries[dictionary];
            decoder.read_dictionary(dictionary, &block(dictionary)?)?;
        }
        // Each field is looked for in a projection.
        if columns.len() < self.schema.fields().len() {
            decoder = decoder.with_projection(columns.collect());
        }
        let batch = decoder.read_record_batch(&self.batch, &block(&self.batch)?)?;
        batch.ok_or_else(|| ArrowError::IpcError("no batch".to_owned()))
    }
}

/// The dictionaries of a field and of those in it.
fn dictionary_ids(field: arrow_ipc::Field<'_>, ids: &mut Vec<i64>) {
    ids.extend(field.dictionary().map(|dictionary| dictionary.id()));
    field.children().into_iter().flatten().for_each(|child| dictionary_ids(child, ids));
}

/// The schema with binary for text.
fn as_binary(schema: &Schema) -> Schema {
    let field = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Binary)),
        DataType::LargeUtf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::LargeBinary)),
        _ => Arc::clone(field),
    };
    Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

/// A binary column as text, if it is. arrow's own check takes 1.2 ms per MiB of other text than ASCII, this one 0.2.
fn text<O: OffsetSizeTrait>(column: &ArrayRef, cancel: &Cancel) -> Result<Option<ArrayRef>> {
    let (offsets, values, nulls) = column.as_binary::<O>().clone().into_parts();
    let (mut start, end) = (offsets.first().as_usize(), offsets.last().as_usize());
    let continues = |at: usize| values[at] & 0xc0 == 0x80;
    let mut ascii = true;
    while start < end {
        cancel.check()?;
        let mut stop = end.min(start + PIECE);
        // Between two characters; a character has at most three bytes that continue it.
        while stop < end && stop > start + PIECE - 4 && continues(stop) {
            stop -= 1;
        }
        let piece = &values[start..stop];
        if !piece.is_ascii() {
            ascii = false;
            if simdutf8::basic::from_utf8(piece).is_err() {
                return Ok(None);
            }
        }
        start = stop;
    }
    if !ascii {
        // The whole is text; so is each value that begins and ends between characters.
        for offsets in offsets.chunks(PIECE) {
            cancel.check()?;
            let inside = offsets.iter().map(|offset| offset.as_usize()).filter(|&offset| offset < end);
            if !inside.fold(true, |whole, offset| whole & !continues(offset)) {
                return Ok(None);
            }
        }
    }
    // SAFETY: offsets and nulls are those of a valid binary array, and each value was found to be UTF-8.
    Ok(Some(Arc::new(unsafe { GenericStringArray::<O>::new_unchecked(offsets, values, nulls) })))
}

fn unreadable(what: &str) -> Error {
    damaged(&format!("the {what} of its rows is not readable"))
}
