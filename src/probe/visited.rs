//! Which build rows or keys have matched: the state of build-driven and of validated joins, shared by the partitions of one
//! run.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::plan::ProbePlan;
use crate::cancel::{Cancel, POLL_ROWS};
use crate::error::{Result, plan_err};
use crate::memory::{Pool, Reservation};
use crate::prepare::PreparedBuild;

/// One bit per group where the key decides a match, one per build row where a predicate does.
#[derive(Debug)]
pub(crate) struct Visited {
    bits: Vec<AtomicU64>,
    len: usize,
    /// Some probe row was seen.
    pub(crate) probe_rows: AtomicBool,
    /// Some probe row with a null key was seen.
    pub(crate) probe_nulls: AtomicBool,
    /// Last, so that the bits are freed before their charge.
    _reservation: Reservation,
}

impl Visited {
    /// `bits` clear bits, admitted by `pool` under `name`.
    pub(crate) fn try_new(name: &'static str, bits: usize, pool: &Arc<dyn Pool>, cancel: &Cancel) -> Result<Self> {
        let words = bits.div_ceil(64);
        let mut reservation = Reservation::new(pool, name);
        reservation.try_grow(words * size_of::<u64>())?;
        let (len, mut bits) = (bits, Vec::with_capacity(words));
        while bits.len() < words {
            cancel.check()?;
            bits.resize_with(words.min(bits.len() + POLL_ROWS), || AtomicU64::new(0));
        }
        let (probe_rows, probe_nulls) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { bits, len, probe_rows, probe_nulls, _reservation: reservation })
    }

    /// Number of bits.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sets bit `i`.
    #[inline]
    pub(crate) fn mark(&self, i: u32) {
        let (word, bit) = (&self.bits[i as usize / 64], 1 << (i % 64));
        // Most marks repeat; reading first keeps the cache line shared between partitions.
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
    pub(crate) fn to_rows(
        &self,
        build: &PreparedBuild,
        by_row: bool,
        pool: &Arc<dyn Pool>,
        cancel: &Cancel,
    ) -> Result<RowBits> {
        let words = build.num_rows().div_ceil(64);
        let mut reservation = Reservation::new(pool, "visited build rows");
        reservation.try_grow(words * size_of::<u64>())?;
        let mut bits: Vec<u64> = Vec::with_capacity(words);
        if by_row {
            for morsel in self.bits.chunks(POLL_ROWS) {
                cancel.check()?;
                bits.extend(morsel.iter().map(|word| word.load(Ordering::Relaxed)));
            }
        } else {
            bits.resize(words, 0);
            let mark = |_, row: u32| bits[row as usize / 64] |= 1 << (row % 64);
            build.groups().try_for_each_row(build.num_keys(), cancel, |group| self.is_marked(group), mark)?;
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
    /// Some probe row was seen; only known for null-aware joins.
    pub(crate) probe_had_rows: bool,
    _reservation: Reservation,
}

impl RowBits {
    /// Number of build rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Appends further rows whose mark is `marked` and that `keep` accepts, until `out` has `max`.
    pub(crate) fn next_rows(
        &mut self,
        marked: bool,
        max: usize,
        keep: impl Fn(usize) -> bool,
        out: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        while self.next < self.rows && out.len() < max {
            cancel.check()?;
            let end = self.rows.min(self.next + POLL_ROWS);
            while self.next < end && out.len() < max {
                let row = self.next;
                self.next += 1;
                if (self.bits[row / 64] >> (row % 64) & 1 == 1) == marked && keep(row) {
                    out.push(row as u32);
                }
            }
        }
        Ok(())
    }
}

/// What the partitions of one run share: the bits that they mark, and how many of them have ended.
#[derive(Debug)]
pub(crate) struct Marks {
    partitions: usize,
    progress: Mutex<Progress>,
    /// The matched build rows or groups of a build-driven join, once a partition has made the bits.
    visited: Mutex<Option<Arc<Visited>>>,
    /// The groups that some probe row has, where no two may share one.
    seen: Mutex<Option<Arc<Visited>>>,
}

#[derive(Debug, Default)]
struct Progress {
    claimed: HashSet<usize>,
    /// No other partition will be executed.
    all_claimed: bool,
    /// Claims that have not ended.
    open: usize,
}

impl Marks {
    pub(crate) fn new(partitions: usize) -> Arc<Self> {
        Arc::new(Self { partitions, progress: Mutex::default(), visited: Mutex::default(), seen: Mutex::default() })
    }

    /// Claims a partition, which counts as ended once the claim is dropped; with `once`, only where none did before.
    pub(crate) fn claim(self: &Arc<Self>, partition: usize, once: bool) -> Result<Claim> {
        if partition >= self.partitions {
            return plan_err!("partition {partition} was asked of a join with {}", self.partitions);
        }
        let mut progress = lock(&self.progress);
        let first = !progress.all_claimed && progress.claimed.insert(partition);
        if !first && once {
            return plan_err!("partition {partition} of this run was executed before; reset the join to run it again");
        }
        progress.open += 1;
        Ok(Claim { marks: Arc::clone(self), open: true })
    }

    /// Counts all partitions that were not claimed as ended.
    pub(crate) fn end_unclaimed(&self) {
        let mut progress = lock(&self.progress);
        progress.all_claimed = true;
        let last = progress.open == 0;
        drop(progress);
        if last {
            self.release();
        }
    }

    /// Drops the bits and, without holding a lock, their charge.
    fn release(&self) {
        let bits = (lock(&self.visited).take(), lock(&self.seen).take());
        drop(bits);
    }

    /// What a partition of a probe of `plan` marks.
    fn of_partition(&self, claim: Claim, plan: &ProbePlan, cancel: &Cancel) -> Result<PartitionMarks> {
        let share = |home: &Mutex<Option<Arc<Visited>>>, name, bits: Option<usize>| {
            let Some(bits) = bits else { return Ok(None) };
            let mut shared = lock(home);
            match &*shared {
                Some(visited) if visited.len() == bits => Ok(Some(Arc::clone(visited))),
                Some(_) => plan_err!("the join was changed between two partitions of one run; reset it first"),
                None => {
                    let visited = Arc::new(Visited::try_new(name, bits, &plan.pool, cancel)?);
                    Ok(Some(Arc::clone(shared.insert(visited))))
                }
            }
        };
        let visited = share(&self.visited, "visited build rows", plan.visited_bits())?;
        let seen = share(&self.seen, "keys seen by validate", plan.seen_bits())?;
        Ok(PartitionMarks { visited, seen, claim })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One partition that was claimed. It ends when it is read, fails or is dropped, started or not.
#[derive(Debug)]
pub(crate) struct Claim {
    marks: Arc<Marks>,
    open: bool,
}

impl Claim {
    /// The only partition of a run.
    pub(crate) fn alone() -> Result<Self> {
        Marks::new(1).claim(0, true)
    }

    /// What this partition marks.
    pub(crate) fn marks(self, plan: &ProbePlan, cancel: &Cancel) -> Result<PartitionMarks> {
        let marks = Arc::clone(&self.marks);
        marks.of_partition(self, plan, cancel)
    }

    /// Ends this partition; true where it is the last one of its run, which sees every mark of the others.
    pub(crate) fn end(&mut self) -> bool {
        if !std::mem::replace(&mut self.open, false) {
            return false;
        }
        let mut progress = lock(&self.marks.progress);
        progress.open -= 1;
        let all_claimed = progress.all_claimed || progress.claimed.len() == self.marks.partitions;
        let last = progress.open == 0 && all_claimed;
        drop(progress);
        if last {
            self.marks.release();
        }
        last
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end();
    }
}

/// What one partition marks.
#[derive(Debug)]
pub(crate) struct PartitionMarks {
    /// The matched build rows or groups of a build-driven join.
    pub(crate) visited: Option<Arc<Visited>>,
    /// The groups that some probe row has, where no two may share one.
    pub(crate) seen: Option<Arc<Visited>>,
    /// Last, so that the bits are dropped before this partition counts as ended.
    pub(crate) claim: Claim,
}
