//! Which build rows or keys found a partner: the state of build-driven and of validated joins, shared by the partitions
//! of one join.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::memory::{Pool, Reservation};
use crate::prepare::PreparedBuild;

/// One bit per group where a key decides, one per build row where a predicate does.
#[derive(Debug)]
pub(crate) struct Visited {
    bits: Vec<AtomicU64>,
    len: usize,
    /// Partitions that neither finished nor were dropped.
    open: AtomicUsize,
    /// Some probe row was seen.
    pub(crate) probe_rows: AtomicBool,
    /// Some probe row with a null key was seen.
    pub(crate) probe_nulls: AtomicBool,
    /// Last, so that the bits go before their charge.
    _reservation: Reservation,
}

impl Visited {
    /// `bits` clear bits for `partitions` partitions, admitted by `pool` under `name`.
    pub(crate) fn try_new(name: &'static str, bits: usize, partitions: usize, pool: &Arc<dyn Pool>) -> Result<Self> {
        let words = bits.div_ceil(64);
        let mut reservation = Reservation::new(pool, name);
        reservation.try_grow(words * size_of::<u64>())?;
        let (len, bits) = (bits, (0..words).map(|_| AtomicU64::new(0)).collect());
        let (probe_rows, probe_nulls) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { bits, len, open: AtomicUsize::new(partitions), probe_rows, probe_nulls, _reservation: reservation })
    }

    /// Number of bits.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sets bit `i`.
    #[inline]
    pub(crate) fn mark(&self, i: u32) {
        let (word, bit) = (&self.bits[i as usize / 64], 1 << (i % 64));
        // Most marks repeat: reading first keeps the line shared between the partitions.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Sets bit `i`; true where it was clear.
    pub(crate) fn mark_first(&self, i: u32) -> bool {
        let bit = 1 << (i % 64);
        self.bits[i as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    fn is_marked(&self, i: u32) -> bool {
        self.bits[i as usize / 64].load(Ordering::Relaxed) & (1 << (i % 64)) != 0
    }

    /// The marked build rows, one bit per build row of `build`.
    pub(crate) fn to_rows(&self, build: &PreparedBuild, by_row: bool, pool: &Arc<dyn Pool>) -> Result<RowBits> {
        let words = build.num_rows().div_ceil(64);
        let mut reservation = Reservation::new(pool, "visited build rows");
        reservation.try_grow(words * size_of::<u64>())?;
        let mut bits: Vec<u64> = Vec::with_capacity(words);
        if by_row {
            bits.extend(self.bits.iter().map(|word| word.load(Ordering::Relaxed)));
        } else {
            bits.resize(words, 0);
            for group in (0..build.num_keys() as u32).filter(|&group| self.is_marked(group)) {
                build.groups().for_each_row(group, |row| bits[row as usize / 64] |= 1 << (row % 64));
            }
        }
        let probe_had_rows = self.probe_rows.load(Ordering::Relaxed);
        Ok(RowBits { bits, rows: build.num_rows(), next: 0, probe_had_rows, _reservation: reservation })
    }
}

/// Marked build rows, read out in build order.
#[derive(Debug)]
pub(crate) struct RowBits {
    bits: Vec<u64>,
    rows: usize,
    next: usize,
    /// Some probe row was seen, where the join asks (null-aware).
    pub(crate) probe_had_rows: bool,
    _reservation: Reservation,
}

impl RowBits {
    /// Number of build rows.
    #[cfg(feature = "python")]
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Appends up to `max` further rows whose mark is `marked` and that `keep` accepts.
    pub(crate) fn next_rows(&mut self, marked: bool, max: usize, keep: impl Fn(usize) -> bool, out: &mut Vec<u32>) {
        while self.next < self.rows && out.len() < max {
            let row = self.next;
            self.next += 1;
            if (self.bits[row / 64] >> (row % 64) & 1 == 1) == marked && keep(row) {
                out.push(row as u32);
            }
        }
    }
}

/// Where the partitions of a run find their [`Visited`]; emptied by the last one to end, so that its charge goes too.
pub(crate) type VisitedHome = Arc<Mutex<Option<Arc<Visited>>>>;

/// What a probe marks.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// The matched build rows or groups of a build-driven kind.
    pub(crate) visited: Option<VisitedShare>,
    /// The groups that some probe row has, where no two may share one.
    pub(crate) seen: Option<VisitedShare>,
}

/// The share of one partition in a [`Visited`]; a partition that is dropped counts as done.
#[derive(Debug)]
pub(crate) struct VisitedShare {
    pub(crate) visited: Arc<Visited>,
    home: VisitedHome,
    closed: bool,
}

impl VisitedShare {
    pub(crate) fn new(visited: Arc<Visited>, home: VisitedHome) -> Self {
        Self { visited, home, closed: false }
    }

    /// Ends this partition; true where it was the last one, which sees every mark of the others.
    pub(crate) fn close(&mut self) -> bool {
        let first_time = !std::mem::replace(&mut self.closed, true);
        let last = first_time && self.visited.open.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.home.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        last
    }
}

impl Drop for VisitedShare {
    fn drop(&mut self) {
        self.close();
    }
}
