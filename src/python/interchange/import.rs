//! C arrays to arrow-rs arrays, without a copy where alignment allows it.
//!
//! Each array is cut at its offset first, then what is left is aligned; a copy for alignment covers the rows that are
//! used and is admitted first. Nothing that the producer claims and that we can check is taken on trust: counts of
//! buffers and children, lengths, null pointers, offsets, indices, UTF-8.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, GenericByteArray,
    GenericByteViewArray, GenericListArray, GenericListViewArray, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StructArray, UnionArray, downcast_integer, downcast_primitive, make_array,
    new_empty_array, types,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, bit_util,
};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, IntervalUnit, SchemaRef, UnionMode};

use super::abi::ArrowArray;
use crate::error::{Error, Result};
use crate::memory::Reservation;

/// `Err(Error::Execution(format!(..)))`: the producer broke the rules of the C data interface.
macro_rules! bad {
    ($($arg:tt)*) => { Err(Error::Execution(format!($($arg)*))) };
}

/// Some columns of a schema: their positions, and the schema of these alone.
#[derive(Debug, PartialEq)]
pub(crate) struct Columns {
    positions: Vec<usize>,
    schema: SchemaRef,
}

impl Columns {
    /// The columns at `positions` of `schema`.
    pub(crate) fn try_new(schema: &SchemaRef, positions: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(schema.project(&positions)?);
        Ok(Self { positions, schema })
    }

