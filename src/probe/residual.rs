//! The residual predicate: candidate pairs in pieces of bounded size, and which of them become entries.
//!
//! Few candidates of many probe rows are gathered side by side. The many candidates of one probe row come by themselves:
//! the row's own columns are one value for all of them, and what is gathered of a key's build rows serves every probe row
//! with that key that follows.

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::entries::{Entries, Input, Run};
use super::probe::ProbePlan;
use super::visited::Visited;
use crate::columns::{Selection, in_column, pick};
use crate::error::{Error, Result};
use crate::expr::{Predicate, Side, Value};
use crate::index::NONE;
use crate::join::JoinType;

/// Most pairs that are decided at once, whatever the batch size.
const PAIRS: usize = 8192;

/// From so many candidates on a probe row comes by itself; also how many of them are decided at once where one that passes
/// decides the row.
const MANY: usize = 1024;

/// Most pieces of one key that are kept.
const KEPT: usize = 8;

/// What is known between two pieces.
#[derive(Debug, Default)]
pub(crate) struct Residual {
    candidates: Entries,
    /// The open row passed in an earlier piece.
    open_row_passed: bool,
    key: Key,
}

/// Build columns of the key that was met last, piece by piece.
#[derive(Debug, Default)]
struct Key {
    group: Option<u32>,
    pieces: Vec<Vec<ArrayRef>>,
    rows: Vec<u32>,
}

impl Residual {
    /// Decides the next candidates of `input` and appends what passes to `accepted`; false where there are none. `on_group` sees the
    /// group of every hit once.
    pub(crate) fn step(
        &mut self,
        plan: &ProbePlan,
        predicate: &Predicate,
        input: &mut Input,
        visited: Option<&Visited>,
        accepted: &mut Entries,
        on_group: impl FnMut(u32),
    ) -> Result<bool> {
        let pairs = plan.join_type.pairs() || plan.join_type.is_build_driven();
        let next_run = |input: &mut Input| input.next_run(&plan.build, MANY, if pairs { PAIRS } else { MANY });
        let mut run = next_run(input);
        if run.is_none() {
            self.candidates.clear();
            input.fill(&plan.build, plan.shape(), PAIRS, Some(MANY), &mut self.candidates, on_group)?;
            if self.candidates.len() > 0 {
                self.decide(plan, predicate, input, visited)?;
                accepted.append(&self.candidates);
                return Ok(true);
            }
            run = next_run(input);
        }
        match run {
            Some(run) => self.decide_run(plan, predicate, input, run, visited, accepted).map(|()| true),
            None => Ok(false),
        }
    }

    /// Candidates of one probe row, which are the build rows `run.skip..run.skip + run.take` of one key.
    fn decide_run(
        &mut self,
        plan: &ProbePlan,
        predicate: &Predicate,
        input: &mut Input,
        run: Run,
        visited: Option<&Visited>,
        accepted: &mut Entries,
    ) -> Result<()> {
        let build = self.key.piece(plan, predicate, &run)?;
        let mut build = build.iter();
        let columns = predicate.columns().iter().map(|&(side, column)| match side {
            Side::Build => build.next().map(|array| Value { array: array.clone(), scalar: false }),
            Side::Probe => Some(Value { array: input.batch.column(column).slice(run.row as usize, 1), scalar: true }),
        });
        let columns: Vec<Value> = columns.flatten().collect();
        let passed = passing(&predicate.evaluate_values(&columns, run.take)?);
        let groups = plan.build.groups();
        let build_row = |i: usize| groups.nth_row(run.group, run.skip + i);
        if let Some(visited) = visited {
            passed.set_indices().for_each(|i| visited.mark(build_row(i)));
        }
        let complete = input.open_row().is_none();
        let any = passed.set_indices().next();
        match plan.join_type {
            JoinType::BuildSemi | JoinType::BuildAnti => return Ok(()),
            join_type if join_type.pairs() => {
                passed.set_indices().for_each(|i| accepted.push(run.row, build_row(i)));
            }
            join_type => {
                if let Some(first) = any {
                    input.skip_open_row();
                    if join_type != JoinType::ProbeAnti {
                        accepted.push(run.row, build_row(first));
                    }
                    return Ok(());
                }
            }
        }
        self.open_row_passed |= any.is_some();
        if complete && !std::mem::take(&mut self.open_row_passed) && plan.join_type.keeps_unmatched_probe() {
            accepted.push(run.row, NONE);
        }
        Ok(())
    }

