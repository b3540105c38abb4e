//! The sections that describe a build: its numbers, and which snapshot it is.

use std::time::{Duration, UNIX_EPOCH};

use arrow_schema::SchemaRef;

use super::errors::damaged;
use crate::columns::{decode_schema, encode_schema};
use crate::error::{Error, Result, not_supported};
use crate::index::IndexKind;
use crate::prepare::{BuildSpec, NullEquality, Snapshot};

/// What the meta section says.
#[derive(Debug)]
pub(super) struct Meta {
    pub(super) spec: BuildSpec,
    pub(super) rows: usize,
    pub(super) keys: usize,
    pub(super) null_group: u32,
    pub(super) kind: IndexKind,
    pub(super) groups: u8,
    pub(super) in_list: bool,
    pub(super) has_null_key: bool,
    /// The part of the fingerprint that the rows make.
    pub(super) row_sum: u128,
    pub(super) numbers: Vec<u64>,
}

/// The codes are positions in this list; append only.
const KINDS: [IndexKind; 5] =
    [IndexKind::Dense, IndexKind::Hashed, IndexKind::Bytes, IndexKind::Rows, IndexKind::Single];

impl Meta {
    /// # Errors
    /// [`Error::NotSupported`] for a schema that IPC does not carry.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let schema: &SchemaRef = self.spec.schema();
        let Some(message) = encode_schema(schema) else {
            return not_supported!("Arrow IPC does not carry the schema of this build, so it is not saved: {schema}");
        };
        let mut out = Vec::new();
        let mut number = |number: u64| out.extend(number.to_le_bytes());
        number(self.rows as u64);
        number(self.keys as u64);
        number(self.null_group.into());
        number(KINDS.iter().position(|&kind| kind == self.kind).unwrap_or(KINDS.len()) as u64);
        number(self.groups.into());
        number(self.in_list.into());
        number(self.has_null_key.into());
        number(self.spec.keys().len() as u64);
        for (&key, null_equality) in self.spec.keys().iter().zip(self.spec.null_equality()) {
            number(key as u64);
            number(null_equality.nulls_equal().into());
        }
        number(self.row_sum as u64);
        number((self.row_sum >> 64) as u64);
        number(self.numbers.len() as u64);
        self.numbers.iter().for_each(|&value| number(value));
        number(message.len() as u64);
        out.extend(message);
        Ok(out)
    }

    /// # Errors
    /// [`Error::Damaged`] for other bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = MetaReader(bytes);
        let (rows, keys, null_group) = (input.size()?, input.size()?, input.number()?);
        let kind = *KINDS.get(input.size()?).ok_or_else(|| damaged("its index is of an unknown kind"))?;
        let (groups, in_list, has_null_key) = (input.number()?, input.flag()?, input.flag()?);
        let mut columns = Vec::new();
        let mut null_equality = Vec::new();
        for _ in 0..input.size()? {
            columns.push(input.size()?);
            null_equality.push(match input.flag()? {
                true => NullEquality::NullEqualsNull,
                false => NullEquality::NullEqualsNothing,
            });
        }
        let row_sum = u128::from(input.number()?) | u128::from(input.number()?) << 64;
        let count = input.size()?;
        let numbers = (0..count).map(|_| input.number()).collect::<Result<_>>()?;
        let length = input.size()?;
        if input.0.len() != length || rows >= u32::MAX as usize || keys > rows {
            return Err(unreadable());
        }
        let schema = decode_schema(input.0).ok_or_else(unreadable)?;
        let spec = BuildSpec::try_new(schema, columns, null_equality).map_err(|error| match error {
            Error::Plan(text) => damaged(&text),
            other => other,
        })?;
        let (null_group, groups) = (u32::try_from(null_group), u8::try_from(groups));
        let (Ok(null_group), Ok(groups)) = (null_group, groups) else { return Err(unreadable()) };
        Ok(Self { spec, rows, keys, null_group, kind, groups, in_list, has_null_key, row_sum, numbers })
    }
}

/// The bytes of the section that says which snapshot a build is.
pub(super) fn encode_snapshot(snapshot: &Snapshot) -> Vec<u8> {
    let Snapshot { name, version, loaded_at } = snapshot;
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let loaded_at = loaded_at.duration_since(UNIX_EPOCH).map_or_else(|before| -micros(before.duration()), micros);
    let mut out = Vec::new();
    out.extend(loaded_at.to_le_bytes());
    out.extend((name.len() as u64).to_le_bytes());
    out.extend(version.as_ref().map_or(u64::MAX, |version| version.len() as u64).to_le_bytes());
    out.extend(name.bytes());
    out.extend(version.iter().flat_map(|version| version.bytes()));
    out
}

/// # Errors
/// [`Error::Damaged`] for other bytes.
pub(super) fn decode_snapshot(bytes: &[u8]) -> Result<Snapshot> {
    let mut input = MetaReader(bytes);
    let micros = input.number()? as i64;
    let since = Duration::from_micros(micros.unsigned_abs());
    let loaded_at = if micros < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    let (name, version) = (input.size()?, input.number()?);
    let name = input.text(name)?;
    let version = match version {
        u64::MAX => None,
        length => Some(input.text(usize::try_from(length).map_err(|_| unreadable())?)?),
    };
    match (input.0, loaded_at) {
        ([], Some(loaded_at)) => Ok(Snapshot { name, version, loaded_at }),
        _ => Err(unreadable()),
    }
}

fn unreadable() -> Error {
    damaged("its description is not readable")
}

struct MetaReader<'a>(&'a [u8]);

impl MetaReader<'_> {
    fn text(&mut self, length: usize) -> Result<String> {
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(unreadable)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| unreadable())
    }

    fn number(&mut self) -> Result<u64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(unreadable)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn size(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| unreadable())
    }

    fn flag(&mut self) -> Result<bool> {
        Ok(self.number()? != 0)
    }
}