    /// Positions of the columns in the schema that they were chosen from.
    pub(crate) fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Schema of these columns alone.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Makes a record batch of `schema`, or of those of its `columns`, from a struct array, which it takes over. Others are
/// not looked into. Copies for alignment are held by
/// `copies` (where there is one) until the caller has charged the batch itself.
pub(crate) fn import_batch(
    array: ArrowArray,
    schema: &SchemaRef,
    columns: Option<&Columns>,
    copies: Option<&mut Reservation>,
) -> Result<RecordBatch> {
    if array.is_released() {
        return bad!("an Arrow C array was released before it was read");
    }
    let owner = Arc::new(array);
    let mut importer = Importer { owner: &owner, copies };
    let root = Node::new(&owner, None, 1, schema.fields().len(), false)?;
    if importer.nulls(&root)?.is_some() {
        return bad!("a batch has nulls at its top level, where a row cannot be null");
    }
    let mut column = |at: usize| {
        let field = schema.field(at);
        importer
            .array(root.child(at)?, field.data_type(), Some((root.first, root.len)))
            .map_err(|error| in_column(error, field))
    };
    let (schema, columns) = match columns {
        None => (schema, (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?),
        Some(some) => (&some.schema, some.positions.iter().map(|&at| column(at)).collect::<Result<Vec<_>>>()?),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(root.len));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| Error::Execution(error.to_string()))
}

/// About how many bytes an import of `schema`, or of some of its `columns`, reads or copies: text, views, offsets, indices,
/// validity, and values that are not aligned. Other values are not looked at.
pub(super) fn bytes_read(array: &ArrowArray, schema: &SchemaRef, columns: Option<&Columns>) -> usize {
    let column = |at: usize| child(array, at).map_or(0, |column| bytes_of(column, schema.field(at).data_type()));
    match columns {
        None => (0..schema.fields().len()).map(column).sum(),
        Some(some) => some.positions.iter().map(|&at| column(at)).sum(),
    }
}

/// [`bytes_read`] of one array. Nothing was checked yet: what is not as it should be counts as nothing, and the import
/// itself says so.
fn bytes_of(array: &ArrowArray, data_type: &DataType) -> usize {
    use DataType::*;
    let rows = usize::try_from(array.length).unwrap_or(0);
    let buffer = |at: i64| -> *const u8 {
        match array.n_buffers > at && !array.buffers.is_null() {
            // SAFETY: there are `n_buffers` entries.
            true => unsafe { *array.buffers.add(at as usize) }.cast(),
            false => std::ptr::null(),
        }
    };
    let child = |at: usize, field: &Field| child(array, at).map_or(0, |child| bytes_of(child, field.data_type()));
    let own = match data_type {
        Utf8 => rows.saturating_mul(4).saturating_add(text_bytes::<i32>(array, buffer(1))),
        LargeUtf8 => rows.saturating_mul(8).saturating_add(text_bytes::<i64>(array, buffer(1))),
        Utf8View | BinaryView => {
            let (lengths, count) = (buffer(array.n_buffers - 1).cast::<i64>(), (array.n_buffers - 3).max(0) as usize);
            // SAFETY: the last buffer has one length for each data buffer.
            let length = |at: usize| usize::try_from(unsafe { lengths.add(at).read_unaligned() }).unwrap_or(0);
            let data = if lengths.is_null() { 0 } else { (0..count).map(length).fold(0, usize::saturating_add) };
            rows.saturating_mul(16).saturating_add(data)
        }
        Dictionary(_, values) => {
            // SAFETY: a dictionary is null or valid, and lives as long as its parent.
            let dictionary = unsafe { array.dictionary.as_ref() };
            rows.saturating_mul(4).saturating_add(dictionary.map_or(0, |dictionary| bytes_of(dictionary, values)))
        }
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | Map(_, _) | Union(_, _) => rows.saturating_mul(8),
        other => match other.primitive_width() {
            Some(width) if !buffer(1).addr().is_multiple_of(alignment(other, width)) => rows.saturating_mul(width),
            _ => rows / 8,
        },
    };
    let children = match data_type {
        List(field)
        | LargeList(field)
        | ListView(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _) => child(0, field),
        Struct(fields) => fields.iter().enumerate().map(|(at, field)| child(at, field)).sum(),
        Union(fields, _) => fields.iter().enumerate().map(|(at, (_, field))| child(at, field)).sum(),
        RunEndEncoded(ends, values) => child(0, ends).saturating_add(child(1, values)),
        _ => 0,
    };
    own.saturating_add(children)
}

/// Bytes of text between the first and the last of the offsets.
fn text_bytes<O: OffsetSizeTrait>(array: &ArrowArray, offsets: *const u8) -> usize {
    let (Ok(first), Ok(rows)) = (usize::try_from(array.offset), usize::try_from(array.length)) else { return 0 };
    if offsets.is_null() || rows == 0 || checked(first.saturating_add(rows).saturating_add(1), size_of::<O>()).is_err()
    {
        return 0;
    }
    // SAFETY: the producer vouches for one offset more than rows; their addresses do not overflow.
    let offset = |at: usize| unsafe { offsets.cast::<O>().add(at).read_unaligned() }.to_usize().unwrap_or(0);
    offset(first + rows).saturating_sub(offset(first))
}

fn child(array: &ArrowArray, at: usize) -> Option<&ArrowArray> {
    let there = i64::try_from(at).is_ok_and(|at| at < array.n_children) && !array.children.is_null();
    // SAFETY: there are `n_children` entries; each is null or valid, and lives as long as its parent.
    there.then(|| unsafe { (*array.children.add(at)).as_ref() }).flatten()
}

/// Says in which column the producer broke the rules.
fn in_column(error: Error, field: &Field) -> Error {
    let text = match error {
        Error::Execution(text) => text,
        Error::Arrow(error) => error.to_string(),
        other => return other,
    };
    Error::Execution(format!("column {:?} of type {}: {text}", field.name(), field.data_type()))
}

/// One array of the tree, its counts checked, cut to `len` rows from `first`.
struct Node<'a> {
    array: &'a ArrowArray,
    first: usize,
    len: usize,
}

