//! C arrays to arrow-rs arrays, without a copy where alignment allows it.
//!
//! Each array is cut at its offset first, then what is left is aligned; a copy for alignment covers the rows that are
//! used and is admitted first. Nothing that the producer claims and that we can check is taken on trust: counts of
//! buffers and children, lengths, null pointers, offsets, indices, UTF-8.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, GenericListArray,
    GenericListViewArray, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StructArray, UnionArray, downcast_integer, make_array, new_empty_array, types,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer, bit_util};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, SchemaRef, UnionMode};

use super::abi::ArrowArray;
use super::c_array::{Node, bad, checked, in_column, size_of_value};
use super::import_values::Importer;
use crate::error::{Error, Result};
use crate::memory::Reservation;

/// Some columns of a schema: their positions, and the schema of these alone.
#[derive(Debug, PartialEq)]
pub(crate) struct Columns {
    pub(super) positions: Vec<usize>,
    schema: SchemaRef,
}

impl Columns {
    /// The columns at `positions` of `schema`.
    pub(crate) fn try_new(schema: &SchemaRef, positions: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(schema.project(&positions)?);
        Ok(Self { positions, schema })
    }

    /// Schema of these columns alone.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Makes a record batch of `schema`, or of some of its `columns`, from a struct array, which it takes over. Other columns
/// are not looked into. `copies`, where there is one, pays for copies until the caller has charged the batch itself.
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
