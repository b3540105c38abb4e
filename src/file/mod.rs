//! Builds in files: one file per build, mapped by any number of processes and probed in place.
//!
//! docs/format.md describes the file byte by byte. [`section`], [`header`] and [`meta`] are its small parts, [`rows`] the Arrow IPC
//! files in it; [`write`] makes one, [`save`] gives it a name, [`mapping`] maps it, [`open`] makes a build of it, and
//! [`share`] does without a name.

mod errors;
mod header;
mod mapping;
mod meta;
mod open;
mod rows;
mod save;
mod section;
mod share;
mod write;

pub use open::{OpenOptions, SavedInfo};
pub use save::SaveOptions;
pub use share::SharedBuild;

/// Most bytes that are written, read or summed up between two looks at the cancel signal.
const PIECE: usize = 1 << 20;
