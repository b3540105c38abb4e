//! Rows as a complete Arrow IPC file of one batch, uncompressed, every buffer at a multiple of 64 bytes; and back in
//! place. Such a file is a section of ours, so any Arrow library reads the rows of a saved build.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, GenericStringArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};

use super::header::{ALIGN, damaged};
use crate::columns::is_sound;
use crate::error::{Error, Result, not_supported};

/// Writes `batch` as an IPC file.
///
/// # Errors
/// [`Error::NotSupported`] for types that IPC does not carry; what `out` fails with.
pub(super) fn write_rows(out: impl Write, batch: &RecordBatch) -> Result<()> {
    let options = IpcWriteOptions::try_new(ALIGN as usize, false, MetadataVersion::V5)?;
    let schema = batch.schema();
    let written = catch_unwind(AssertUnwindSafe(|| {
        let mut writer = FileWriter::try_new_with_options(out, &schema, options)?;
        writer.write(batch)?;
        writer.finish()
    }));
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(ArrowError::IoError(_, error))) => Err(Error::External(Box::new(error))),
        Ok(Err(error)) => not_supported!("Arrow IPC does not carry these rows, so they are not saved: {error}"),
        Err(_) => not_supported!("Arrow IPC does not carry these rows, so they are not saved"),
    }
}

/// An IPC file of one batch, whose structure is checked and whose columns are not.
#[derive(Debug)]
pub(super) struct StoredRows {
    data: Buffer,
    schema: SchemaRef,
    dictionaries: Vec<Block>,
    batch: Block,
}

impl StoredRows {
    /// Reads footer and message headers.
    ///
    /// # Errors
    /// [`Error::Execution`] for what is no such file.
    pub(super) fn open(data: Buffer) -> Result<Arc<Self>> {
        // What arrow-ipc panics on is damage too.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::read_footer(data)));
        Ok(Arc::new(opened.unwrap_or_else(|_| Err(unreadable("footer")))?))
    }

    fn read_footer(data: Buffer) -> Result<Self> {
        let trailer = data.len().checked_sub(10).ok_or_else(|| unreadable("footer"))?;
        let length =
            read_footer_length(std::array::from_fn(|i| data[trailer + i])).map_err(|_| unreadable("footer"))?;
        let start = trailer.checked_sub(length).ok_or_else(|| unreadable("footer"))?;
        let footer = root_as_footer(&data[start..trailer]).map_err(|_| unreadable("footer"))?;
        let schema = footer.schema().and_then(|schema| try_fb_to_schema(schema).ok());
        let schema = schema.filter(|schema: &Schema| schema.fields().iter().all(|field| is_sound(field.data_type())));
        let schema = schema.ok_or_else(|| unreadable("schema"))?;
        let dictionaries: Vec<Block> = footer.dictionaries().into_iter().flatten().copied().collect();
        let batches: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let [batch] = batches[..] else { return Err(unreadable("batch")) };
        let this = Self { data, schema: Arc::new(schema), dictionaries, batch };
        this.dictionaries.iter().chain([&this.batch]).try_for_each(|block| this.check(block))?;
        Ok(this)
    }

