"""Batches in from every kind of source, batches out as pyarrow objects."""

from __future__ import annotations

import decimal
import gc
import io
import itertools
import pathlib
import random
import signal
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import prejoin
from foreign import OneArgCapsule, misaligned
from prejoin import _core

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")

TABLE = pa.table({"k": pa.array([1, None, 3, 4], pa.int64()), "s": ["a", None, "zß", ""]})


def columns() -> Iterator[tuple[str, pa.Array]]:
    """One array of 40 rows for each type that pyarrow can make and that we hold."""
    n = 40
    ints = [None if i % 7 == 3 else i for i in range(n)]
    decimals = [None if v is None else decimal.Decimal(v) for v in ints]
    texts = [None if i % 5 == 1 else "é" * (i % 4) + f"text of row {i}"[: i % 17] for i in range(n)]
    types = [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(), pa.decimal128(20, 3), pa.decimal256(40, 3), pa.decimal32(7, 2),
        pa.decimal64(15, 2), pa.date32(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        pa.timestamp("s"), pa.timestamp("us", "Europe/Rome"), pa.timestamp("ns"), pa.duration("s"), pa.duration("ns"),
    ]  # fmt: skip
    for t in types:
        yield str(t), pa.array(decimals if pa.types.is_decimal(t) else ints, t)
    yield "date64", pa.array([None if v is None else v * 86_400_000 for v in ints], pa.int64()).cast(pa.date64())
    yield "month_day_nano", pa.array([None if v is None else (v, v, v) for v in ints], pa.month_day_nano_interval())
    yield "null", pa.nulls(n)
    yield "bool", pa.array([None if v is None else v % 3 == 0 for v in ints])
    for t in [pa.string(), pa.large_string(), pa.string_view()]:
        yield str(t), pa.array(texts, pa.string()).cast(t)
    for t in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        yield str(t), pa.array([None if v is None else v.encode() for v in texts], pa.binary()).cast(t)
    yield "fixed_size_binary", pa.array([None if v is None else b"%04d" % v for v in ints], pa.binary(4))
    lists = [None if v is None else [None, *range(v % 4)] for v in ints]
    yield "list", pa.array(lists, pa.list_(pa.int16()))
    yield "large_list", pa.array(lists, pa.large_list(pa.int16()))
    yield "list_view", pa.array(lists, pa.list_view(pa.int16()))
    yield "large_list_view", pa.array(lists, pa.large_list_view(pa.int16()))
    yield "list of text", pa.array([None if v is None else texts[: v % 4] for v in ints], pa.list_(pa.string()))
    fixed = [None if v is None else [v, None] for v in ints]
    yield "fixed_size_list", pa.array(fixed, pa.list_(pa.int32(), 2))
    structs = [None if v is None else {"x": v, "y": t} for v, t in zip(ints, texts, strict=True)]
    yield "struct", pa.array(structs, pa.struct([("x", pa.int64()), ("y", pa.string())]))
    maps = [None if v is None else [(f"key {i}", i) for i in range(v % 3)] for v in ints]
    yield "map", pa.array(maps, pa.map_(pa.string(), pa.int32()))
    yield "dictionary", pa.array(texts).dictionary_encode()
    yield "list of dictionary", pa.ListArray.from_arrays(list(range(n + 1)), pa.array(texts).dictionary_encode())
    yield (
        "run ends",
        pa.RunEndEncodedArray.from_arrays(pa.array([3, 11, 12, 40], pa.int32()), pa.array([1, None, 3, 1])),
    )
    children = [pa.array(range(n), pa.int64()), pa.array([t or "" for t in texts])]
    ids = pa.array([i % 2 for i in range(n)], pa.int8())
    yield "sparse union", pa.UnionArray.from_sparse(ids, children)
    yield "dense union", pa.UnionArray.from_dense(ids, pa.array(range(n), pa.int32()), children)


COLUMNS = dict(columns())


def same(got: pa.RecordBatch, want: pa.RecordBatch) -> None:
    """Equal values and equal schema; NaN and unions included."""
    assert got.schema.equals(want.schema, check_metadata=True)
    got.validate(full=True)
    assert got.to_pylist() == want.to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_makes_the_round_trip_whole_and_sliced(name: str) -> None:
    column = COLUMNS[name]
    batch = pa.record_batch({"pad": pa.array(range(len(column))), "c": column})
    with_rule = pa.record_batch({"c": column})
    for start, stop in [(0, 40), (0, 0), (3, 3), (1, 9), (8, 33), (13, 40), (39, 40), (16, 24)]:
        same(next(iter(_core.read(batch.slice(start, stop - start)))), batch.slice(start, stop - start))
        same(next(iter(_core.read([with_rule.slice(start, stop - start)]))), with_rule.slice(start, stop - start))
        # An offset of the struct itself, as other producers make.
        rows = pa.StructArray.from_arrays([column], ["c"]).slice(start, stop - start)
        same(
            _core.read_all(Capsules(*rows.__arrow_c_array__())).combine_chunks(),
            pa.table({"c": column.slice(start, stop - start)}),
        )


FLAT = [name for name, c in COLUMNS.items() if c.type.num_fields == 0 and not pa.types.is_dictionary(c.type)]


@pytest.mark.parametrize("seed", range(60))
def test_random_batches_equal_what_pyarrow_reads(seed: int) -> None:
    """Any columns, cut anywhere, at any address: pyarrow is the safe twin of the importer and the exporter."""
    chance = random.Random(seed)
    flat = chance.random() < 0.5
    # Nested columns have 40 rows; flat ones can be repeated.
    times = chance.choice([1, 10, 60]) if flat else 1
    rows = chance.randint(1, 40 * times)
    columns = {}
    for name in chance.choices(FLAT if flat else list(COLUMNS), k=chance.randint(1, 6)):
        column = pa.concat_arrays([COLUMNS[name]] * times) if flat else COLUMNS[name]
        column = column.slice(chance.randint(0, len(column) - rows), rows)
        columns[name] = misaligned(column, chance.randint(0, 63)) if name in FLAT else column
    table = pa.table(columns)
    while table.num_rows:
        cut = chance.randint(1, table.num_rows)
        part, table = table.slice(0, cut), table.slice(cut)
        got = _core.read_all(OneArgCapsule(part.to_reader()) if chance.random() < 0.5 else part)
        got.validate(full=True)
        assert got.to_pylist() == part.to_pylist()


class Capsules:
    """An object that hands out one array, and nothing else."""

    def __init__(self, schema: object, array: object) -> None:
        self.pair = schema, array

    def __arrow_c_array__(self) -> tuple[object, object]:
        return self.pair


def test_metadata_and_extension_types_are_kept() -> None:
    schema = pa.schema(
        [pa.field("u", pa.uuid(), metadata={"a": "b"}), pa.field("j", pa.json_(), nullable=False)], {"made": "here"}
    )
    table = pa.table([pa.array([b"0" * 16], pa.uuid()), pa.array(["{}"], pa.json_())], schema=schema)
    got = _core.read_all(table)
    assert got.schema.equals(schema, check_metadata=True)
    assert got.equals(table)


# ---------------------------------------------------------------- sources


class SameCapsule:
    """Hands out one and the same capsule on every call."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.capsule = reader.__arrow_c_stream__()

    def __arrow_c_stream__(self) -> object:
        return self.capsule


def sources(tmp_path: pathlib.Path) -> Iterator[tuple[str, object]]:
    batches = TABLE.to_batches(max_chunksize=2)
    pq.write_table(TABLE, tmp_path / "t.parquet")
    dataset = ds.dataset(tmp_path / "t.parquet")
    yield "RecordBatch", TABLE.to_batches()[0]
    yield "Table", pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    yield "RecordBatchReader", TABLE.to_reader(2)
    yield "list", batches
    yield "tuple", tuple(batches)
    yield "generator", (b for b in batches)
    yield "iterator of tables", iter([TABLE.slice(0, 3), TABLE.slice(3)])
    yield (
        "generator of frames",
        (f for f in [pd.DataFrame(TABLE.slice(0, 2).to_pandas(types_mapper=pd.ArrowDtype))] * 2),
    )
    yield "Dataset", dataset
    yield "Scanner", dataset.scanner(batch_size=3)
    yield "capsule", OneArgCapsule(TABLE.to_reader(2))
    yield "array capsule", Capsules(*TABLE.to_batches()[0].__arrow_c_array__())
    yield "polars DataFrame", pl.DataFrame(TABLE)
    yield "polars LazyFrame", pl.DataFrame(TABLE).lazy().with_columns(k=pl.col("k") + 0)
    yield "pandas DataFrame", TABLE.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("kind", [name for name, _ in sources(pathlib.Path("/tmp"))])
def test_sources(kind: str, tmp_path: pathlib.Path) -> None:
    source = dict(sources(tmp_path))[kind]
    got = _core.read_all(source)
    text = got.schema.field("s").type
    want = TABLE if kind != "generator of frames" else pa.concat_tables([TABLE.slice(0, 2)] * 2)
    assert got.schema.metadata is None
    assert got.cast(pa.schema([("k", pa.int64()), ("s", text)])).to_pylist() == want.to_pylist()
    if not kind.startswith(("polars", "pandas", "generator of")):
        assert text == pa.string()


@pytest.mark.parametrize("make", ["duckdb", "nanoarrow", "arro3"])
def test_sources_of_other_libraries(make: Any) -> None:
    if make == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.register("t", TABLE)
        relation = connection.sql("select * from t")
        for _ in range(2):
            assert sorted(_core.read_all(relation).to_pylist(), key=str) == sorted(TABLE.to_pylist(), key=str)
    elif make == "nanoarrow":
        nanoarrow = pytest.importorskip("nanoarrow")
        assert _core.read_all(nanoarrow.Array(TABLE.to_batches()[0])).equals(TABLE)
        stream = nanoarrow.ArrayStream(TABLE)
        assert _core.read_all(stream).equals(TABLE)
        with pytest.raises(Exception, match=r"(?i)released|before"):
            _core.read_all(stream)
    else:
        core = pytest.importorskip("arro3.core")
        table = core.Table.from_arrow(TABLE)
        assert _core.read_all(table).equals(TABLE)
        assert _core.read_all(table.to_batches()).equals(TABLE)
        assert _core.read_all(table.to_reader()).equals(TABLE)


def test_a_table_without_columns_keeps_its_rows() -> None:
    assert _core.read_all(TABLE.select([])).num_rows == 4
    assert _core.read_all(TABLE.select([]).to_batches()[0]).num_rows == 4


def test_empty_sources() -> None:
    with pytest.raises(prejoin.PlanError, match=r"pass schema="):
        _core.read_all([])
    assert _core.read_all([], schema=TABLE.schema).equals(TABLE.slice(0, 0))
    assert _core.read_all(iter([]), schema=TABLE.schema).num_rows == 0
    assert _core.read_all(TABLE.slice(0, 0)).schema == TABLE.schema
    assert _core.read_all(pl.DataFrame(TABLE).lazy().filter(pl.col("k") > 10)).num_rows == 0


@pytest.mark.parametrize("bad", [None, 5, "text", b"bytes", {"a": 1}, object(), [1], iter(["x"]), [[TABLE]]])
def test_what_is_no_source_is_named(bad: object) -> None:
    with pytest.raises(TypeError, match=r"NoneType|int|str|bytes|dict|object|list"):
        _core.read_all(bad)


def test_an_asynchronous_source_is_named() -> None:
    async def batches() -> AsyncIterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]

    with pytest.raises(TypeError, match="asynchronous"):
        _core.read_all(batches())


class BoomError(Exception):
    pass


def failing(error: BaseException, after: int = 1) -> Iterator[pa.RecordBatch]:
    yield from itertools.islice(itertools.cycle(TABLE.to_batches()), after)
    raise error


@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: pa.RecordBatchReader.from_batches(TABLE.schema, g)])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_exception_comes_back_as_the_same_object(wrap: Any, after: int) -> None:
    """S8."""
    boom = BoomError("the producer's own")
    with pytest.raises(BoomError) as caught:
        _core.read_all(wrap(failing(boom, after)))
    assert caught.value is boom
    with pytest.raises(BoomError) as caught:
        for _ in _core.read(wrap(failing(boom, after))):
            pass
    assert caught.value is boom


def test_base_exceptions_and_broken_iterators_pass_through() -> None:
    interrupt = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as caught:
        _core.read_all(failing(interrupt))
    assert caught.value is interrupt

    class Broken:
        def __iter__(self) -> Iterator[pa.RecordBatch]:
            raise BoomError("no iterator")

    with pytest.raises(BoomError, match="no iterator"):
        _core.read_all(Broken())


def test_a_polars_error_keeps_its_type() -> None:
    frame = pl.DataFrame({"a": ["x"]}).lazy().with_columns(pl.col("a").cast(pl.Int64))
    with pytest.raises(pl.exceptions.PolarsError):
        _core.read_all(frame)


def test_a_pure_capsule_gives_the_whole_text() -> None:
    """S8."""
    text = "line one\nline two: " + "long " * 500
    source = OneArgCapsule(pa.RecordBatchReader.from_batches(TABLE.schema, failing(BoomError(text))))
    with pytest.raises(prejoin.ExecutionError) as caught:
        _core.read_all(source)
    assert text.strip() in str(caught.value)


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        (pa.record_batch({"k": pa.array([1], pa.int8()), "s": ["x"]}), '"k".*int8|"k".*Int8'),
        (pa.record_batch({"key": pa.array([1]), "s": ["x"]}), '"key".*"k"'),
        (pa.record_batch({"k": pa.array([1])}), "1 columns.*2"),
    ],
)
def test_a_batch_with_another_schema_is_refused(lie: pa.RecordBatch, text: str) -> None:
    good = TABLE.to_batches()[0]
    with pytest.raises(prejoin.PlanError, match=text):
        _core.read_all([good, lie])
    with pytest.raises(prejoin.PlanError, match=text):
        _core.read_all(iter([lie]), schema=TABLE.schema)
    with pytest.raises(prejoin.PlanError, match=text):
        _core.read_all(lie, schema=TABLE.schema)


def test_nullability_and_metadata_of_a_batch_may_differ() -> None:
    """S2."""
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)], {"x": "y"})
    other = pa.record_batch({"k": pa.array([1])})
    assert _core.read_all([other], schema=strict).num_rows == 1


def test_a_null_in_a_column_declared_without_is_named() -> None:
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    with pytest.raises(prejoin.ExecutionError, match="k"):
        _core.read_all(pa.record_batch([pa.array([1, None])], schema=strict))


def test_a_reader_is_refused_the_second_time() -> None:
    for make in (TABLE.to_reader, lambda: (b for b in TABLE.to_batches())):
        reader = make()
        assert _core.read_all(reader).equals(TABLE)
        with pytest.raises(prejoin.PlanError, match="read before"):
            _core.read_all(reader)
    same_capsule = SameCapsule(TABLE.to_reader())
    assert _core.read_all(same_capsule).equals(TABLE)
    with pytest.raises(prejoin.PlanError, match="consumed before"):
        _core.read_all(same_capsule)
    # Refused before a batch was asked for: it may be used once the mistake is repaired.
    reader = TABLE.to_reader()
    with pytest.raises(prejoin.PlanError):
        _core.read_all(reader, schema=pa.schema([("k", pa.int8())]))
    assert _core.read_all(reader).equals(TABLE)


def test_an_iterator_is_not_asked_after_its_end_or_error() -> None:
    calls: list[int] = []

    class Once:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> pa.RecordBatch:
            calls.append(1)
            if len(calls) == 1:
                return TABLE.to_batches()[0]
            raise BoomError if len(calls) == 2 else AssertionError("asked again")

    reader = _core.read(Once())
    assert reader.read_next_batch().num_rows == 4
    with pytest.raises(BoomError):
        reader.read_next_batch()
    with pytest.raises(StopIteration):
        reader.read_next_batch()
    assert len(calls) == 2


class PythonFiles(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """A filesystem whose files are read by Python code."""

    def __init__(self) -> None:
        self.local = pyarrow.fs.LocalFileSystem()

    def get_type_name(self) -> str:
        return "python files"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self.local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self.local.get_file_info(selector)

    def open_input_stream(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(io.BytesIO(pathlib.Path(path).read_bytes()), mode="r")

    open_input_file = open_input_stream

    def refuse(self, *_: object) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = refuse
    move = copy_file = open_output_stream = open_append_stream = refuse


def test_a_source_over_a_python_filesystem_does_not_deadlock(tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"a": list(range(10_000))}), tmp_path / "t.parquet", row_group_size=1000)
    filesystem = pyarrow.fs.PyFileSystem(PythonFiles())
    dataset = ds.dataset(str(tmp_path / "t.parquet"), filesystem=filesystem, format="parquet")
    assert _core.read_all(dataset).num_rows == 10_000
    assert _core.read_all(OneArgCapsule(dataset.scanner().to_reader())).num_rows == 10_000
    assert sum(b.num_rows for b in _core.read(OneArgCapsule(dataset.scanner().to_reader()))) == 10_000


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize(
    "name",
    [
        "int16",
        "int64",
        "double",
        "decimal128(20, 3)",
        "decimal256(40, 3)",
        "bool",
        "string",
        "large_string",
        "string_view",
    ],
)
@pytest.mark.parametrize("shift", [1, 8])
def test_misaligned_buffers_are_copied_after_they_were_admitted(name: str, shift: int) -> None:
    """S9."""
    array = pa.chunked_array([COLUMNS[name]] * 100).combine_chunks()
    moved = misaligned(array, shift)
    table = pa.table({"c": moved.slice(5, 3000)})
    pool = prejoin.MemoryPool()
    assert _core.read_all(table, pool=pool).equals(pa.table({"c": array.slice(5, 3000)}))
    assert pool.reserved == 0
    width = 16 if "view" in name else {"string": 4, "large_string": 8, "bool": 1}.get(name) or array.type.bit_width // 8
    alignment = min(width, 16)
    copied = (3000 + ("string" in name and "view" not in name)) * width if shift % alignment else 0
    assert copied <= pool.peak <= copied + 64
    if copied:
        with pytest.raises(prejoin.ResourcesExhausted, match="alignment copies"):
            _core.read_all(table, pool=prejoin.MemoryPool(copied - 1))


def test_slices_of_a_misaligned_column_copy_their_own_rows_only() -> None:
    """S9."""
    table = pa.table({"c": misaligned(pa.array(range(65_536)), 1)})
    pool = prejoin.MemoryPool()
    assert (
        _core.read_all([table.slice(i, 32).to_batches()[0] for i in range(0, 65_536, 32)], pool=pool).num_rows == 65_536
    )
    assert pool.peak == 65_536 * 8


def test_everything_is_given_back() -> None:
    array = pa.array(range(100_000))
    table = pa.table({"a": array, "s": array.cast(pa.string())})
    del array
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in range(1000):
        got = _core.read_all(table)
        assert next(iter(_core.read(OneArgCapsule(table.to_reader(10))))).num_rows == 10
    assert got.column(0).chunk(0).buffers()[1].address == table.column(0).chunk(0).buffers()[1].address
    del table
    gc.collect()
    # The result shares the memory and keeps it; pyarrow's pool also holds what it notes about an export.
    assert before <= pa.total_allocated_bytes() < before + 4096
    assert got.column(0)[99_999].as_py() == 99_999
    del got
    gc.collect()
    assert pa.total_allocated_bytes() < before - 800_000


def test_python_objects_of_a_source_go_with_it() -> None:
    class Batches:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> pa.RecordBatch:
            return TABLE.to_batches()[0]

    source = Batches()
    gone = weakref.ref(source)
    reader = _core.read(source)
    reader.read_next_batch()
    del source
    assert gone() is not None
    del reader
    assert gone() is None


def test_one_lazy_result_read_by_many_threads_gives_each_batch_once() -> None:
    reader = _core.read(TABLE.to_batches()[0] for _ in range(200))
    rows: list[int] = []
    failures: list[BaseException] = []

    def work() -> None:
        while True:
            try:
                rows.append(reader.read_next_batch().num_rows)
            except StopIteration:  # noqa: PERF203
                return
            except BaseException as error:
                # The one thing that may happen; nothing is lost by it.
                if "being read already" not in str(error):
                    failures.append(error)
                    return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert sum(rows) == 800


# ---------------------------------------------------------------- signals


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
def test_a_signal_handler_ends_endless_work_with_its_own_exception() -> None:
    stop = BoomError("Ctrl-C")

    def handle(*_: object) -> None:
        raise stop

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(BoomError) as caught:
            # No Python code runs while it is read, so nobody but us can notice the signal.
            _core.read_all(itertools.repeat(TABLE.slice(0, 1).to_batches()[0]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value is stop


# ---------------------------------------------------------------- the other classes


def test_errors_have_two_bases_and_live_in_the_package() -> None:
    for name, base in [
        ("PlanError", ValueError),
        ("ResourcesExhausted", MemoryError),
        ("ExecutionError", RuntimeError),
        ("NotSupported", NotImplementedError),
        ("InternalError", RuntimeError),
    ]:
        error = getattr(prejoin, name)
        assert issubclass(error, prejoin.PrejoinError)
        assert issubclass(error, base)
        assert error.__module__ == "prejoin"


def test_pool_and_config() -> None:
    pool = prejoin.MemoryPool(100)
    assert (pool.limit, pool.reserved, pool.peak) == (100, 0, 0)
    assert prejoin.MemoryPool().limit is None
    assert repr(pool) == "MemoryPool(limit=100, reserved=0, peak=0)"
    config = prejoin.Config(in_list_max_values=7)
    assert config == prejoin.Config(in_list_max_values=7) != prejoin.Config()
    assert "in_list_max_values=7" in repr(config)
    with pytest.raises(prejoin.PlanError, match="NaN"):
        prejoin.Config(perfect_hash_min_density=float("nan"))
    with pytest.raises(TypeError, match="a bool was given"):
        prejoin.Config(perfect_hash_min_density=True)
    assert (prejoin.MemoryPool(2**64 - 1).limit, prejoin.MemoryPool().limit) == (2**64 - 1, None)
    with pytest.raises(AttributeError):
        config.in_list_max_values = 8  # type: ignore[misc]
    with pytest.raises(prejoin.PlanError, match="limit is a whole number"):
        prejoin.MemoryPool(-1)
