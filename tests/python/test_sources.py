"""Every kind of source as build and as probe side, with the real libraries."""

from __future__ import annotations

import gc
import pathlib
import pickle
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import arro3.core
import duckdb
import nanoarrow as na
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import prejoin
from foreign import OneArgCapsule, as_table

NUMBERS = pa.table({"k": pa.array([3, 1, None, 1], pa.int64()), "v": pa.array([30, 10, 0, 11], pa.int64())})
TEXTS = pa.table({"k": pa.array([3, 1], pa.int64()), "s": pa.array(["drei", "eins"])})
Make = Callable[[pa.Table, pathlib.Path], Any]


def parquet(table: pa.Table, path: pathlib.Path) -> str:
    pq.write_table(table, path / "t.parquet")
    return str(path / "t.parquet")


# Kind -> how it is made, and what is said where it is read a second time; None where it can be.
SOURCES: dict[str, tuple[Make, str | None]] = {
    "RecordBatch": (lambda t, _: t.combine_chunks().to_batches()[0], None),
    "Table": (lambda t, _: t, None),
    "chunked Table": (lambda t, _: pa.concat_tables([t.slice(0, 1), t.slice(1)]), None),
    "RecordBatchReader": (lambda t, _: t.to_reader(1), "was read before"),
    "list of batches": (lambda t, _: t.to_batches(1), None),
    "iterator of batches": (lambda t, _: iter(t.to_batches(1)), "was read before"),
    "generator of frames": (lambda t, _: (pl.DataFrame(b) for b in t.to_batches(1)), "was read before"),
    "Dataset": (lambda t, path: ds.dataset(parquet(t, path)), None),
    "Scanner": (lambda t, path: ds.dataset(parquet(t, path)).scanner(columns=t.column_names), None),
    "polars DataFrame": (lambda t, _: pl.from_arrow(t), None),
    "polars LazyFrame": (lambda t, _: pl.DataFrame(t).lazy(), None),
    "pandas DataFrame": (lambda t, _: t.to_pandas(types_mapper=pd.ArrowDtype), None),
    "duckdb relation": (lambda t, _: duckdb.connect().from_arrow(t), None),
    "nanoarrow Array": (lambda t, _: na.Array(t.combine_chunks().to_batches()[0]), None),
    "nanoarrow stream": (lambda t, _: na.ArrayStream(t.to_reader()), "is released"),
    "arro3 RecordBatch": (lambda t, _: arro3.core.RecordBatch.from_arrow(t.combine_chunks().to_batches()[0]), None),
    "arro3 Table": (lambda t, _: arro3.core.Table.from_arrow(t), None),
    "capsule": (lambda t, _: OneArgCapsule(t), None),
    "prejoin Source": (lambda t, _: prejoin.Source(t, ordering=["k"]), None),
    "partitioned Source": (lambda t, _: prejoin.Source.partitioned([t.slice(0, 1), t.slice(1).to_batches()]), None),
}
kinds = pytest.mark.parametrize("kind", SOURCES)


@kinds
def test_as_a_build_side(kind: str, tmp_path: pathlib.Path, pool: prejoin.MemoryPool) -> None:
    make, _ = SOURCES[kind]
    build = prejoin.prepare(make(NUMBERS, tmp_path), "k", pool=pool)
    assert (build.num_rows, build.num_keys, build.is_unique) == (4, 2, False)
    assert build.to_table().to_pydict() == NUMBERS.to_pydict()
    assert pool.reserved == build.reserved_bytes
    join = prejoin.HashJoin(build.schema, NUMBERS.schema, "k")
    again = join.prepare_build(make(NUMBERS, tmp_path), pool=pool)
    assert again.to_table().equals(build.to_table())


