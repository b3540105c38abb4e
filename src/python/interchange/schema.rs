//! C schemas to arrow-rs schemas, checked before arrow-rs reads them (it panics on what a producer may get wrong), and
//! remembered, because the batches of a stream repeat theirs.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt::Arguments;
use std::sync::Arc;

use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Schema, SchemaRef};

use super::abi::ArrowSchema;
use crate::error::{Error, Result, plan_err};

/// Nesting deeper than this is refused rather than risking the stack.
const MAX_DEPTH: usize = 64;

/// The metadata key of an extension type.
const EXTENSION: &[u8] = b"ARROW:extension:name";

/// `ARROW_FLAG_DICTIONARY_ORDERED`.
const ORDERED: i64 = 1;

/// How many schemas a thread remembers.
const REMEMBERED: usize = 8;

/// The nodes of a C schema as bytes, and the schema they mean.
type Remembered = (Box<[u8]>, SchemaRef);

thread_local! {
    /// Most recently used first. Holds our own memory only, nothing of a producer's.
    static RECENT: RefCell<Vec<Remembered>> = const { RefCell::new(Vec::new()) };
}

/// The schema that `schema` describes; the same `Arc` as before where this thread saw an equal one lately.
pub(crate) fn import_schema(schema: &ArrowSchema) -> Result<SchemaRef> {
    RECENT.with_borrow_mut(|recent| {
        for at in 0..recent.len() {
            let mut rest = &*recent[at].0;
            let same = walk(schema, 0, &mut |bytes| match rest.strip_prefix(bytes) {
                Some(after) => {
                    rest = after;
                    true
                }
                None => false,
            })?;
            if same && rest.is_empty() {
                recent[..=at].rotate_right(1);
                return Ok(Arc::clone(&recent[0].1));
            }
        }
        let mut image = Vec::with_capacity(256);
        walk(schema, 0, &mut |bytes| {
            image.extend_from_slice(bytes);
            true
        })?;
        let parsed = parse(schema)?;
        recent.truncate(REMEMBERED - 1);
        recent.insert(0, (image.into_boxed_slice(), Arc::clone(&parsed)));
        Ok(parsed)
    })
}

/// Gives every byte that distinguishes one C schema from another to `sink`, in one fixed order, until it says false.
/// Refuses what cannot even be walked.
fn walk(node: &ArrowSchema, depth: usize, sink: &mut impl FnMut(&[u8]) -> bool) -> Result<bool> {
    if node.is_released() {
        return plan_err!("an Arrow C schema was released before it was read");
    }
    if depth > MAX_DEPTH {
        return plan_err!("an Arrow C schema is nested more than {MAX_DEPTH} levels deep");
    }
    if node.format.is_null() {
        return plan_err!("an Arrow C schema has a null format string");
    }
    // SAFETY: the specification promises NUL-terminated strings; null was excluded, and a null name is allowed.
    let (format, name) = unsafe {
        let name = if node.name.is_null() { c"" } else { CStr::from_ptr(node.name) };
        (CStr::from_ptr(node.format), name)
    };
    let more = sink(format.to_bytes_with_nul())
        && sink(name.to_bytes_with_nul())
        && sink(&node.flags.to_ne_bytes())
        && sink(metadata_bytes(node)?)
        && sink(&node.n_children.to_ne_bytes())
        && sink(&[u8::from(!node.dictionary.is_null())]);
    if !more {
        return Ok(false);
    }
    for child in children(node)? {
        if !walk(child, depth + 1, sink)? {
            return Ok(false);
        }
    }
    // SAFETY: a dictionary is null or a valid schema that lives as long as its parent.
    match unsafe { node.dictionary.as_ref() } {
        Some(values) => walk(values, depth + 1, sink),
        None => Ok(true),
    }
}

/// The children, each checked to be there.
fn children(node: &ArrowSchema) -> Result<impl Iterator<Item = &ArrowSchema>> {
    let count = usize::try_from(node.n_children).unwrap_or(usize::MAX);
    if count > 0 && (node.children.is_null() || count == usize::MAX) {
        return plan_err!("an Arrow C schema claims {} children at {:?}", node.n_children, node.children);
    }
    for at in 0..count {
        // SAFETY: a non-null `children` has `n_children` entries, as the specification says.
        if unsafe { *node.children.add(at) }.is_null() {
            return plan_err!("child {at} of an Arrow C schema with {count} children is null");
        }
    }
    // SAFETY: as above, and each entry was found to be non-null; children live as long as their parent.
    Ok((0..count).map(|at| unsafe { &**node.children.add(at) }))
}

