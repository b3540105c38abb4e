//! The header: what a file is, and where its sections are.

use super::errors::damaged;
use super::section::{SectionKind, SectionName};
use crate::error::{Result, not_supported};

/// Not valid text in any encoding; a transfer that converts line ends breaks it.
const MAGIC: [u8; 8] = *b"\x89PJOIN\r\n";

/// The version of the format that is written. A change of anything in docs/format.md but a further section is another version;
/// so is a change of the hash functions or of how arrow-row encodes keys.
const VERSION: u32 = 2;

/// The versions that are read: the one that is written and the two before it. No release wrote version 1.
const READ: std::ops::RangeInclusive<u32> = 2..=VERSION;

/// Written in the byte order of the processor.
const BYTE_ORDER: u32 = 0x0102_0304;

/// Sections begin at multiples of it, and the file ends at one.
pub(super) const ALIGN: u64 = 64;

const FIXED: usize = 64;
const ENTRY: usize = 40;
const CHECKSUM: std::ops::Range<usize> = 28..32;
const VERSION_TEXT: std::ops::Range<usize> = 48..64;

/// No file has more.
const MAX_SECTIONS: usize = 64;

/// The flag of a section that a reader has to know.
const REQUIRED: u32 = 1;

/// One section of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: SectionName,
    /// Whether a reader that does not know it has to refuse the file.
    pub(super) is_required: bool,
    /// CRC-32 (ISO-HDLC, as in zlib) of its bytes.
    pub(super) checksum: u32,
    pub(super) offset: u64,
    /// In bytes, padding left aside.
    pub(super) length: u64,
}

/// A decoded header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) format_version: u32,
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
    /// The header of a file that is written now.
    pub(super) fn new(fingerprint: u128, sections: Vec<Section>) -> Self {
        let crate_version = env!("CARGO_PKG_VERSION").to_owned();
        Self { format_version: VERSION, fingerprint, crate_version, sections }
    }

    /// Most bytes of a header.
    pub(super) const MAX_HEADER: usize = FIXED + MAX_SECTIONS * ENTRY;

    /// Bytes of a header of `sections` sections, padding included.
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
        out.extend(self.format_version.to_le_bytes());
        out.extend(BYTE_ORDER.to_ne_bytes());
        out.extend(self.file_length().to_le_bytes());
        out.extend((self.sections.len() as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.fingerprint.to_le_bytes());
        out.extend(self.crate_version.bytes());
        out.resize(FIXED, 0);
        for section in &self.sections {
            out.extend(section.name.0);
            out.extend(if section.is_required { REQUIRED } else { 0 }.to_le_bytes());
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
    /// [`Error::Damaged`](crate::Error::Damaged) for another file, a cut or a damaged one;
    /// [`Error::NotSupported`](crate::Error::NotSupported) for one of another version
    /// or byte order.
    pub(super) fn decode(file: &[u8]) -> Result<Self> {
        Self::decode_start(file, file.len() as u64)
    }

    /// The header of a file of `length` bytes that begins with `file`: with at least [`MAX_HEADER`](Self::MAX_HEADER) of them,
    /// or all.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
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
        let format_version = u32_at(8);
        if !READ.contains(&format_version) {
            return refuse_version(format_version);
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
            let name = SectionName(std::array::from_fn(|i| file[at + i]));
            let (flags, checksum) = (u32_at(at + 16), u32_at(at + 20));
            let (offset, length) = (u64_at(at + 24), u64_at(at + 32));
            let end = offset.checked_add(length).filter(|&end| end <= length_of_file);
            let is_twice = sections.iter().any(|section| section.name == name);
            if offset != expected || end.is_none() || flags & !REQUIRED != 0 || is_twice {
                return Err(damaged("a section of it is out of place"));
            }
            expected = padded(offset + length);
            sections.push(Section { name, is_required: flags == REQUIRED, checksum, offset, length });
        }
        if expected != length_of_file {
            return Err(damaged("its sections are not the whole of it"));
        }
        let crate_version = String::from_utf8_lossy(text).into_owned();
        if let Some(unknown) = sections.iter().find(|section| section.is_required && !section.name.is_known()) {
            return not_supported!(
                "prejoin {crate_version} wrote it with a section {} that this prejoin ({}) does not know and cannot leave out; \
                 update prejoin",
                unknown.name,
                env!("CARGO_PKG_VERSION")
            );
        }
        Ok(Self {
            format_version,
            fingerprint: u128::from_le_bytes(std::array::from_fn(|i| file[32 + i])),
            crate_version,
            sections,
        })
    }

    /// The section of this kind, if there is one.
    pub(super) fn section(&self, kind: SectionKind) -> Option<Section> {
        self.sections.iter().copied().find(|section| section.name.is(kind))
    }
}

fn refuse_version<T>(found: u32) -> Result<T> {
    let (oldest, this) = (READ.start(), env!("CARGO_PKG_VERSION"));
    match found < *oldest {
        true => not_supported!(
            "it has format version {found}, and this prejoin ({this}) reads versions {oldest} to {VERSION}; make the file anew \
             from its rows: prejoin prepare --build ROWS --on KEY --out FILE"
        ),
        false => not_supported!(
            "it has format version {found}, and this prejoin ({this}) reads versions {oldest} to {VERSION}; update prejoin"
        ),
    }
}