@kinds
def test_as_a_probe_side(kind: str, tmp_path: pathlib.Path) -> None:
    """The result is lazy, or a table, a batch or a frame, by the kind of the probe side; never other rows."""
    make, once = SOURCES[kind]
    build = prejoin.prepare(pa.table({"k": [1, 3], "w": [100, 300]}), "k")
    result = prejoin.join(make(NUMBERS, tmp_path), build)
    table = as_table(result)
    assert table.to_pydict() == {"k": [3, 1, 1], "v": [30, 10, 11], "w": [300, 100, 100]}
    join = prejoin.HashJoin(build.schema, make(NUMBERS, tmp_path), "k", projection=["probe.v"])
    join = join.with_prepared_build(build)
    assert join.execute().read_all()["v"].to_pylist() == [30, 10, 11]
    if once:
        with pytest.raises((prejoin.PlanError, RuntimeError), match=once):
            join.execute().read_all()
    else:
        assert join.execute().read_all()["v"].to_pylist() == [30, 10, 11]


@kinds
def test_text(kind: str, tmp_path: pathlib.Path) -> None:
    """Strings come as Utf8, as views from polars, as large strings from pandas."""
    make, _ = SOURCES[kind]
    build = prejoin.prepare(make(TEXTS, tmp_path), "k")
    assert build.to_table().to_pydict() == TEXTS.to_pydict()
    result = prejoin.join(make(TEXTS, tmp_path), prejoin.prepare(NUMBERS, "k"))
    table = as_table(result)
    assert table["s"].to_pylist() == ["drei", "eins", "eins"]


class OwnError(Exception):
    pass


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield NUMBERS.to_batches()[0]
    raise error


