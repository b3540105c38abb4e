//! Memory that is admitted before it is used: a [`Pool`] grants bytes, a [`Reservation`] holds and returns them, and a
//! [`RangeCounter`] says how many bytes a batch adds to what is held already.

mod counter;
mod pool;
mod reservation;
mod system;

pub use counter::RangeCounter;
pub use pool::{MemoryPool, Pool};
pub use reservation::Reservation;
pub(crate) use system::{ReturnsToSystem, ask_for_huge_pages};
