//! Record batches to pyarrow: the C structs of a whole batch lie in one block that each of them shares.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, ScalarBuffer, bit_mask};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::abi::ArrowArray;

/// What the structs of one batch point to.
struct Block {
    /// The columns, which own the buffers.
    _columns: Vec<ArrayData>,
    /// Buffers that exist for the consumer only: bitmaps moved to another bit, lengths of view buffers.
    extra: Vec<Buffer>,
    /// The `buffers` arrays of all structs, one after the other. Never grows beyond its first capacity.
    buffers: Vec<*const c_void>,
    /// The `children` arrays of all structs, likewise.
    children: Vec<*mut ArrowArray>,
    /// All structs but the root, likewise.
    nodes: Vec<ArrowArray>,
}

// SAFETY: nothing changes once it is filled, but the structs, each by its one holder; what it owns may cross threads.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// The batch as a C struct array. The consumer releases it, from any thread, attached to Python or not.
pub(super) fn export_batch(batch: &RecordBatch) -> ArrowArray {
    let columns: Vec<ArrayData> = batch.columns().iter().map(|column| column.to_data()).collect();
    let (mut nodes, mut buffers) = (0, 1);
    for column in &columns {
        count(column, &mut nodes, &mut buffers);
    }
    let mut block = Block {
        _columns: Vec::new(),
        extra: Vec::new(),
        buffers: Vec::with_capacity(buffers),
        children: Vec::with_capacity(nodes),
        nodes: Vec::with_capacity(nodes),
    };
    let mut root = ArrowArray::empty();
    root.length = batch.num_rows() as i64;
    block.buffers.push(ptr::null());
    (root.buffers, root.n_buffers) = (block.buffers.as_ptr(), 1);
    (root.children, root.n_children) = block.add_children(&columns);
    block._columns = columns;
    // The structs and their arrays were given out by address, so none of the lists may have grown beyond its first capacity.
    assert!(
        block.nodes.len() == nodes && block.children.len() <= nodes && block.buffers.len() <= buffers,
        "the structs of a batch moved while they were filled"
    );

    // Every struct holds the block once, so that a consumer may move children out and release them in any order.
    let first = block.nodes.as_mut_ptr();
    let block = Arc::into_raw(Arc::new(block));
    for at in 0..nodes {
        // SAFETY: `first` points to `nodes` structs in the block, which did not move (checked above) and nobody else knows yet.
        // The release of each struct gives its count back.
        unsafe {
            Arc::increment_strong_count(block);
            let node = &mut *first.add(at);
            node.private_data = block.cast_mut().cast();
            node.release = Some(release);
        }
    }
    root.private_data = block.cast_mut().cast();
    root.release = Some(release);
    root
}

/// Adds the structs and the buffers that `data` needs.
fn count(data: &ArrayData, nodes: &mut usize, buffers: &mut usize) {
    *nodes += 1;
    // Validity and the lengths of view buffers come on top.
    *buffers += data.buffers().len() + 2;
    for child in data.child_data() {
        count(child, nodes, buffers);
    }
}

impl Block {
    /// Adds structs for `arrays`; their `children` array and its length.
    fn add_children(&mut self, arrays: &[ArrayData]) -> (*const *mut ArrowArray, i64) {
        if arrays.is_empty() {
            return (ptr::null(), 0);
        }
        let start = self.children.len();
        self.children.resize(start + arrays.len(), ptr::null_mut());
        for (at, array) in arrays.iter().enumerate() {
            self.children[start + at] = self.add(array);
        }
        (self.children[start..].as_ptr(), arrays.len() as i64)
    }

    /// Adds the struct of `data`, its children before it.
    fn add(&mut self, data: &ArrayData) -> *mut ArrowArray {
        use DataType::*;
        let mut node = ArrowArray::empty();
        node.length = data.len() as i64;
        node.offset = data.offset() as i64;
        let start = self.buffers.len();
        match data.data_type() {
            Null => node.null_count = node.length,
            RunEndEncoded(_, _) | Union(_, _) => {}
            _ => {
                node.null_count = data.null_count() as i64;
                let validity = data.nulls().map_or(ptr::null(), |nulls| self.validity(data.offset(), nulls));
                self.buffers.push(validity.cast());
            }
        }
        self.buffers.extend(data.buffers().iter().map(|buffer| buffer.as_ptr().cast::<c_void>()));
        if matches!(data.data_type(), Utf8View | BinaryView) {
            let lengths: ScalarBuffer<i64> = data.buffers()[1..].iter().map(|buffer| buffer.len() as i64).collect();
            self.buffers.push(lengths.inner().as_ptr().cast());
            self.extra.push(lengths.into_inner());
        }
        node.n_buffers = (self.buffers.len() - start) as i64;
        node.buffers = self.buffers[start..].as_ptr();
        if matches!(data.data_type(), Dictionary(_, _)) {
            node.dictionary = self.add(&data.child_data()[0]);
        } else {
            (node.children, node.n_children) = self.add_children(data.child_data());
        }
        self.nodes.push(node);
        self.nodes.last_mut().map_or(ptr::null_mut(), ptr::from_mut)
    }

    /// Where a bitmap starts whose bit `offset` is the first row's: C arrays have one offset for all their buffers.
    fn validity(&mut self, offset: usize, nulls: &NullBuffer) -> *const u8 {
        match nulls.offset().checked_sub(offset) {
            Some(ahead) if ahead.is_multiple_of(8) => nulls.buffer()[ahead / 8..].as_ptr(),
            _ => {
                let mut moved = MutableBuffer::new_null(offset + nulls.len());
                bit_mask::set_bits(moved.as_slice_mut(), nulls.validity(), offset, nulls.offset(), nulls.len());
                let moved = Buffer::from(moved);
                let start = moved.as_ptr();
                self.extra.push(moved);
                start
            }
        }
    }
}

/// Releases a struct of a batch: what is left of its children, then its share of the block.
///
/// # Safety
/// `array` is a struct that [`export_batch`] made, wherever it was moved to since.
unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller's promise. Children live in the block, which this struct holds until the last line.
    unsafe {
        (*array).release = None;
        let children = (0..(*array).n_children as usize).map(|at| *(*array).children.add(at));
        let dictionary = Some((*array).dictionary).filter(|dictionary| !dictionary.is_null());
        for child in children.chain(dictionary) {
            if let Some(release) = (*child).release {
                release(child);
            }
        }
        drop(Arc::from_raw((*array).private_data.cast::<Block>()));
    }
}
