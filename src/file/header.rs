//! The header: what a file is, and where its sections stand.

use crate::error::{Error, Result, not_supported};
use crate::index::Part;

/// Not text in any encoding, and cut by what converts line ends.
const MAGIC: [u8; 8] = *b"\x89PJOIN\r\n";

/// The one version of the format that is written and read. A change of anything in docs/format.md is another version;
/// so is a change of the hash functions or of how arrow-row encodes keys.
pub(super) const VERSION: u32 = 1;

/// As the writer's processor has it in memory.
const BYTE_ORDER: u32 = 0x0102_0304;

/// Sections begin at multiples of it, and the file ends at one.
pub(super) const ALIGN: u64 = 64;

const FIXED: usize = 64;
const ENTRY: usize = 24;
const CHECKSUM: std::ops::Range<usize> = 28..32;
const VERSION_TEXT: std::ops::Range<usize> = 48..64;

/// More are never written.
const MAX_SECTIONS: usize = 32;

/// What a section holds; the numbers are those of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Meta,
    Rows,
    /// The key column as it is indexed, where the index reads it and the rows have it in another form.
    Key,
    Bounds,
    Index(Part),
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Kind::Meta => 1,
            Kind::Rows => 2,
            Kind::Key => 3,
            Kind::Bounds => 4,
            Kind::Index(part) => part as u32,
        }
    }

    fn of_code(code: u32) -> Option<Self> {
        let small = [Kind::Meta, Kind::Rows, Kind::Key, Kind::Bounds];
        small.into_iter().chain(Part::ALL.map(Kind::Index)).find(|kind| kind.code() == code)
    }
}

/// One section of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: Kind,
    /// CRC-32 (ISO-HDLC, as in zlib) of its bytes.
    pub(super) checksum: u32,
    pub(super) offset: u64,
    /// In bytes, padding left aside.
    pub(super) length: u64,
}

/// A decoded header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) fingerprint: u128,
    /// Version of the crate that wrote the file.
    pub(super) crate_version: String,
    pub(super) sections: Vec<Section>,
}

/// `length` with its padding.
pub(super) fn padded(length: u64) -> u64 {
    length.next_multiple_of(ALIGN)
}

impl Header {
    /// Most bytes of a header.
    pub(super) const MAX_HEADER: usize = FIXED + MAX_SECTIONS * ENTRY;

    /// Bytes of a header of so many sections, padding included.
    pub(super) fn size(sections: usize) -> u64 {
        padded((FIXED + sections * ENTRY) as u64)
    }

    /// Bytes of the whole file.
    pub(super) fn file_length(&self) -> u64 {
        self.sections.last().map_or(0, |last| padded(last.offset + last.length))
    }

    /// The header as bytes, padding included.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::size(self.sections.len()) as usize);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(BYTE_ORDER.to_ne_bytes());
        out.extend(self.file_length().to_le_bytes());
        out.extend((self.sections.len() as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.fingerprint.to_le_bytes());
        out.extend(self.crate_version.bytes());
        out.resize(FIXED, 0);
        for section in &self.sections {
            out.extend(section.kind.code().to_le_bytes());
            out.extend(section.checksum.to_le_bytes());
            out.extend(section.offset.to_le_bytes());
            out.extend(section.length.to_le_bytes());
        }
        out.resize(Self::size(self.sections.len()) as usize, 0);
        let checksum = crc32fast::hash(&out);
        out[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header of a file of these bytes. Its sections lie within the file, one after the other.
    ///
    /// # Errors
    /// [`Error::Execution`] for another file, a cut or a damaged one; [`Error::NotSupported`] for one of another version
    /// or byte order.
    pub(super) fn decode(file: &[u8]) -> Result<Self> {
        Self::decode_start(file, file.len() as u64)
    }

    /// The header of a file of `length` bytes that begins with `file`: with at least [`MAX_HEADER`](Self::MAX_HEADER) of them,
    /// or all.
    ///
    /// # Errors
    /// As of [`decode`](Self::decode).
    pub(super) fn decode_start(file: &[u8], length_of_file: u64) -> Result<Self> {
        if file.len() < FIXED || file[..8] != MAGIC {
            return Err(damaged(match file.len() {
                0 => "it is empty",
                _ if MAGIC.starts_with(&file[..file.len().min(8)]) => "it is cut: not even its header is whole",
                _ => "it is another file: it does not begin as a saved build does",
            }));
        }
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| file[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| file[at + i]));
        if u32_at(8) != VERSION {
            return not_supported!(
                "it has format version {}, this prejoin ({}) reads version {VERSION}; prepare and save the build again",
                u32_at(8),
                env!("CARGO_PKG_VERSION")
            );
        }
        if u32_at(12) != u32::from_le_bytes(BYTE_ORDER.to_ne_bytes()) {
            return not_supported!("it was saved on a machine of another byte order; save the build on this one");
        }
        if u64_at(16) != length_of_file {
            return Err(damaged(&format!(
                "it has {} bytes and {} were written: it was cut or grew",
                length_of_file,
                u64_at(16)
            )));
        }
        let count = u32_at(24) as usize;
        let size = Self::size(count.min(MAX_SECTIONS)) as usize;
        if count > MAX_SECTIONS || size > file.len() {
            return Err(damaged("its header lists more sections than there can be"));
        }
        let mut header = file[..size].to_vec();
        header[CHECKSUM].fill(0);
        if crc32fast::hash(&header) != u32_at(CHECKSUM.start) {
            return Err(damaged("the checksum of its header is wrong"));
        }
        let text = &file[VERSION_TEXT];
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let mut sections: Vec<Section> = Vec::with_capacity(count);
        let mut expected = size as u64;
        for at in (0..count).map(|i| FIXED + i * ENTRY) {
            let (offset, length) = (u64_at(at + 8), u64_at(at + 16));
            let kind = Kind::of_code(u32_at(at)).ok_or_else(|| damaged("it has a section of an unknown kind"))?;
            let end = offset.checked_add(length).filter(|&end| end <= length_of_file);
            if offset != expected || end.is_none() || sections.iter().any(|section| section.kind == kind) {
                return Err(damaged("a section of it is out of place"));
            }
            expected = padded(offset + length);
            sections.push(Section { kind, checksum: u32_at(at + 4), offset, length });
        }
        if expected != length_of_file {
            return Err(damaged("its sections are not the whole of it"));
        }
        Ok(Self {
            fingerprint: u128::from_le_bytes(std::array::from_fn(|i| file[32 + i])),
            crate_version: String::from_utf8_lossy(text).into_owned(),
            sections,
        })
    }

    /// The section of this kind, if there is one.
    pub(super) fn section(&self, kind: Kind) -> Option<Section> {
        self.sections.iter().copied().find(|section| section.kind == kind)
    }
}

/// An error whose text goes on from the name of the file.
pub(super) fn damaged(what: &str) -> Error {
    Error::Damaged(what.to_owned())
}