impl<'a> Node<'a> {
    /// `rows` is (start, length) within the array, all of it where absent.
    fn new(
        array: &'a ArrowArray,
        rows: Option<(usize, usize)>,
        buffers: usize,
        children: usize,
        dictionary: bool,
    ) -> Result<Self> {
        let (Ok(offset), Ok(length)) = (usize::try_from(array.offset), usize::try_from(array.length)) else {
            return bad!("an Arrow C array has length {} and offset {}", array.length, array.offset);
        };
        if !(-1..=array.length).contains(&array.null_count) {
            return bad!("an Arrow C array of {length} rows has null count {}", array.null_count);
        }
        // Some producers count the validity bitmap that the Null type does not have.
        let counted = array.n_buffers == buffers as i64 || (buffers == 0 && array.n_buffers == 1);
        if !counted || (buffers > 0 && array.buffers.is_null()) {
            return bad!("{} buffers at {:?}, {buffers} are due", array.n_buffers, array.buffers);
        }
        if array.n_children != children as i64 || (children > 0 && array.children.is_null()) {
            return bad!("{} children at {:?}, {children} are due", array.n_children, array.children);
        }
        if array.dictionary.is_null() == dictionary {
            return bad!("a dictionary is {}", if dictionary { "missing" } else { "not due" });
        }
        let (start, len) = rows.unwrap_or((0, length));
        if start.checked_add(len).is_none_or(|end| end > length) {
            return bad!("rows {start} to {} are due, the array has {length}", start.saturating_add(len));
        }
        // Twice the largest number of rows still fits, so that sums below need no check of their own.
        let Some(first) = offset.checked_add(start).filter(|&first| first <= isize::MAX as usize - len) else {
            return bad!("offset {offset} of an array of {length} rows overflows");
        };
        Ok(Self { array, first, len })
    }

    fn child(&self, at: usize) -> Result<&'a ArrowArray> {
        // SAFETY: `new` checked that there are `n_children` entries; callers stay below the number they asked for.
        match unsafe { (*self.array.children.add(at)).as_ref() } {
            Some(child) => Ok(child),
            None => bad!("child {at} is null"),
        }
    }

    fn pointer(&self, at: usize) -> *const u8 {
        // SAFETY: `new` checked that there are `n_buffers` entries; callers stay below the number they asked for.
        unsafe { *self.array.buffers.add(at) }.cast()
    }
}

struct Importer<'a> {
    /// The root; it keeps all buffers of the batch.
    owner: &'a Arc<ArrowArray>,
    copies: Option<&'a mut Reservation>,
}