WRAPS: dict[str, Callable[[Exception], Any]] = {
    "iterator": failing,
    "reader": lambda error: pa.RecordBatchReader.from_batches(NUMBERS.schema, failing(error)),
    "Source": lambda error: prejoin.Source(lambda _: failing(error), schema=NUMBERS.schema, partitions=1),
    "partitioned": lambda error: prejoin.Source.partitioned([NUMBERS, failing(error)], schema=NUMBERS.schema),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_same_exception_comes_back_from_everywhere(wrap: str, pool: prejoin.MemoryPool) -> None:
    """S8, S20: from prepare, prepare_build, join and execute, on either side; the pool is as before."""
    error = OwnError("the producer's own")
    build = prejoin.prepare(NUMBERS, "k")
    ordinary = prejoin.HashJoin(NUMBERS.schema, NUMBERS, "k")
    make = WRAPS[wrap]
    calls: list[Callable[[], Any]] = [
        lambda: prejoin.prepare(make(error), "k", pool=pool),
        lambda: ordinary.prepare_build(make(error), pool=pool),
        lambda: prejoin.join(NUMBERS, make(error), "k"),
        lambda: prejoin.join(make(error), build).read_all(),
        lambda: ordinary.replace(build=make(error)).execute(pool=pool).read_all(),
        lambda: ordinary.replace(probe=make(error)).with_prepared_build(build).execute(pool=pool).read_all(),
        lambda: ordinary.replace(build=make(error)).open(pool=pool),
        lambda: ordinary.replace(build=make(error))(NUMBERS.to_batches()[0], pool=pool),
    ]
    for call in calls:
        with pytest.raises(OwnError) as caught:
            call()
        assert caught.value is error
        caught.value.__traceback__ = None
        del caught
        gc.collect()
        assert pool.reserved == 0


def test_an_error_opening_a_partition_comes_back() -> None:
    """Also a base exception, and a partition of another kind."""
    build = prejoin.prepare(NUMBERS, "k")

    def opened(result: Any) -> Any:
        def give(_: int) -> Any:
            if isinstance(result, BaseException):
                raise result
            return result

        source = prejoin.Source(give, schema=NUMBERS.schema, partitions=1)
        return prejoin.join(source, build).read_all()

    leave = SystemExit(3)
    with pytest.raises(SystemExit) as caught:
        opened(leave)
    assert caught.value is leave
    with pytest.raises(TypeError, match="int was given"):
        opened(5)
    with pytest.raises(prejoin.PlanError, match=r'"v".*Int32'):
        opened(NUMBERS.cast(pa.schema([("k", pa.int64()), ("v", pa.int32())])))
    assert opened(NUMBERS.to_pandas(types_mapper=pd.ArrowDtype)).num_rows == 5


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: prejoin.Source(5), TypeError, "int was given"),  # type: ignore[arg-type]
        (lambda: prejoin.Source(lambda _: NUMBERS), prejoin.PlanError, "needs schema= and partitions="),
        (lambda: prejoin.Source(lambda _: NUMBERS, partitions=2), prejoin.PlanError, "needs schema="),
        (lambda: prejoin.Source([NUMBERS], partitions=2), prejoin.PlanError, "partitions=2, but there are 1"),
        (lambda: prejoin.Source.partitioned([]), prejoin.PlanError, "at least one partition"),
        (lambda: prejoin.Source.partitioned(5), TypeError, "int was given"),  # type: ignore[arg-type]
        (lambda: prejoin.Source(NUMBERS, ordering=["zz"]), prejoin.PlanError, 'ordering names column "zz".*"k", "v"'),
        (lambda: prejoin.Source(NUMBERS, ordering=[2]), prejoin.PlanError, "ordering names column 2, there are 2"),
        (lambda: prejoin.Source(NUMBERS, equal=["kv"]), TypeError, "equal lists pairs"),  # type: ignore[list-item]
        (lambda: prejoin.Source(NUMBERS, schema=TEXTS.schema), prejoin.PlanError, '"v"'),
        (lambda: prejoin.Source(NUMBERS, schema=5), TypeError, "a schema is"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_source_is_named(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_source_tells_what_it_is() -> None:
    source = prejoin.Source.partitioned([NUMBERS, NUMBERS.to_batches()], ordering="v", equal=[("k", 1)])
    assert (source.partitions, source.ordering, source.equal) == (2, [1], [(0, 1)])
    assert source.schema == NUMBERS.schema
    assert repr(source) == "Source(k: Int64, v: Int64; partitions=2, ordering=[1], equal=[(0, 1)])"
    assert source.to_reader().read_all().num_rows == source.to_reader().read_all().num_rows == 8


def test_objects_of_a_source_go_with_the_join() -> None:
    """S4, S27: preparing keeps nothing of its source; attaching lets go of the join's own."""

    class Batches(list[pa.RecordBatch]):
        pass

    build, probe = Batches(NUMBERS.to_batches()), Batches(NUMBERS.to_batches())
    gone = [weakref.ref(build), weakref.ref(probe)]
    join = prejoin.HashJoin(build, probe, "k")
    prepared = join.prepare_build(build)
    task = join.with_prepared_build(prepared)
    reader = task.execute()
    del build, join
    gc.collect()
    assert gone[0]() is None
    assert reader.read_all().num_rows == 5
    del probe, task, reader
    gc.collect()
    assert gone[1]() is None
    assert prepared.num_rows == 4


@pytest.mark.parametrize("module", ["polars", "pandas", "pyarrow.dataset", "arro3.core"])
@pytest.mark.parametrize("stub", [types.ModuleType("stub"), None, object()])
def test_modules_that_are_stubbed_blocked_or_half_imported(monkeypatch: Any, module: str, stub: Any) -> None:
    """A class is looked for in them, never asked of them; frames of the real library are known all the same."""
    build = prejoin.prepare(TEXTS, "k")
    monkeypatch.setitem(sys.modules, module, stub)
    for probe in (NUMBERS.to_reader(), iter(NUMBERS.to_batches()), NUMBERS.to_batches(), ds.dataset(NUMBERS)):
        joined = prejoin.join(probe, build)
        table = joined if isinstance(joined, pa.Table) else joined.read_all()
        assert table["s"].to_pylist() == ["drei", "eins", "eins"]
    if module == "polars":
        assert isinstance(prejoin.join(pl.DataFrame({"k": [3]}), build), pl.DataFrame)


class Recorded(pl.LazyFrame):
    """Knows which columns were asked for."""

    asked: list[str] = []  # noqa: RUF012

    def select(self, *exprs: Any, **named: Any) -> pl.LazyFrame:
        self.asked.extend(exprs[0])
        return super().select(*exprs, **named)


def test_a_scan_reads_the_columns_that_are_used(tmp_path: pathlib.Path) -> None:
    """A file whose unused column cannot be decoded: the scan never meets it."""
    (tmp_path / "t.csv").write_text("k,v,bad\n3,30,1\n1,10,x\n")
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("bad", pa.int64())])
    data = ds.dataset(tmp_path / "t.csv", schema=schema, format="csv")
    build = prejoin.prepare(TEXTS, "k")
    assert prejoin.join(data, build, select=["v", "s"]).read_all().to_pydict() == {"v": [30, 10], "s": ["drei", "eins"]}
    assert prejoin.join(data, build, select=["s"], where="probe.v > 10").read_all()["s"].to_pylist() == ["drei"]
    with pytest.raises(pa.ArrowInvalid):
        prejoin.join(data, build).read_all()
    frame = Recorded({"k": [3, 1], "v": [1, 2], "w": [3, 4]})
    assert prejoin.join(frame, build, select=["v"]).read_all()["v"].to_pylist() == [1, 2]
    assert Recorded.asked == ["k", "v"]