/// The metadata block of a node: a count, then that many (length, key, length, value), lengths as native i32.
fn metadata_bytes(node: &ArrowSchema) -> Result<&[u8]> {
    if node.metadata.is_null() {
        return Ok(&[]);
    }
    let start = node.metadata.cast::<u8>();
    let mut length = 0_usize;
    let mut next = |what: &str| -> Result<usize> {
        // SAFETY: the block holds as many entries as it says; `length` never passes an entry that was not read.
        let value = i32::from_ne_bytes(unsafe { start.add(length).cast::<[u8; 4]>().read() });
        let value = usize::try_from(value)
            .map_err(|_| Error::Plan(format!("the metadata of an Arrow C schema has {value} as its {what}")))?;
        length += 4 + if what == "number of entries" { 0 } else { value };
        Ok(value)
    };
    for _ in 0..next("number of entries")? {
        next("length of a key")?;
        next("length of a value")?;
    }
    // SAFETY: the block is that long by its own account.
    Ok(unsafe { std::slice::from_raw_parts(start, length) })
}

/// Reads a walked schema by arrow-rs, after checking what would make that panic.
fn parse(schema: &ArrowSchema) -> Result<SchemaRef> {
    check(schema)?;
    for column in children(schema)? {
        check_dictionaries(column, column)?;
    }
    if format_of(schema)? != "+s" {
        return plan_err!(
            "a table is a struct of columns (Arrow format \"+s\"), the producer gives values of format {:?}",
            format_of(schema)?
        );
    }
    // SAFETY: both are the specification's `struct ArrowSchema`.
    let schema = unsafe { &*std::ptr::from_ref(schema).cast::<FFI_ArrowSchema>() };
    Schema::try_from(schema).map(Arc::new).map_err(|error| Error::Plan(format!("cannot read an Arrow schema: {error}")))
}

fn format_of(node: &ArrowSchema) -> Result<&str> {
    // SAFETY: walked before: not null and NUL-terminated.
    unsafe { CStr::from_ptr(node.format) }
        .to_str()
        .map_err(|_| Error::Plan("the format string of an Arrow C schema is not UTF-8".to_owned()))
}

/// Number of children by format, and text that is UTF-8.
fn check(node: &ArrowSchema) -> Result<()> {
    let format = format_of(node)?;
    // SAFETY: walked before: null or NUL-terminated.
    let name = if node.name.is_null() { c"" } else { unsafe { CStr::from_ptr(node.name) } };
    if name.to_str().is_err() {
        return plan_err!("column name {name:?} of format {format:?} is not UTF-8");
    }
    let expected = match format {
        "+l" | "+L" | "+vl" | "+vL" | "+m" => Some(1),
        "+r" => Some(2),
        "+s" => None,
        _ if format.starts_with("+w:") => Some(1),
        _ if format.starts_with("+u") => None,
        _ => Some(0),
    };
    if let Some(expected) = expected.filter(|&expected| expected != node.n_children) {
        return plan_err!(
            "column {name:?} of format {format:?} has {expected} children by specification, its Arrow C schema has {}",
            node.n_children
        );
    }
    if format.starts_with("w:-") || format.starts_with("+w:-") {
        return plan_err!("column {name:?} has a negative fixed size, format {format:?}");
    }
    for child in children(node)? {
        check(child)?;
    }
    // SAFETY: a dictionary is null or a valid schema that lives as long as its parent.
    unsafe { node.dictionary.as_ref() }.map_or(Ok(()), check)
}

/// Refuses what a dictionary's values lose, since their type has no field: an extension type, the order of a dictionary
/// within.
fn check_dictionaries(column: &ArrowSchema, node: &ArrowSchema) -> Result<()> {
    // SAFETY: a dictionary is null or a valid schema that lives as long as its parent.
    if let Some(values) = unsafe { node.dictionary.as_ref() } {
        let extension = metadata_bytes(values)?.windows(EXTENSION.len()).any(|part| part == EXTENSION);
        let ordered = !values.dictionary.is_null() && values.flags & ORDERED != 0;
        if extension || ordered {
            // SAFETY: walked before: null or NUL-terminated.
            let name = if column.name.is_null() { c"" } else { unsafe { CStr::from_ptr(column.name) } };
            return plan_err!(
                "column {name:?} holds a dictionary whose values are {}; cast it to its values or to their storage",
                if extension { "of an extension type" } else { "ordered dictionaries" }
            );
        }
        check_dictionaries(column, values)?;
    }
    children(node)?.try_for_each(|child| check_dictionaries(column, child))
}

/// Compares the columns of a batch with those of its source: names and types must be the same; nullability and
/// metadata may differ.
pub(super) fn check_same_columns(source: &SchemaRef, batch: &SchemaRef, what: Arguments<'_>) -> Result<()> {
    if Arc::ptr_eq(source, batch) {
        return Ok(());
    }
    if source.fields().len() != batch.fields().len() {
        return plan_err!("{what} has {} columns, the source declared {}", batch.fields().len(), source.fields().len());
    }
    for (at, (want, have)) in source.fields().iter().zip(batch.fields()).enumerate() {
        if want.name() != have.name() {
            return plan_err!(
                "column {at} of {what} is named {:?}, the source declared {:?}",
                have.name(),
                want.name()
            );
        }
        if want.data_type() != have.data_type() {
            return plan_err!(
                "column {:?} of {what} has type {}, the source declared {}; cast the batch or pass the right schema",
                want.name(),
                have.data_type(),
                want.data_type()
            );
        }
    }
    Ok(())
}