impl Importer<'_> {
    /// Rows `rows` (start, length; all where absent) of `array` as an arrow-rs array of `data_type`.
    fn array(&mut self, array: &ArrowArray, data_type: &DataType, rows: Option<(usize, usize)>) -> Result<ArrayRef> {
        use DataType::*;
        Ok(match data_type {
            Null => Arc::new(NullArray::new(Node::new(array, rows, 0, 0, false)?.len)),
            Boolean => {
                let node = Node::new(array, rows, 2, 0, false)?;
                Arc::new(BooleanArray::new(self.bits(&node, 1)?, self.nulls(&node)?))
            }
            Utf8 => self.bytes::<types::Utf8Type>(array, rows)?,
            LargeUtf8 => self.bytes::<types::LargeUtf8Type>(array, rows)?,
            Binary => self.bytes::<types::BinaryType>(array, rows)?,
            LargeBinary => self.bytes::<types::LargeBinaryType>(array, rows)?,
            Utf8View => self.views::<types::StringViewType>(array, rows)?,
            BinaryView => self.views::<types::BinaryViewType>(array, rows)?,
            FixedSizeBinary(width) => {
                let node = Node::new(array, rows, 2, 0, false)?;
                let values = self.values(&node, 1, size_of_value(*width)?, 1)?;
                Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, values, self.nulls(&node)?, node.len)?)
            }
            List(field) => self.list::<i32>(array, rows, field)?,
            LargeList(field) => self.list::<i64>(array, rows, field)?,
            ListView(field) => self.list_view::<i32>(array, rows, field)?,
            LargeListView(field) => self.list_view::<i64>(array, rows, field)?,
            FixedSizeList(field, size) => {
                let node = Node::new(array, rows, 1, 1, false)?;
                let width = size_of_value(*size)?;
                let rows = (checked(node.first, width)?, checked(node.len, width)?);
                let values = self.array(node.child(0)?, field.data_type(), Some(rows))?;
                let (field, nulls) = (Arc::clone(field), self.nulls(&node)?);
                Arc::new(FixedSizeListArray::try_new_with_length(field, *size, values, nulls, node.len)?)
            }
            Map(field, ordered) => {
                let node = Node::new(array, rows, 2, 1, false)?;
                let (offsets, entries) = self.offsets_and_child::<i32>(&node, field)?;
                let Some(entries) = entries.as_any().downcast_ref::<StructArray>() else {
                    return bad!("the entries of a map are not a struct");
                };
                Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries.clone(), self.nulls(&node)?, *ordered)?)
            }
            Struct(fields) => {
                let node = Node::new(array, rows, 1, fields.len(), false)?;
                let nulls = self.nulls(&node)?;
                let children = fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| self.array(node.child(at)?, field.data_type(), Some((node.first, node.len))));
                let children = children.collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), children, nulls, node.len)?)
            }
            Dictionary(keys, values) => self.dictionary(array, rows, keys, values)?,
            RunEndEncoded(ends, values) => self.runs(array, rows, data_type, ends, values)?,
            Union(fields, mode) => {
                let dense = *mode == UnionMode::Dense;
                let node = Node::new(array, rows, 1 + usize::from(dense), fields.len(), false)?;
                let type_ids = ScalarBuffer::from(self.values(&node, 0, 1, 1)?);
                let offsets = dense.then(|| self.values(&node, 1, 4, 4)).transpose()?.map(ScalarBuffer::from);
                let rows = (!dense).then_some((node.first, node.len));
                let children = fields
                    .iter()
                    .enumerate()
                    .map(|(at, (_, field))| self.array(node.child(at)?, field.data_type(), rows));
                let children = children.collect::<Result<Vec<_>>>()?;
                Arc::new(UnionArray::try_new(fields.clone(), type_ids, offsets, children)?)
            }
            _ => {
                let node = Node::new(array, rows, 2, 0, false)?;
                self.primitive(&node, data_type)?
            }
        })
    }

    /// `len` bytes from byte `start` of buffer `at`, at an address that is a multiple of `alignment`.
    fn buffer(&mut self, node: &Node<'_>, at: usize, start: usize, len: usize, alignment: usize) -> Result<Buffer> {
        if len == 0 {
            return Ok(MutableBuffer::new(0).into());
        }
        let base = node.pointer(at);
        let end = start.checked_add(len).and_then(|size| base.addr().checked_add(size));
        if base.is_null() || end.is_none_or(|end| end > isize::MAX as usize) {
            return bad!("buffer {at} is at {base:?}, {len} bytes from byte {start} of it are due");
        }
        // SAFETY: the producer vouches for the bytes of the rows it gave; the sum was checked.
        let first = unsafe { base.add(start) };
        if first.addr().is_multiple_of(alignment) {
            let owner = Arc::clone(self.owner);
            let first = NonNull::new(first.cast_mut()).expect("a non-null address plus a checked size");
            // SAFETY: as above; `owner` keeps the bytes.
            return Ok(unsafe { Buffer::from_custom_allocation(first, len, owner) });
        }
        if let Some(copies) = &mut self.copies {
            copies.try_grow(bit_util::round_upto_multiple_of_64(len))?;
        }
        // SAFETY: as above; bytes need no alignment.
        Ok(Buffer::from_slice_ref(unsafe { std::slice::from_raw_parts(first, len) }))
    }

    /// The rows' values of `width` bytes each in buffer `at`.
    fn values(&mut self, node: &Node<'_>, at: usize, width: usize, alignment: usize) -> Result<Buffer> {
        self.buffer(node, at, checked(node.first, width)?, checked(node.len, width)?, alignment)
    }

    /// The rows' bits in buffer `at`.
    fn bits(&mut self, node: &Node<'_>, at: usize) -> Result<BooleanBuffer> {
        if node.len == 0 {
            return Ok(BooleanBuffer::new_unset(0));
        }
        let bit = node.first % 8;
        let bytes = self.buffer(node, at, node.first / 8, (bit + node.len).div_ceil(8), 1)?;
        Ok(BooleanBuffer::new(bytes, bit, node.len))
    }

    /// The validity bitmap, buffer 0, counted by us. None where there is none or no row is null.
    fn nulls(&mut self, node: &Node<'_>) -> Result<Option<NullBuffer>> {
        if node.pointer(0).is_null() {
            return match node.array.null_count {
                nulls @ 1.. => bad!("{nulls} nulls are claimed without a validity bitmap"),
                _ => Ok(None),
            };
        }
        Ok(Some(NullBuffer::new(self.bits(node, 0)?)).filter(|nulls| nulls.null_count() > 0))
    }

    fn primitive(&mut self, node: &Node<'_>, data_type: &DataType) -> Result<ArrayRef> {
        let Some(width) = data_type.primitive_width() else {
            return Err(Error::NotSupported(format!("Arrow type {data_type} is not supported yet")));
        };
        let values = self.values(node, 1, width, alignment(data_type, width))?;
        let nulls = self.nulls(node)?;
        macro_rules! make {
            ($t:ty) => {
                Arc::new(
                    PrimitiveArray::<$t>::try_new(ScalarBuffer::from(values), nulls)?.with_data_type(data_type.clone()),
                )
            };
        }
        Ok(downcast_primitive! {
            data_type => (make),
            _ => return Err(Error::NotSupported(format!("Arrow type {data_type} is not supported yet")))
        })
    }

    /// The `len + 1` offsets of the rows, from buffer 1: not negative, not falling.
    fn offsets<O: OffsetSizeTrait>(&mut self, node: &Node<'_>) -> Result<OffsetBuffer<O>> {
        if node.len == 0 {
            return Ok(OffsetBuffer::new_empty());
        }
        let width = size_of::<O>();
        let bytes = self.buffer(node, 1, checked(node.first, width)?, checked(node.len + 1, width)?, width)?;
        let offsets = ScalarBuffer::<O>::from(bytes);
        // No early exit, so that the compiler may use vectors.
        let falls = offsets.windows(2).fold(false, |falls, pair| falls | (pair[1] < pair[0]));
        if falls || offsets[0] < O::zero() {
            return bad!("its offsets are negative or fall");
        }
        // SAFETY: there is at least one offset; they start at 0 or more and do not fall.
        Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
    }

    fn bytes<T: ByteArrayType>(&mut self, array: &ArrowArray, rows: Option<(usize, usize)>) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 3, 0, false)?;
        let offsets = self.offsets::<T::Offset>(&node)?;
        let (first, last) = (offsets[0].as_usize(), offsets[node.len].as_usize());
        // Shown from the buffer's start, which offsets count from: all slices of one column show one range.
        let values = self.buffer(&node, 2, 0, last, 1)?;
        let nulls = self.nulls(&node)?;
        if matches!(T::DATA_TYPE, DataType::Utf8 | DataType::LargeUtf8)
            && let Err(error) = check_utf8(&values[first..last], first, &offsets)
        {
            return match nulls {
                Some(nulls) => self.without_values_of_nulls::<T>(&offsets, &values, nulls, error),
                None => Err(error),
            };
        }
        // SAFETY: the offsets stay within `values`; text was checked: whole, and at each offset. (`try_new` would read
        // all values before the first row again, in each slice of a column.)
        Ok(Arc::new(unsafe { GenericByteArray::<T>::new_unchecked(offsets, values, nulls) }))
    }

    /// A copy of text that is not valid as it lies, with empty values beneath its nulls; `error` where a value that is not
    /// null is no text.
    fn without_values_of_nulls<T: ByteArrayType>(
        &mut self,
        offsets: &OffsetBuffer<T::Offset>,
        values: &Buffer,
        nulls: NullBuffer,
        error: Error,
    ) -> Result<ArrayRef> {
        let value = |row: usize| offsets[row].as_usize()..offsets[row + 1].as_usize();
        let size: usize = nulls.valid_indices().map(|row| value(row).len()).sum();
        if let Some(copies) = &mut self.copies {
            let sizes = [size_of_val(&offsets[..]), size].map(bit_util::round_upto_multiple_of_64);
            copies.try_grow(sizes[0] + sizes[1])?;
        }
        let mut ends: Vec<T::Offset> = Vec::with_capacity(offsets.len());
        let mut out: Vec<u8> = Vec::with_capacity(size);
        ends.push(T::Offset::default());
        for row in 0..nulls.len() {
            if nulls.is_valid(row) {
                out.extend_from_slice(&values[value(row)]);
            }
            ends.push(T::Offset::usize_as(out.len()));
        }
        check_utf8(&out, 0, &ends).map_err(|_| error)?;
        // SAFETY: the offsets start at 0, do not fall and end at the length of the values, at most the old last offset.
        let ends = unsafe { OffsetBuffer::new_unchecked(ends.into()) };
        // SAFETY: as in `bytes`: text was checked whole, and at each offset.
        Ok(Arc::new(unsafe { GenericByteArray::<T>::new_unchecked(ends, Buffer::from_vec(out), Some(nulls)) }))
    }

    fn views<T: ByteViewType + ?Sized>(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
    ) -> Result<ArrayRef> {
        // Validity, views, any number of data buffers, their lengths.
        let count = usize::try_from(array.n_buffers).ok().filter(|&count| (3..=i32::MAX as usize).contains(&count));
        let Some(count) = count else {
            return bad!("{} buffers, a view array has at least 3", array.n_buffers);
        };
        let node = Node::new(array, rows, count, 0, false)?;
        let views = ScalarBuffer::<u128>::from(self.values(&node, 1, 16, align_of::<u128>())?);
        let lengths = node.pointer(count - 1).cast::<i64>();
        if lengths.is_null() && count > 3 {
            return bad!("the lengths of {} data buffers are missing", count - 3);
        }
        let data = (0..count - 3).map(|at| {
            // SAFETY: the last buffer has one length for each data buffer.
            let length = unsafe { lengths.add(at).read_unaligned() };
            match usize::try_from(length) {
                Ok(length) => self.buffer(&node, 2 + at, 0, length, 1),
                Err(_) => bad!("data buffer {at} has length {length}"),
            }
        });
        let data = data.collect::<Result<Vec<_>>>()?;
        let nulls = self.nulls(&node)?;
        Ok(Arc::new(match (GenericByteViewArray::<T>::try_new(views.clone(), data.clone(), nulls.clone()), nulls) {
            (Err(_), Some(nulls)) => {
                // Beneath a null anything may stand.
                let views = self.zeroed(&views, &nulls)?;
                GenericByteViewArray::<T>::try_new(views, data, Some(nulls))?
            }
            (made, _) => made?,
        }))
    }

    /// A copy of `values` with zero beneath `nulls`.
    fn zeroed<V: ArrowNativeType>(&mut self, values: &[V], nulls: &NullBuffer) -> Result<ScalarBuffer<V>> {
        if let Some(copies) = &mut self.copies {
            copies.try_grow(bit_util::round_upto_multiple_of_64(size_of_val(values)))?;
        }
        let value = |(row, &value): (usize, &V)| if nulls.is_valid(row) { value } else { V::default() };
        Ok(values.iter().enumerate().map(value).collect())
    }

    /// The offsets of a list or map, counted from the first child row that is used, and the child rows from there on.
    fn offsets_and_child<O: OffsetSizeTrait>(
        &mut self,
        node: &Node<'_>,
        field: &FieldRef,
    ) -> Result<(OffsetBuffer<O>, ArrayRef)> {
        let mut offsets = self.offsets::<O>(node)?;
        let (first, last) = (offsets[0], offsets[node.len]);
        if first > O::zero() {
            if let Some(copies) = &mut self.copies {
                copies.try_grow(bit_util::round_upto_multiple_of_64(size_of_val(&offsets[..])))?;
            }
            let moved = ScalarBuffer::from_iter(offsets.iter().map(|&offset| offset - first));
            // SAFETY: the same steps as before, from 0.
            offsets = unsafe { OffsetBuffer::new_unchecked(moved) };
        }
        let rows = (first.as_usize(), (last - first).as_usize());
        Ok((offsets, self.array(node.child(0)?, field.data_type(), Some(rows))?))
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
        field: &FieldRef,
    ) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 2, 1, false)?;
        let (offsets, values) = self.offsets_and_child::<O>(&node, field)?;
        let nulls = self.nulls(&node)?;
        Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(field), offsets, values, nulls)?))
    }

    fn list_view<O: OffsetSizeTrait>(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
        field: &FieldRef,
    ) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 3, 1, false)?;
        let width = size_of::<O>();
        let offsets = ScalarBuffer::<O>::from(self.values(&node, 1, width, width)?);
        let sizes = ScalarBuffer::<O>::from(self.values(&node, 2, width, width)?);
        let values = self.array(node.child(0)?, field.data_type(), None)?;
        let nulls = self.nulls(&node)?;
        let make = |offsets, sizes, nulls| {
            GenericListViewArray::<O>::try_new(Arc::clone(field), offsets, sizes, Arc::clone(&values), nulls)
        };
        Ok(Arc::new(match (make(offsets.clone(), sizes.clone(), nulls.clone()), nulls) {
            (Err(_), Some(nulls)) => {
                // As for views of bytes.
                make(self.zeroed(&offsets, &nulls)?, self.zeroed(&sizes, &nulls)?, Some(nulls))?
            }
            (made, _) => made?,
        }))
    }

    fn dictionary(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
        keys: &DataType,
        values: &DataType,
    ) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 2, 0, true)?;
        let indices = self.primitive(&node, keys)?;
        // SAFETY: `Node::new` found a dictionary; it lives as long as its parent.
        let values = self.array(unsafe { &*node.array.dictionary }, values, None)?;
        macro_rules! make {
            ($t:ty) => {{
                let indices = indices.as_any().downcast_ref::<PrimitiveArray<$t>>().expect("made of this type");
                Arc::new(DictionaryArray::<$t>::try_new(indices.clone(), values)?)
            }};
        }
        Ok(downcast_integer! { keys => (make), _ => return bad!("dictionary indices of type {keys}") })
    }

    fn runs(
        &mut self,
        array: &ArrowArray,
        rows: Option<(usize, usize)>,
        data_type: &DataType,
        ends_field: &FieldRef,
        values_field: &FieldRef,
    ) -> Result<ArrayRef> {
        let node = Node::new(array, rows, 0, 2, false)?;
        if node.len == 0 {
            return Ok(new_empty_array(data_type));
        }
        let all = self.array(node.child(0)?, ends_field.data_type(), None)?;
        macro_rules! used {
            ($t:ty) => {{
                let ends = all.as_any().downcast_ref::<PrimitiveArray<$t>>().expect("made of this type").values();
                let start = ends.partition_point(|&end| (end as i128) <= node.first as i128);
                let stop = ends.partition_point(|&end| (end as i128) < (node.first + node.len) as i128);
                (start, stop)
            }};
        }
        let (start, stop) = match ends_field.data_type() {
            DataType::Int16 => used!(types::Int16Type),
            DataType::Int32 => used!(types::Int32Type),
            DataType::Int64 => used!(types::Int64Type),
            other => return bad!("run ends of type {other}"),
        };
        if stop >= all.len() || start > stop {
            return bad!("run ends stop before row {} or fall", node.first + node.len);
        }
        let (start, count) = (start, stop - start + 1);
        let values = self.array(node.child(1)?, values_field.data_type(), Some((start, count)))?;
        let data = ArrayData::builder(data_type.clone())
            .len(node.len)
            .offset(node.first)
            .child_data(vec![all.slice(start, count).into_data(), values.into_data()])
            .build()?;
        Ok(make_array(data))
    }
}

