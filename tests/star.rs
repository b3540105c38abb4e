//! Star joins from Rust: batches pushed and pulled, memory, stopping. That a star is its chain of joins is a property test
//! in `tests/python/test_star.py`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, record_batch};
use prejoin::expr::build;
use prejoin::{
    BuildSpec, Cancel, Collector, Error, JoinType, Leg, MemoryPool, NullEquality, Pool, PrepareOptions, PreparedBuild,
    Result, StarJoin, StarPlan, StarRows, Validate,
};

fn unlimited() -> Arc<dyn Pool> {
    Arc::new(MemoryPool::unlimited())
}

/// Prepared on the first column.
fn prepare(rows: RecordBatch) -> Arc<PreparedBuild> {
    let key = rows.schema().field(0).name().clone();
    let spec = BuildSpec::by_name(rows.schema(), &[key.as_str()], NullEquality::NullEqualsNothing).unwrap();
    let mut collector = Collector::new(spec, &unlimited(), PrepareOptions::default(), Cancel::default());
    collector.push(rows).unwrap();
    collector.finish().unwrap()
}

fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> RecordBatch {
    let values: Vec<i64> = values.into_iter().collect();
    let column: arrow_array::ArrayRef = Arc::new(arrow_array::Int64Array::from(values));
    RecordBatch::try_from_iter([(name, column)]).unwrap()
}

/// Every key of 0..10 twice, and a leg that keeps even ones.
fn star(limit: Option<usize>) -> StarJoin {
    let twice = prepare(
        record_batch!(("k", Int64, [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]), ("v", Int64, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
            .unwrap(),
    );
    let even = prepare(ints("v", [0, 2, 4, 6, 8]));
    let even = Leg { join_type: JoinType::ProbeSemi, ..Leg::new(even) };
    StarJoin::try_new(vec![("twice".into(), Leg::new(twice)), ("even".into(), even)], None, limit).unwrap()
}

fn plan(star: &StarJoin, probe: &RecordBatch, pool: &Arc<dyn Pool>) -> Arc<StarPlan> {
    Arc::new(StarPlan::try_new(star, probe.schema_ref(), pool).unwrap())
}

fn values(batches: &[RecordBatch], column: usize) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(column).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn batches_are_pushed_and_pulled() -> Result<()> {
    let rows: Vec<i64> = (0..20_000).map(|i| i % 7).collect();
    // Key k has the values k and 9 - k, of which one is even.
    let expected: Vec<i64> = rows.iter().filter(|&&k| k < 5).map(|&k| if k % 2 == 0 { k } else { 9 - k }).collect();
    for (limit, batch_size) in [(None, 1_000), (None, 1 << 20), (Some(9_000), 8_192), (Some(0), 8)] {
        let star = star(limit);
        let counted = StarRows::new(&star);
        let probe = ints("k", rows.iter().copied());
        let plan = Arc::new(StarPlan::try_new(&star, probe.schema_ref(), &unlimited())?.counted_in(&counted));
        let mut run = plan.open(batch_size, Cancel::default())?;
        let mut out = Vec::new();
        for start in [0, 10_000] {
            assert_eq!(
                run.wants_input(),
                out.iter().map(RecordBatch::num_rows).sum::<usize>() < limit.unwrap_or(usize::MAX)
            );
            run.push(probe.slice(start, 10_000))?;
            if run.wants_input() {
                assert!(matches!(run.push(probe.clone()), Err(Error::Plan(_))));
            }
            while let Some(batch) = run.next_output()? {
                assert!(batch.num_rows() > 0 && batch.num_rows() <= batch_size);
                out.push(batch);
            }
        }
        let expected = &expected[..limit.unwrap_or(usize::MAX).min(expected.len())];
        assert_eq!(values(&out, 1), expected);
        if limit.is_none() {
            assert_eq!(
                counted.get(),
                [[20_000, 2 * expected.len() as u64], [2 * expected.len() as u64, expected.len() as u64]]
            );
            assert_eq!(values(&[plan.run_once(probe, Cancel::default())?], 1), expected);
        }
    }
    let star = star(None);
    let mut run = plan(&star, &ints("k", []), &unlimited()).open(1, Cancel::default())?;
    assert!(matches!(run.push(ints("other", [1])), Err(Error::Plan(_))));
    assert_eq!(run.next_output()?, None);
    Ok(())
}

#[test]
fn what_validate_remembers_is_charged() -> Result<()> {
    let once = Leg { validate: Validate::OneToMany, ..Leg::new(prepare(ints("k", 0..1_000))) };
    let star = StarJoin::try_new(vec![("once".into(), once)], None, None)?;
    let probe = ints("k", 0..1_000);
    let pool = Arc::new(MemoryPool::new(128));
    let shared: Arc<dyn Pool> = pool.clone();
    let plan = plan(&star, &probe, &shared);
    assert_eq!(pool.reserved(), 0);
    let first = plan.open(10, Cancel::default())?;
    assert_eq!(pool.reserved(), 128);
    assert!(matches!(plan.open(10, Cancel::default()), Err(Error::ResourcesExhausted(_))));
    drop(first);
    assert_eq!(pool.reserved(), 0);
    assert_eq!(plan.run_once(probe, Cancel::default())?.num_rows(), 1_000);
    assert!(matches!(plan.run_once(ints("k", [1, 1]), Cancel::default()), Err(Error::Execution(_))));
    assert_eq!(pool.reserved(), 0);
    Ok(())
}

#[test]
fn a_stop_signal_is_heard_between_pieces() -> Result<()> {
    // A billion pairs, none of which passes.
    let same = prepare(ints("k", vec![1; 1_000]));
    let none = Leg { filter: Some(build("k").ne(build("k"))), ..Leg::new(Arc::clone(&same)) };
    let star = StarJoin::try_new(vec![("same".into(), Leg::new(same)), ("none".into(), none)], None, None)?;
    let probe = ints("k", vec![1; 1_000]);
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let cancel = Cancel::with_hook(move || match counted.fetch_add(1, Ordering::Relaxed) {
        50 => Err(Error::Cancelled),
        _ => Ok(()),
    });
    assert!(matches!(plan(&star, &probe, &unlimited()).run_once(probe, cancel), Err(Error::Cancelled)));
    assert_eq!(polls.load(Ordering::Relaxed), 51);
    Ok(())
}
