//! From one probe batch to its candidates: entries (probe row, build row) in probe order, cut at the batch size.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;

use super::as_of::AsOfSearch;
use super::key_reader::{Codes, Keys};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::index::{Hits, NONE};
use crate::prepare::PreparedBuild;

/// Candidate rows in output order.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Probe rows.
    pub(crate) probe: Vec<u32>,
    /// The build row of each probe row, [`NONE`] where the probe row has no candidate. Where entries are not expanded to
    /// build rows, any other value.
    pub(crate) build: Vec<u32>,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.probe.len()
    }

    pub(crate) fn clear(&mut self) {
        self.probe.clear();
        self.build.clear();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.probe.truncate(len);
        self.build.truncate(len);
    }

    /// Appends `hits`, whose contents are unspecified afterwards.
    fn extend(&mut self, hits: &mut Hits) {
        if self.len() == 0 {
            // A small batch is looked up in one stage, whose hits need no copy.
            std::mem::swap(&mut self.probe, &mut hits.rows);
            std::mem::swap(&mut self.build, &mut hits.groups);
        } else {
            self.probe.extend_from_slice(&hits.rows);
            self.build.extend_from_slice(&hits.groups);
        }
    }

    /// Appends the probe rows `start..start + len`: `hits` with their groups, the others with [`NONE`].
    fn extend_with_misses(&mut self, start: usize, len: usize, hits: &Hits) {
        let base = self.len();
        self.probe.extend(start as u32..(start + len) as u32);
        self.build.resize(base + len, NONE);
        let build = &mut self.build[base..];
        for (&row, &group) in hits.rows.iter().zip(&hits.groups) {
            build[row as usize - start] = group;
        }
    }

    /// Appends those of the probe rows `start..start + len` that are not in `hits`, whose contents are unspecified
    /// afterwards.
    fn extend_misses(&mut self, start: usize, len: usize, hits: &mut Hits) {
        let base = self.len();
        self.probe.resize(base + len, 0);
        let (mut kept, mut hit) = (base, 0);
        // No probe row has this number, so `hit` never runs past the end.
        hits.rows.push(NONE);
        for row in start as u32..(start + len) as u32 {
            // No branch, since hits cannot be predicted.
            let is_hit = hits.rows[hit] == row;
            self.probe[kept] = row;
            kept += usize::from(!is_hit);
            hit += usize::from(is_hit);
        }
        self.probe.truncate(kept);
        self.build.resize(kept, NONE);
    }

    pub(crate) fn append(&mut self, other: &Entries) {
        self.probe.extend_from_slice(&other.probe);
        self.build.extend_from_slice(&other.build);
    }

    /// Drops the first `len` entries.
    pub(crate) fn drop_front(&mut self, len: usize) {
        self.probe.drain(..len);
        self.build.drain(..len);
    }

    pub(crate) fn push(&mut self, probe: u32, build: u32) {
        self.probe.push(probe);
        self.build.push(build);
    }

    /// Keeps the entries that `keep` accepts, in order; `keep` sees each entry's position, probe row and build row.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize, u32, u32) -> bool) {
        let mut kept = 0;
        for i in 0..self.len() {
            let (probe, build) = (self.probe[i], self.build[i]);
            self.probe[kept] = probe;
            self.build[kept] = build;
            kept += usize::from(keep(i, probe, build));
        }
        self.truncate(kept);
    }
}

/// Candidates of one probe row, all of them of one key.
#[derive(Debug)]
pub(crate) struct RowCandidates {
    /// The probe row.
    pub(crate) row: u32,
    pub(crate) group: u32,
    /// Build rows of the group that came before.
    pub(crate) skip: usize,
    pub(crate) take: usize,
    /// What `take` is, except for the last candidates of a row.
    pub(crate) size: usize,
}

/// Which rows become entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryShape {
    /// One entry per build row of the key (true), or one per probe row that hits.
    pub(crate) expand: bool,
    /// Probe rows without a hit give an entry too.
    pub(crate) misses: bool,
    /// Probe rows with a hit give an entry; false only where rows are not expanded and `misses` is set.
    pub(crate) hits: bool,
}

/// Probe rows that are looked up at once; bounds what is held beside the result.
pub(super) const STAGE: usize = 8192;