/// `rows * width` without overflow.
fn checked(rows: usize, width: usize) -> Result<usize> {
    let Some(bytes) = rows.checked_mul(width).filter(|&bytes| bytes <= isize::MAX as usize) else {
        return bad!("{rows} rows of {width} bytes do not fit into memory");
    };
    Ok(bytes)
}

fn size_of_value(size: i32) -> Result<usize> {
    usize::try_from(size).map_err(|_| Error::Execution(format!("a fixed size of {size}")))
}

/// Alignment that arrow-rs needs for a fixed-width type.
fn alignment(data_type: &DataType, width: usize) -> usize {
    match data_type {
        DataType::Decimal256(_, _) => align_of::<arrow_buffer::i256>(),
        DataType::Interval(IntervalUnit::DayTime) => align_of::<arrow_buffer::IntervalDayTime>(),
        DataType::Interval(IntervalUnit::MonthDayNano) => align_of::<arrow_buffer::IntervalMonthDayNano>(),
        _ => width,
    }
}

/// Checks that `text`, which begins at offset `first`, is UTF-8, and that no offset splits a character.
fn check_utf8<O: OffsetSizeTrait>(text: &[u8], first: usize, offsets: &[O]) -> Result<()> {
    if text.is_ascii() {
        return Ok(());
    }
    let text = std::str::from_utf8(text).map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?;
    match offsets.iter().position(|offset| !text.is_char_boundary(offset.as_usize() - first)) {
        Some(row) => bad!("row {row} begins or ends inside a UTF-8 character"),
        None => Ok(()),
    }
}
