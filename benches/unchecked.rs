//! What Arrow's checks would take where this crate builds arrays without them, since they come from valid arrays: leased columns
//! (`prepare/lease.rs`), dictionaries that were concatenated (`columns/concat/encoded.rs`) and imported text, which was checked
//! once already (`python/interchange/import.rs`).
//!
//! `cargo bench --bench unchecked`; one column of 65,536 rows each, as a probe batch or an output batch has.

use std::hint::black_box;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_array::{Array, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use criterion::{Criterion, criterion_group, criterion_main};

const ROWS: usize = 65_536;

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("unchecked");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);

    let text = StringArray::from_iter_values((0..ROWS).map(|i| format!("a value of 23 bytes {:03}", i % 1000)));
    let keys = Int32Array::from_iter_values((0..ROWS as i32).map(|i| i % 1000));
    let values = StringArray::from_iter_values((0..1000).map(|i| format!("value {i}")));
    let dictionary = DictionaryArray::<Int32Type>::new(keys, std::sync::Arc::new(values));
    for (name, data) in [("text", text.to_data()), ("dictionary", dictionary.to_data())] {
        let builder = |data: &ArrayData| data.clone().into_builder();
        group.bench_function(format!("{name}/checked"), |b| b.iter(|| black_box(builder(&data).build().unwrap())));
        // SAFETY: the data of a valid array.
        let unchecked = || unsafe { builder(&data).build_unchecked() };
        group.bench_function(format!("{name}/unchecked"), |b| b.iter(|| black_box(unchecked())));
    }

    let nulls = NullBuffer::from_iter((0..ROWS).map(|i| i % 7 > 0));
    group.bench_function("nulls/counted", |b| b.iter(|| black_box(NullBuffer::new(nulls.inner().clone()))));
    // SAFETY: the same bits, so the same number of them is unset.
    let known = || unsafe { NullBuffer::new_unchecked(nulls.inner().clone(), nulls.null_count()) };
    group.bench_function("nulls/known", |b| b.iter(|| black_box(known())));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