class Service:
    """Owns a join and is its own source."""

    def __init__(self, pool: prejoin.MemoryPool, give: Callable[[Any], Any]) -> None:
        self.build = prejoin.prepare(TEXTS, "k", pool=pool)
        self.join = prejoin.HashJoin(TEXTS.schema, give(self), on="k").with_prepared_build(self.build)

    def scan(self, _: int) -> pa.Table:
        return NUMBERS

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return NUMBERS.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("run", [False, True])
@pytest.mark.parametrize(
    "give",
    [
        lambda service: prejoin.Source(service.scan, schema=NUMBERS.schema, partitions=1),
        lambda service: service,
        lambda service: prejoin.Source(service),
        lambda service: prejoin.Source.partitioned([service, service]),
    ],
)
def test_a_service_that_is_its_own_source_is_collected(give: Callable[[Any], Any], run: bool) -> None:
    """Its build goes too, and gives its charge back."""
    pool = prejoin.MemoryPool(None)
    service = Service(pool, give)
    gc.collect()
    if run:
        assert service.join.execute().read_all().num_rows > 0
    gone = weakref.ref(service)
    assert gc.is_tracked(service.join)
    del service
    gc.collect()
    assert gone() is None
    assert pool.reserved == 0


@pytest.mark.parametrize("ordinary", [False, True])
def test_a_service_whose_scan_fails_is_collected_with_the_exception(ordinary: bool) -> None:
    """The traceback leads from the exception to the service, which keeps the exception."""
    pool = prejoin.MemoryPool(None)

    class Failing:
        def __init__(self) -> None:
            source = prejoin.Source(self.scan, schema=NUMBERS.schema, partitions=1)
            if ordinary:
                self.join = prejoin.HashJoin(source, NUMBERS, on="k")
            else:
                self.build = prejoin.prepare(TEXTS, "k", pool=pool)
                self.join = prejoin.HashJoin(TEXTS.schema, source, on="k").with_prepared_build(self.build)
            self.error: BaseException | None = None

        def scan(self, _: int) -> pa.Table:
            raise OwnError

        def run(self) -> None:
            try:
                self.join.execute(pool=pool).read_all()
            except OwnError as error:
                self.error = error

    service = Failing()
    service.run()
    assert isinstance(service.error, OwnError)
    gone = weakref.ref(service)
    del service
    gc.collect()
    assert gone() is None
    assert pool.reserved == 0


def test_a_service_with_its_own_reader_is_collected_once_that_is_read() -> None:
    pool = prejoin.MemoryPool(None)
    service = Service(pool, lambda service: prejoin.Source(service.scan, schema=NUMBERS.schema, partitions=1))
    reader = service.join.execute()
    vars(service)["reader"] = reader
    assert reader.read_all().num_rows > 0
    gone = weakref.ref(service)
    del service, reader
    gc.collect()
    assert gone() is None
    assert pool.reserved == 0