/// Where the groups of probe rows come from.
#[derive(Debug)]
pub(crate) enum KeySource {
    Keys(Keys),
    Codes(Codes),
    /// Several keys in each row, at least two, which must all be the same.
    Same(Box<Same>),
    /// The source without the rows that are set, which no key of the build equals.
    Except(Box<KeySource>, BooleanBuffer),
    /// The one build row of each key that an as-of search chooses, in place of its group.
    AsOf(Box<(KeySource, AsOfSearch)>),
}

/// Probe rows whose keys in all of some sources have one group.
#[derive(Debug)]
pub(crate) struct Same {
    first: KeySource,
    others: Vec<KeySource>,
    scratch: Hits,
}

impl KeySource {
    /// The rows of which `sources`, at least one, all find the same group.
    pub(crate) fn same(first: KeySource, others: Vec<KeySource>) -> Self {
        match others.is_empty() {
            true => first,
            false => KeySource::Same(Box::new(Same { first, others, scratch: Hits::default() })),
        }
    }

    /// True where hits hold build rows in place of groups.
    fn gives_rows(&self) -> bool {
        matches!(self, KeySource::AsOf(_))
    }

    /// Appends the hits of the rows `start..start + len`, ascending.
    fn look_up(&mut self, build: &PreparedBuild, start: usize, len: usize, hits: &mut Hits) -> Result<()> {
        let from = hits.rows.len();
        match self {
            KeySource::Codes(codes) => codes.look_up(start, len, hits),
            KeySource::Keys(Keys { columns, missing, .. }) => {
                build.index().probe(columns, start, len, hits)?;
                if let Some(missing) = missing {
                    hits.retain_from(from, |row, _| !missing.value(row as usize));
                }
            }
            KeySource::AsOf(as_of) => {
                let (keys, search) = as_of.as_mut();
                keys.look_up(build, start, len, hits)?;
                search.choose(build, hits, from)?;
            }
            KeySource::Same(same) => {
                let Same { first, others, scratch } = same.as_mut();
                first.look_up(build, start, len, hits)?;
                for other in others {
                    scratch.clear();
                    other.look_up(build, start, len, scratch)?;
                    let mut found = scratch.rows.iter().zip(&scratch.groups).peekable();
                    hits.retain_from(from, |row, group| {
                        while found.next_if(|&(&other, _)| other < row).is_some() {}
                        found.peek() == Some(&(&row, &group))
                    });
                }
            }
            KeySource::Except(source, never) => {
                source.look_up(build, start, len, hits)?;
                hits.retain_from(from, |row, _| !never.value(row as usize));
            }
        }
        Ok(())
    }
}

/// One probe batch and how far it was read.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) batch: RecordBatch,
    lookup: KeySource,
    /// Polled between stages, any number of which may give no entry.
    cancel: Cancel,
    hits: Hits,
    /// The next hit to turn into entries.
    hit: usize,
    /// Build rows of that hit which are entries already.
    taken: usize,
    /// The first probe row that has not become an entry yet.
    row: usize,
    /// The first probe row that was not looked up yet.
    looked_up: usize,
}

impl Input {
    pub(crate) fn new(batch: RecordBatch, lookup: KeySource, mut hits: Hits, cancel: Cancel) -> Self {
        hits.clear();
        Self { batch, lookup, cancel, hits, hit: 0, taken: 0, row: 0, looked_up: 0 }
    }

    pub(crate) fn into_hits(self) -> Hits {
        self.hits
    }

    /// The probe row whose candidates did not all fit the last call's entries.
    pub(crate) fn open_row(&self) -> Option<u32> {
        (self.taken > 0).then(|| self.hits.rows[self.hit])
    }

    /// Skips the remaining candidates of the open row.
    pub(crate) fn skip_open_row(&mut self) {
        if self.taken > 0 {
            self.next_hit();
        }
    }

    fn next_hit(&mut self) {
        self.row = self.hits.rows[self.hit] as usize + 1;
        self.hit += 1;
        self.taken = 0;
    }

    /// True where a probe row meets at most one build row.
    fn gives_one_row(&self, build: &PreparedBuild) -> bool {
        self.lookup.gives_rows() || build.groups().is_unique()
    }

