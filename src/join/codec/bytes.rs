//! Numbers, texts, lists and choices as bytes, all little-endian. A list is its length, then its items; an option is a byte
//! 0, or 1 and the value; a choice of a fieldless enum is its position in a list.

use crate::error::{Error, Result};
use crate::expr::ColumnId;

/// The error for bytes that do not describe a join.
pub(super) fn unreadable(what: &str) -> Error {
    Error::Plan(format!("these bytes are not a serialized HashJoin: {what}; they were damaged or are something else"))
}

/// The tags of `bool`.
pub(super) const BOOLS: &[bool] = &[false, true];

pub(super) fn write_tag<T: PartialEq>(values: &[T], value: T, out: &mut Vec<u8>) {
    let tag = values.iter().position(|other| *other == value);
    debug_assert!(tag.is_some());
    // Reading refuses a tag that is in no list.
    out.push(tag.and_then(|tag| u8::try_from(tag).ok()).unwrap_or(u8::MAX));
}

pub(super) fn write_len(len: usize, out: &mut Vec<u8>) {
    out.extend((len as u64).to_le_bytes());
}

pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_len(bytes.len(), out);
    out.extend(bytes);
}

pub(super) fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    write_len(items.len(), out);
    items.iter().for_each(|item| write(item, out));
}

pub(super) fn write_option<T>(value: Option<T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    write_tag(BOOLS, value.is_some(), out);
    if let Some(value) = value {
        write(value, out);
    }
}

pub(super) fn write_column(id: &ColumnId, out: &mut Vec<u8>) {
    match id {
        ColumnId::Name(name) => write_option(Some(name.as_bytes()), out, write_bytes),
        ColumnId::Position(position) => {
            write_option(None, out, write_bytes);
            write_len(*position, out);
        }
    }
}

/// What is left to read. Nothing is allocated for a length that was only claimed.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    /// Refuses bytes that follow the end.
    pub(super) fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(unreadable("bytes follow its end")) }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(|| unreadable("it ends early"))?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn tag<T: Copy>(&mut self, values: &[T]) -> Result<T> {
        let tag = self.byte()?;
        values.get(usize::from(tag)).copied().ok_or_else(|| unreadable("it holds an unknown choice"))
    }

    pub(super) fn len(&mut self) -> Result<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| unreadable("it holds too large a number"))
    }

    pub(super) fn column(&mut self) -> Result<ColumnId> {
        Ok(match self.option(Self::text)? {
            Some(name) => ColumnId::Name(name),
            None => ColumnId::Position(self.len()?),
        })
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.len()?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(|| unreadable("it ends early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| unreadable("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let len = self.len()?;
        let mut items = Vec::new();
        for _ in 0..len {
            items.push(read(self)?);
        }
        Ok(items)
    }

    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.tag(BOOLS)? { read(self).map(Some) } else { Ok(None) }
    }
}