def test_an_unpickled_join_is_collected() -> None:
    """It holds its source once, in the place that the collector sees."""
    join = pickle.loads(pickle.dumps(prejoin.HashJoin(TEXTS.schema, Pickled(), on="k")))
    source = join.__reduce__()[1][2].__getnewargs_ex__()[0][0]
    assert type(source) is Pickled
    source.join = join
    gone = weakref.ref(source)
    del join, source
    gc.collect()
    assert gone() is None


class Pickled:
    """Rows that pickle, and may come to hold the join that reads them."""

    join: Any = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return NUMBERS.__arrow_c_stream__(requested_schema)


def test_classes_that_can_lead_back_to_themselves_are_tracked() -> None:
    """All others hold builds, pools, schemas and numbers, none of which leads to an object of the user."""
    build = prejoin.prepare(TEXTS, "k")
    join = prejoin.HashJoin(TEXTS, NUMBERS, "k")
    leads = [
        prejoin.Source(NUMBERS),
        join,
        prejoin.DynamicFilter(NUMBERS, "k"),
        prejoin.Leg(build),
        prejoin.StarJoin([build]),
        prejoin.BuildCache(),
    ]
    others = [
        build,
        build.share(),
        join.open(),
        prejoin.Config(),
        prejoin.MemoryPool(None),
        prejoin.col("probe.k"),
    ]
    classes = {value for value in vars(prejoin).values() if isinstance(value, type)}
    assert {type(one) for one in leads + others} == {one for one in classes if not issubclass(one, Exception)}
    assert all(gc.is_tracked(one) for one in leads)


class Capsules:
    """A batch in capsules made before; notes when it is asked for them."""

    def __init__(self, batch: pa.RecordBatch, asked: Callable[[], None]) -> None:
        self.capsules, self.asked = batch.__arrow_c_array__(), asked

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        self.asked()
        return self.capsules


def text_that_ends_badly() -> pa.RecordBatch:
    """Its import reads 32 MB of text, and fails at the last byte."""
    size = 1 << 24
    data = "\u00e4".encode() * (size - 1) + b"a\xff"
    offsets = pa.array([0, size, 2 * size], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(data))
    return pa.RecordBatch.from_arrays([texts], ["k"])


TEXT_BUILD = prejoin.prepare(pa.table({"k": ["a"]}), "k")


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: prejoin.join(rows, TEXT_BUILD),
        lambda rows: prejoin.prepare(rows, "k"),
        lambda rows: prejoin.join([rows], TEXT_BUILD),
        lambda rows: prejoin.HashJoin(TEXT_BUILD.schema, TEXT_BUILD.schema, "k").with_prepared_build(TEXT_BUILD)(rows),
        lambda rows: prejoin.HashJoin(TEXT_BUILD.to_table(), TEXT_BUILD.schema, "k").open().push(rows),
        lambda rows: prejoin.DynamicFilter(TEXT_BUILD.schema, "k").evaluate(rows),
    ],
)
def test_a_long_import_lets_other_threads_run(call: Callable[[Any], Any]) -> None:
    """Python never takes its lock away here: another thread runs if it is given up, and only then."""
    steps, at_call, stop = 0, -1, False

    def count() -> None:
        nonlocal steps
        while not stop:
            steps += 1
            time.sleep(0)

    def asked() -> None:
        nonlocal at_call
        at_call = steps

    rows = Capsules(text_that_ends_badly(), asked)
    other = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        other.start()
        with pytest.raises((prejoin.ExecutionError, RuntimeError), match=r"(?i)utf-8") as caught:
            call(rows)
        assert at_call >= 0
        assert steps > at_call
        assert "k" in str(caught.value)
    finally:
        stop = True
        sys.setswitchinterval(interval)
        other.join()


def test_a_lazy_frame_of_an_older_polars_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 1.34 it does not give batches."""
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    frame = pl.DataFrame(NUMBERS).lazy()
    assert prejoin.prepare(frame, "k").num_rows == 4
    joined = prejoin.join(frame, prejoin.prepare(TEXTS, "k"), select=["s"])
    assert joined.read_all()["s"].to_pylist() == ["drei", "eins", "eins"]