    /// The next candidates, at most `max`, if they are of a probe row that has at least `many`.
    pub(crate) fn next_row(&mut self, build: &PreparedBuild, many: usize, max: usize) -> Option<RowCandidates> {
        let (&row, &group) = (self.hits.rows.get(self.hit)?, self.hits.groups.get(self.hit)?);
        let groups = build.groups();
        // Rows before it that have no hit become entries first.
        if self.gives_one_row(build) || self.row != row as usize || groups.group_len(group) < many {
            return None;
        }
        let (skip, left) = (self.taken, groups.group_len(group) - self.taken);
        let take = left.min(max);
        self.taken += take;
        if take == left {
            self.next_hit();
        }
        Some(RowCandidates { row, group, skip, take, size: max })
    }

    /// Appends entries until there are `max` or the batch is read. `on_group` sees the group of every hit once.
    ///
    /// Stops at a probe row with at least `many` candidates, which [`next_row`](Self::next_row) gives.
    pub(crate) fn fill(
        &mut self,
        build: &PreparedBuild,
        shape: EntryShape,
        max: usize,
        many: Option<usize>,
        entries: &mut Entries,
        mut on_group: impl FnMut(u32),
    ) -> Result<()> {
        let rows = self.batch.num_rows();
        if self.gives_one_row(build) || !shape.expand {
            // At most one entry per probe row, and none of them cut: whole stages at a time.
            while entries.len() < max && self.looked_up < rows {
                let start = self.looked_up;
                let len = (rows - start).min(max - entries.len()).min(STAGE);
                self.hits.clear();
                self.look_up(build, len)?;
                self.hits.groups.iter().for_each(|&group| on_group(group));
                if shape.expand && !self.lookup.gives_rows() {
                    build.groups().unique_rows(&mut self.hits.groups);
                }
                match (shape.misses, shape.hits) {
                    (true, true) => entries.extend_with_misses(start, len, &self.hits),
                    (true, false) => entries.extend_misses(start, len, &mut self.hits),
                    (false, _) => entries.extend(&mut self.hits),
                }
            }
            return Ok(());
        }
        while entries.len() < max {
            if self.hit == self.hits.rows.len() && self.row == self.looked_up {
                if self.looked_up == rows {
                    break;
                }
                let len = (rows - self.looked_up).min(STAGE);
                self.hits.clear();
                self.hit = 0;
                self.look_up(build, len)?;
                self.hits.groups.iter().for_each(|&group| on_group(group));
            }
            let next = self.hits.rows.get(self.hit).map_or(self.looked_up, |&row| row as usize);
            if shape.misses {
                let until = next.min(self.row + (max - entries.len()));
                (self.row..until).for_each(|row| entries.push(row as u32, NONE));
                self.row = until;
                if until < next {
                    break;
                }
            }
            self.row = next;
            if let Some(&group) = self.hits.groups.get(self.hit) {
                if many.is_some_and(|many| build.groups().group_len(group) >= many) {
                    break;
                }
                if entries.len() < max {
                    self.expand(build, shape, max, entries);
                }
            }
        }
        Ok(())
    }

    /// Adds the hits of the next `len` probe rows.
    fn look_up(&mut self, build: &PreparedBuild, len: usize) -> Result<()> {
        // The caller has just polled before the first stage.
        if self.looked_up > 0 {
            self.cancel.check()?;
        }
        self.lookup.look_up(build, self.looked_up, len, &mut self.hits)?;
        self.looked_up += len;
        Ok(())
    }

    /// Turns the next hit into entries, as far as they fit.
    fn expand(&mut self, build: &PreparedBuild, shape: EntryShape, max: usize, entries: &mut Entries) {
        let (row, group) = (self.hits.rows[self.hit], self.hits.groups[self.hit]);
        if !shape.expand {
            entries.push(row, group);
            return self.next_hit();
        }
        let left = build.groups().group_len(group) - self.taken;
        let take = left.min(max - entries.len());
        build.groups().extend_rows(group, self.taken, take, &mut entries.build);
        entries.probe.resize(entries.build.len(), row);
        self.taken += take;
        if take == left {
            self.next_hit();
        }
    }
}
