//! The plan of a probe: a validated join over one build.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::as_of::AsOfReader;
use super::entries::{EntryShape, KeySource};
use super::key_reader::KeyReader;
use crate::error::{Result, internal_err};
use crate::expr::{Predicate, Side};
use crate::index::Hits;
use crate::join::{JoinSpec, JoinType, Output, Validate};
use crate::memory::Pool;
use crate::prepare::{LeasedColumns, PreparedBuild};

/// A validated join over one build: everything that its probes share and none of them changes.
#[derive(Debug)]
pub(crate) struct ProbePlan {
    pub(crate) build: Arc<PreparedBuild>,
    /// The build's columns that are read, under a lease where copies share their buffers.
    pub(crate) build_columns: LeasedColumns,
    pub(crate) probe_schema: SchemaRef,
    /// Positions of the key columns in the probe schema, in key order.
    pub(crate) probe_keys: Vec<usize>,
    pub(crate) key_reader: KeyReader,
    /// Readers of further keys of each row, which must be the same as the first.
    pub(crate) further_keys: Vec<KeyReader>,
    /// Chooses one row of each key.
    pub(crate) as_of: Option<AsOfReader>,
    pub(crate) join_type: JoinType,
    pub(crate) null_aware: bool,
    pub(crate) validate: Validate,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) output: Output,
    /// For each build column the value that it has in probe rows without a match; `None` is null. Empty if all are null.
    pub(crate) defaults: Vec<Option<ArrayRef>>,
    /// Largest number of rows of an output batch.
    pub(crate) batch_size: usize,
    /// Pays for visited bits.
    pub(crate) pool: Arc<dyn Pool>,
}

impl ProbePlan {
    /// The plan of `spec`, whose validation gave `output` and `predicate`, over `build`.
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for a build that `spec` refuses or whose keys do not compare with the probe's.
    pub(crate) fn try_new(
        spec: &JoinSpec,
        (output, predicate): (Output, Option<Predicate>),
        build: Arc<PreparedBuild>,
        batch_size: usize,
        pool: &Arc<dyn Pool>,
    ) -> Result<Self> {
        if spec.as_of.is_none() {
            spec.validate.check_build(&build)?;
        }
        let probe_schema = spec.probe_schema();
        let probe_keys: Vec<usize> = spec.on.iter().map(|&(_, probe)| probe).collect();
        let key_reader = KeyReader::try_new(&build, &probe_keys, probe_schema)?;
        // A row matches where its keys are one key of the build, from whichever of several columns each is read.
        let mut further = Vec::with_capacity(spec.also.len());
        for &(of, probe) in &spec.also {
            let Some(key) = spec.on.iter().position(|&(key, _)| key == of) else {
                return internal_err!("build column {of} is tested as a key and is none");
            };
            further.push((key, probe));
        }
        let further_keys = KeyReader::further(&build, &probe_keys, &further, probe_schema)?;
        let as_of = spec.as_of.as_ref();
        let as_of =
            as_of.map(|(column, as_of)| AsOfReader::try_new(&build, as_of, *column, probe_schema)).transpose()?;
        // Only the columns that are read are leased, so that those of a file opened unverified are checked alone.
        let tested = predicate.iter().flat_map(|predicate| predicate.columns());
        let tested = tested.filter(|(side, _)| *side == Side::Build).map(|&(_, column)| column);
        let build_columns = LeasedColumns::try_new(&build, output.build_columns(spec.join_type).chain(tested))?;
        Ok(Self {
            build,
            build_columns,
            probe_schema: probe_schema.clone(),
            probe_keys,
            key_reader,
            further_keys,
            as_of,
            join_type: spec.join_type,
            null_aware: spec.null_aware,
            validate: spec.validate,
            predicate,
            output,
            defaults: spec.defaults.clone(),
            batch_size: batch_size.max(1),
            pool: Arc::clone(pool),
        })
    }

    /// Whether visited bits stand for build rows (a predicate decides) or for groups (the key decides).
    pub(crate) fn visits_rows(&self) -> bool {
        self.predicate.is_some()
    }

    /// Number of visited bits that this join needs; `None` where it needs none.
    pub(crate) fn visited_bits(&self) -> Option<usize> {
        let bits = if self.visits_rows() { self.build.num_rows() } else { self.build.num_keys() };
        self.join_type.is_build_driven().then_some(bits)
    }

    /// Number of groups of which no two probe rows may have the same; `None` where they may.
    pub(crate) fn seen_bits(&self) -> Option<usize> {
        self.validate.probe_unique().then(|| self.build.num_keys())
    }

    /// False where the probe side cannot change what comes out.
    pub(crate) fn wants_probe(&self) -> bool {
        match self.join_type {
            JoinType::Inner | JoinType::ProbeSemi | JoinType::BuildSemi | JoinType::BuildOuter => {
                self.build.num_keys() > 0
            }
            JoinType::BuildAnti => self.build.num_keys() > 0 || (self.null_aware && self.build.num_rows() > 0),
            JoinType::ProbeAnti => !(self.null_aware && self.build.has_null_key()),
            JoinType::ProbeOuter | JoinType::FullOuter | JoinType::ProbeMark => true,
        }
    }

    /// True where a probe row without a match changes the output, so that a dynamic filter must keep it.
    pub(crate) fn needs_every_probe_row(&self) -> bool {
        self.join_type.keeps_unmatched_probe() || self.null_aware
    }

    /// The value of a build column where a probe row has no match; `None` for null.
    pub(super) fn default(&self, column: usize) -> Option<&ArrayRef> {
        self.defaults.get(column)?.as_ref()
    }

    /// Which rows become entries.
    pub(crate) fn shape(&self) -> EntryShape {
        let expand = self.join_type.pairs() || self.predicate.is_some();
        let hits = expand || self.join_type != JoinType::ProbeAnti;
        EntryShape { expand, misses: self.join_type.keeps_unmatched_probe(), hits }
    }

    /// Where the groups, or the rows, of the rows of `batch` come from.
    pub(super) fn key_source(&self, batch: &RecordBatch, hits: &mut Hits) -> Result<KeySource> {
        let mut source = |reader: &KeyReader| {
            Ok(match reader.codes(batch, &self.build, hits)? {
                Some(codes) => KeySource::Codes(codes),
                None => KeySource::Keys(reader.read(batch)?),
            })
        };
        let first = source(&self.key_reader)?;
        let keys = KeySource::same(first, self.further_keys.iter().map(source).collect::<Result<_>>()?);
        Ok(match &self.as_of {
            Some(as_of) => KeySource::AsOf(Box::new((keys, as_of.read(batch)?))),
            None => keys,
        })
    }
}