    /// Candidates of any rows: one that fails is dropped, and where unmatched probe rows matter the last failing candidate
    /// of a row that passed none becomes its miss.
    fn decide(
        &mut self,
        plan: &ProbePlan,
        predicate: &Predicate,
        input: &mut Input,
        visited: Option<&Visited>,
    ) -> Result<()> {
        let Self { candidates, open_row_passed, .. } = self;
        let rows = candidates.len();
        let passed = if candidates.build.contains(&NONE) {
            // The misses of an outer kind are no pairs: the predicate does not see them, nor can it fail on them.
            let mut only = Entries::default();
            let hits = (0..rows).filter(|&i| candidates.build[i] != NONE);
            hits.for_each(|i| only.push(candidates.probe[i], candidates.build[i]));
            let decided = evaluate(plan, predicate, input, (&only.build, &only.probe))?;
            let mut decided = decided.iter();
            BooleanBuffer::collect_bool(rows, |i| candidates.build[i] != NONE && decided.next() == Some(true))
        } else {
            evaluate(plan, predicate, input, (&candidates.build, &candidates.probe))?
        };
        let passes = |i: usize| passed.value(i);
        if let Some(visited) = visited {
            let marked = (0..rows).filter(|&i| passes(i));
            marked.for_each(|i| visited.mark(candidates.build[i]));
        }
        if matches!(plan.join_type, JoinType::BuildSemi | JoinType::BuildAnti) {
            candidates.clear();
            return Ok(());
        }
        let pairs = plan.join_type.pairs();
        if pairs && !plan.join_type.extends_probe() {
            candidates.retain(|i, _, _| passes(i));
            return Ok(());
        }
        let open = input.open_row();
        // Build rows are decided one by one: a miss is written over the last candidate of its row.
        let mut row_passed = *open_row_passed;
        let (misses, hits) = (plan.join_type.keeps_unmatched_probe(), plan.join_type != JoinType::ProbeAnti);
        let mut keep = Vec::with_capacity(rows);
        for i in 0..rows {
            let pass = passes(i);
            // A row kind needs its first passing pair only.
            let mut kept = hits && pass && (pairs || !row_passed);
            row_passed |= pass;
            let row = Some(candidates.probe[i]);
            if candidates.probe.get(i + 1).map_or(open, |&next| Some(next)) != row {
                if !row_passed && misses {
                    candidates.build[i] = NONE;
                    kept = true;
                }
                row_passed = false;
            }
            keep.push(kept);
        }
        if row_passed && !pairs {
            input.skip_open_row();
            row_passed = false;
        }
        *open_row_passed = row_passed;
        candidates.retain(|i, _, _| keep[i]);
        Ok(())
    }
}

/// Which of the pairs (build rows, probe rows) pass. Where a column of that many does not fit its type, halves do.
fn evaluate(
    plan: &ProbePlan,
    predicate: &Predicate,
    input: &Input,
    (build, probe): (&[u32], &[u32]),
) -> Result<BooleanBuffer> {
    let rows = build.len();
    let sides = (Selection::try_new(build, plan.build.num_rows())?, Selection::try_new(probe, input.batch.num_rows())?);
    let columns = predicate.columns().iter().map(|&(side, column)| {
        let array = match side {
            Side::Build => pick_build(plan, column, sides.0)?,
            Side::Probe => pick(input.batch.column(column), sides.1)
                .map_err(|error| in_column(error, plan.probe_schema.field(column).name()))?,
        };
        Ok(Value { array, scalar: false })
    });
    match columns.collect::<Result<Vec<_>>>() {
        Err(Error::Overflow(_)) if rows > 1 => {
            let half = rows / 2;
            let mut passed = BooleanBufferBuilder::new(rows);
            passed.append_buffer(&evaluate(plan, predicate, input, (&build[..half], &probe[..half]))?);
            passed.append_buffer(&evaluate(plan, predicate, input, (&build[half..], &probe[half..]))?);
            Ok(passed.finish())
        }
        columns => Ok(passing(&predicate.evaluate_values(&columns?, rows)?)),
    }
}

fn pick_build(plan: &ProbePlan, column: usize, rows: Selection<'_>) -> Result<ArrayRef> {
    pick(plan.build_columns.get(column)?, rows)
        .map_err(|error| in_column(error, plan.build.schema().field(column).name()))
}

impl Key {
    /// The build columns of the predicate for a run. The pieces of a key are asked for in order, from the first one on.
    fn piece(&mut self, plan: &ProbePlan, predicate: &Predicate, run: &Run) -> Result<Vec<ArrayRef>> {
        if self.group != Some(run.group) {
            self.pieces.clear();
            self.group = Some(run.group);
        }
        // Pieces but the last one are of one size.
        let at = if run.skip == 0 { 0 } else { run.skip / run.size };
        if let Some(piece) = self.pieces.get(at) {
            return Ok(piece.clone());
        }
        self.rows.clear();
        plan.build.groups().extend_rows(run.group, run.skip, run.take, &mut self.rows);
        let selection = Selection::try_new(&self.rows, plan.build.num_rows())?;
        let columns = predicate.columns().iter().filter(|(side, _)| *side == Side::Build);
        // Rows of one key are distinct, so their values fit wherever the build's do.
        let piece = columns.map(|&(_, column)| pick_build(plan, column, selection)).collect::<Result<Vec<_>>>()?;
        if at == self.pieces.len() && at < KEPT {
            self.pieces.push(piece.clone());
        }
        Ok(piece)
    }
}

/// The pairs that pass: null is no.
fn passing(decided: &BooleanArray) -> BooleanBuffer {
    match decided.nulls() {
        Some(valid) => decided.values() & valid.inner(),
        None => decided.values().clone(),
    }
}