    /// A message and its body that lie in the file, and buffers that lie in the body.
    fn check(&self, block: &Block) -> Result<()> {
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
        if inside && counted && batch.length() >= 0 { Ok(()) } else { Err(unreadable("buffer")) }
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

    /// Column `column`, its buffers in place; everything in it is checked.
    ///
    /// # Errors
    /// [`Error::Execution`] for a column that is not valid, or does not have `rows` rows.
    pub(super) fn column(&self, column: usize, rows: usize) -> Result<ArrayRef> {
        let batch = self.decode(Some(column), rows)?;
        Ok(Arc::clone(batch.column(0)))
    }

    /// All columns, as [`column`](Self::column) gives one.
    ///
    /// # Errors
    /// As of [`column`](Self::column).
    pub(super) fn batch(&self, rows: usize) -> Result<RecordBatch> {
        self.decode(None, rows)
    }

    fn decode(&self, column: Option<usize>, rows: usize) -> Result<RecordBatch> {
        // What arrow-ipc panics on is damage too.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.try_decode(column)));
        let of = column.map_or_else(String::new, |column| format!("column {:?}: ", self.schema.field(column).name()));
        match decoded.unwrap_or_else(|_| Err(ArrowError::IpcError("not readable".to_owned()))) {
            Ok(batch) if batch.num_rows() == rows => Ok(batch),
            Ok(batch) => Err(damaged(&format!("it has {} rows, and {rows} were saved", batch.num_rows()))),
            Err(error) => Err(damaged(&format!("its rows are not valid: {of}{error}"))),
        }
    }

    fn try_decode(&self, column: Option<usize>) -> std::result::Result<RecordBatch, ArrowError> {
        let block = |block| self.block(block).ok_or_else(|| ArrowError::IpcError("a block is cut".to_owned()));
        // Text is laid out as binary; that it is text is checked below.
        let decoder = FileDecoder::new(Arc::new(as_binary(&self.schema)), MetadataVersion::V5);
        let mut decoder = decoder.with_require_alignment(true);
        let mut fields = self.schema.fields().iter().enumerate();
        if fields.any(|(i, field)| column.is_none_or(|column| column == i) && has_dictionary(field.data_type())) {
            for dictionary in &self.dictionaries {
                decoder.read_dictionary(dictionary, &block(dictionary)?)?;
            }
        }
        if let Some(column) = column {
            decoder = decoder.with_projection(vec![column]);
        }
        let batch = decoder.read_record_batch(&self.batch, &block(&self.batch)?)?;
        let batch = batch.ok_or_else(|| ArrowError::IpcError("no batch".to_owned()))?;
        let schema = match column {
            Some(column) => Arc::new(self.schema.project(&[column])?),
            None => Arc::clone(&self.schema),
        };
        let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| match field.data_type() {
            DataType::Utf8 => text::<i32>(column),
            DataType::LargeUtf8 => text::<i64>(column),
            _ => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<std::result::Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options)
    }
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
fn text<O: OffsetSizeTrait>(column: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let (offsets, values, nulls) = column.as_binary::<O>().clone().into_parts();
    let (start, end) = (offsets.first().as_usize(), offsets.last().as_usize());
    let no_text = || ArrowError::InvalidArgumentError("a value of it is not UTF-8".to_owned());
    if !values[start..end].is_ascii() {
        simdutf8::basic::from_utf8(&values[start..end]).map_err(|_| no_text())?;
        // The whole is text; so is each value that begins and ends between characters.
        let inside = offsets.iter().map(|offset| offset.as_usize()).filter(|&offset| offset < end);
        if !inside.fold(true, |whole, offset| whole & (values[offset] & 0xc0 != 0x80)) {
            return Err(no_text());
        }
    }
    // SAFETY: offsets and nulls are those of a valid binary array, and each value was found to be UTF-8.
    Ok(Arc::new(unsafe { GenericStringArray::<O>::new_unchecked(offsets, values, nulls) }))
}

fn has_dictionary(data_type: &DataType) -> bool {
    has(data_type, |data_type| matches!(data_type, DataType::Dictionary(_, _)))
}

pub(super) fn has_run_ends(data_type: &DataType) -> bool {
    has(data_type, |data_type| matches!(data_type, DataType::RunEndEncoded(_, _)))
}

/// Whether `wanted` holds for the type or for one inside of it; it is not asked about the values of dictionaries.
fn has(data_type: &DataType, wanted: fn(&DataType) -> bool) -> bool {
    use DataType::*;
    let inside = |field: &FieldRef| has(field.data_type(), wanted);
    wanted(data_type)
        || match data_type {
            List(field) | LargeList(field) | ListView(field) | LargeListView(field) => inside(field),
            FixedSizeList(field, _) | Map(field, _) | RunEndEncoded(_, field) => inside(field),
            Struct(fields) => fields.iter().any(inside),
            Union(fields, _) => fields.iter().any(|(_, field)| inside(field)),
            _ => false,
        }
}

fn unreadable(what: &str) -> Error {
    damaged(&format!("the {what} of its rows is not readable"))
}
