"""Rows as dicts: joins and lookups that take and give lists of dicts give what the same rows as a batch give."""

from __future__ import annotations

import _thread
import copy
import datetime as dt
import gc
import math
import operator
import threading
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import Leg, PlanError, StarJoin
from test_star import Case
from test_types import FAMILIES, PAYLOADS, column

Rows = list[dict[str, Any]]
KINDS: list[Any] = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]
ZONES = ["UTC", "Europe/Berlin", "+07:30"]
MORE: list[tuple[pa.DataType, list[Any]]] = [
    *((pa.timestamp(unit, zone), [0, 1_700_000_000, 1_698_540_000]) for unit in ("s", "ms", "us") for zone in ZONES),
    *((pa.timestamp(unit), [-1, 10**9 + 1]) for unit in ("s", "ms", "us", "ns")),
    *((pa.duration(unit), [-1, 86_400_001]) for unit in ("s", "ms", "us", "ns")),
    (pa.date64(), [-86_400_000, 86_400_000 * 365]),
    (pa.date32(), [-719_162, 2_932_896]),
    (pa.time32("ms"), [86_399_999]),
    (pa.decimal32(5, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00")]),
    (pa.decimal64(12, 0), [Decimal(10**11)]),
    (pa.decimal128(5, -2), [Decimal("1.2E+4"), Decimal(0)]),
    (pa.decimal128(38, 37), [Decimal("1e-37")]),
    (pa.decimal256(76, 10), [Decimal(10**60)]),
    (pa.uint64(), [2**64 - 1]),
    (pa.float32(), [0.1, math.inf]),
    (pa.large_list(pa.decimal128(4, 1)), [[Decimal("1.5"), None], []]),
    (pa.list_(pa.list_(pa.timestamp("s", "Asia/Tokyo"), 2)), [[[0, None], None], []]),
    (pa.run_end_encoded(pa.int32(), pa.timestamp("us", "UTC")), [0]),
    (pa.map_(pa.int8(), pa.list_(pa.string())), [[(1, ["a"]), (2, None)]]),
    (pa.bool8(), [0, 1]),
]


def same(a: Any, b: Any) -> bool:
    """Equal in type, value and, where it has one, time zone; NaN is NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dt.datetime):
        return bool(a == b and a.tzinfo == b.tzinfo and a.fold == b.fold)
    return repr(a) == repr(b)


def columns_of_every_type() -> list[pa.Array]:
    parts = [column(pa.uuid(), [bytes(range(16)), None]), column(pa.dictionary(pa.int8(), pa.string()), ["x", None])]
    found = [
        pa.StructArray.from_arrays(parts, ["u", "d"]).take(pa.array([0, None, 1, 0])),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.int16()), pa.array([[1, None], []])),
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, None, 4]), pa.array(list("abcd"))]
        ),
    ]
    types = [*PAYLOADS, *MORE]
    for family in FAMILIES.values():
        types += [(t, [item for item in family.values if family.fits(plain(t), item)]) for t in family.types]
    return found + [column(data_type, [None, *items, None, *items[:1]]) for data_type, items in types]


def plain(data_type: pa.DataType) -> pa.DataType:
    encoded = pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type)
    return data_type.value_type if encoded else data_type


@pytest.mark.parametrize("values", columns_of_every_type(), ids=lambda values: str(values.type))
def test_values_are_those_of_to_pylist(values: pa.Array) -> None:
    """Of every type, with nulls, of a slice, in an order of its own, each row several times."""
    table = pa.table({"id": range(len(values)), "v": values, "w": range(len(values))}).slice(1)
    build = prejoin.prepare(table, "id")
    ids = [3, 1, 1, 99, *range(len(values)), 2, 2, 2, 1]
    rows = [{"id": id, "at": at} for at, id in enumerate(ids)]
    batch = pa.RecordBatch.from_pylist(rows)
    kinds: list[Any] = ["inner"] if pa.types.is_union(values.type) else ["inner", "left", "full"]
    for how in kinds:
        expected = prejoin.join(batch, build, how=how).to_pylist()
        assert same(prejoin.join(rows, build, how=how), expected), how
    assert same(StarJoin([build])(rows), StarJoin([build])(batch).to_pylist())
    held = [id for id in ids if id in build]
    whole = table.to_pylist()
    assert same([build.get(id) for id in held], [whole[id - 1] for id in held])
    assert same(build.lookup_rows(held, ["w", "v"]), [{"w": id, "v": whole[id - 1]["v"]} for id in held])
    if not pa.types.is_union(values.type):
        assert same(build.lookup_rows(ids), build.lookup(ids).to_pylist())


@pytest.mark.parametrize("family", FAMILIES)
def test_keys_of_every_type(family: str) -> None:
    """Values of Python match as keys that were read from them match."""
    for data_type in FAMILIES[family].types:
        items = [item for item in FAMILIES[family].values if FAMILIES[family].fits(plain(data_type), item)]
        table = pa.table({"k": column(data_type, [*items[:-1], None]), "v": range(len(items))})
        for null_equal in (False, True):
            build = prejoin.prepare(table, "k", null_equal=null_equal, keep="first")
            rows: Rows = [{"k": item, "n": n} for n, item in enumerate([*items, None])]
            found = prejoin.join(rows, build, how="left")
            expected = build.lookup([row["k"] for row in rows], ["v"], keep="first").to_pylist()
            assert same(found, [row | value for row, value in zip(rows, expected, strict=True)]), (
                data_type,
                null_equal,
            )


def rows_of(table: pa.Table, random: Random, ragged: bool) -> Rows:
    """The rows as dicts; `ragged` ones lack some names that are null."""
    rows: Rows = table.to_pylist()
    if ragged:
        for row in rows:
            for name in [name for name in row if row[name] is None and random.random() < 0.7]:
                del row[name]
    return rows


def without(found: Rows, expected: Rows) -> None:
    """The same rows, but for names without a value that a row may lack."""
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert {name: mine.get(name) for name in other} == other
        assert set(mine) <= set(other)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_a_star_of_rows_is_that_of_their_batch(seed: int) -> None:
    """B10. Random legs, kinds, duplicates, nulls, conditions, keys of earlier legs and clashing names."""
    random = Random(seed)
    case = Case(random)
    # Without a value in a column nothing says what it is.
    if not case.legs or case.probe.num_rows == 0:
        return
    rows = case.probe.to_pylist()
    before = copy.deepcopy(rows)
    addresses = random.sample(list(case.names), random.randint(0, len(case.names)))
    select = {f"c{i}": address for i, address in enumerate(addresses)}
    for star in (
        StarJoin(case.legs),
        StarJoin(case.legs, limit=random.choice([0, 1, 3])),
        StarJoin(case.legs, select=select),
    ):
        expected = star(case.probe).to_pylist()
        assert [list(row) for row in star(rows)] == [list(row) for row in expected]
        assert star(rows) == expected
        ragged = rows_of(case.probe, random, True)
        if {name for row in ragged for name in row} == set(case.probe.column_names):
            without(star(ragged), expected)
    assert rows == before
    assert prejoin.join(tuple(rows), case.legs) == prejoin.join(case.probe, case.legs).to_pylist()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_a_join_of_rows_is_that_of_their_batch(seed: int) -> None:
    """All kinds and options, several keys and several columns for one key; also where rows have different names."""
    random = Random(seed)

    def table(names: str, rows: int) -> pa.Table:
        few = [None, 0, 1, 2, 3] if random.random() < 0.7 else [0, 1, 2]
        return pa.table({name: pa.array([random.choice(few) for _ in range(rows)], pa.int64()) for name in names})

    probe, held = table("abk", random.choice([1, 2, 20])), table("akv", random.choice([0, 1, 5, 20]))
    keys = random.choice([["k"], ["a", "k"]])
    build = prejoin.prepare(
        held, keys, null_equal=random.random() < 0.5, config=prejoin.Config(_collide=random.choice([0, 3]))
    )
    on: Any = random.choice([None, None, {"k": "k", "b": "k"} if keys == ["k"] else {"b": "a", "k": "k"}])
    how = random.choice(KINDS)
    pairs = how in ("inner", "left", "right", "full")
    options: dict[str, Any] = {
        "where": random.choice([None, "v > 0", "probe.b <= build.v", "probe.a <> 1 OR v IS NULL"]),
        "limit": random.choice([None, None, 0, 3]),
        "suffix": random.choice(["_right", "_x"]),
    }
    if pairs and random.random() < 0.3:
        options["coalesce"] = random.choice([None, False])
    if how in ("left", "full"):
        options["default"] = random.choice([None, 9, {"v": 9, "k": 8}])
    if pairs and random.random() < 0.2:
        options["prefix"] = "x_"
    if random.random() < 0.4:
        sides = [*(["probe.a", "probe.k"] if how not in ("build_semi", "build_anti") else [])]
        sides += ["build.v", "build.k"] if pairs or not sides else []
        options["select"] = {
            f"c{i}": name for i, name in enumerate(random.sample(sides, random.randint(0, len(sides))))
        }
    rows = probe.to_pylist()
    for row in rows:
        # What is no column stays in its row.
        row["note"] = object()
    batch = probe.append_column("note", pa.array(range(len(rows))))
    expected = prejoin.join(batch.combine_chunks().to_batches()[0], build, on, how, **options).to_pylist()
    for row in expected:
        if (at := row.get("note")) is not None:
            row["note"] = rows[at]["note"]
    found = prejoin.join(rows, build, on, how, **options)
    assert [list(row) for row in found] == [list(row) for row in expected]
    assert found == expected == build.join(rows, on, how, **options)
    ragged = [{name: value for name, value in row.items() if value is not None} for row in rows]
    if {name for row in ragged for name in row} == set(batch.column_names):
        without(prejoin.join(ragged, build, on, how, **options), expected)


@pytest.fixture
def users() -> prejoin.PreparedBuild:
    table = pa.table({"id": pa.array([1, 2, None], pa.int8()), "name": ["ada", "bob", "nobody"], "n": [7, None, 9]})
    return prejoin.prepare(table, "id")


def test_rows_keep_what_they_have(users: prejoin.PreparedBuild) -> None:
    """Ragged rows stay ragged, names that are no text stay, and each output row is the caller's to change."""
    rows: list[dict[Any, Any]] = [
        {"id": 2, 5: "x"},
        {"at": 1},
        {"id": 1, "at": [0]},
        {"id": 1},
        {"id": 300},
        {"id": None},
    ]
    found = prejoin.join(rows, users, how="left", select=None)
    assert found == [
        {"id": 2, 5: "x", "name": "bob", "n": None},
        {"at": 1, "name": None, "n": None},
        {"id": 1, "at": [0], "name": "ada", "n": 7},
        {"id": 1, "name": "ada", "n": 7},
        {"id": 300, "name": None, "n": None},
        {"id": None, "name": None, "n": None},
    ]
    assert found[2]["at"] is rows[2]["at"]
    found[0]["id"] = 9
    assert rows[0]["id"] == 2
    assert prejoin.join(rows, users, how="semi")[0] is not rows[0]
    assert prejoin.join(rows, users, how="left", select={"at": "at", "key": "build.id", "id": "id"})[1:3] == [
        {"at": 1, "key": None}, {"at": [0], "key": 1, "id": 1}
    ]  # fmt: skip
    # Rows of the build alone have all names.
    last = prejoin.join(rows[:4], users, how="full")[-1]
    assert last == {"id": None, "at": None, "name": "nobody", "n": 9}
    # A name that only one row has is taken for all.
    clash = prejoin.join([{"id": 1}, {"id": 2, "name": "x"}], users)
    assert clash == [{"id": 1, "name_right": "ada", "n": 7}, {"id": 2, "name": "x", "name_right": "bob", "n": None}]
    lists = prejoin.prepare(pa.table({"k": [1], "tags": [["a"]], "s": [{"x": 1}]}), "k")
    first, second = prejoin.join([{"k": 1}, {"k": 1}], lists)
    first["tags"].append("b")
    first["s"]["x"] = 2
    assert second == {"k": 1, "tags": ["a"], "s": {"x": 1}}
    first, second = lists.lookup_rows([1, 1])
    first["tags"].append("b")
    assert second["tags"] == ["a"]


def test_no_rows(users: prejoin.PreparedBuild) -> None:
    for how in KINDS:
        empty = pa.RecordBatch.from_pylist([], pa.schema([("id", pa.int8())]))
        assert prejoin.join([], users, how=how) == prejoin.join(empty, users, how=how).to_pylist(), how
        assert prejoin.join((), users, how=how, limit=2) == prejoin.join(empty, users, how=how, limit=2).to_pylist()
    assert StarJoin([users])([]) == [] == prejoin.join([], [users])
    assert users.lookup_rows([]) == []
    assert prejoin.join(
        [], users, on={"user": "id"}, how="right", where="probe.x > 1", select=["user", "probe.y", "n"]
    ) == [
        {"user": 1, "y": None, "n": 7},
        {"user": 2, "y": None, "n": None},
        {"user": None, "y": None, "n": 9},
    ]
    none = prejoin.prepare(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())}), "id")
    assert prejoin.join([{"id": 1}], none, how="left") == [{"id": 1, "v": None}]
    assert none.lookup_rows([1, None]) == [{"id": None, "v": None}] * 2


def test_values_that_no_key_can_be(users: prejoin.PreparedBuild) -> None:
    """They match nothing, not even a null that equals null; conditions of other legs see them as they are."""
    nulls = prejoin.prepare(users.to_table(), "id", null_equal=True)
    rows: Rows = [{"id": 2**70}, {"id": None}, {"id": 128}, {"id": 1}]
    assert [row.get("name") for row in prejoin.join(rows, nulls, how="left")] == [None, "nobody", None, "ada"]
    star = StarJoin({"a": Leg(nulls, how="left"), "b": Leg(nulls, how="mark")})
    assert [(row["name"], row["mark"]) for row in star(rows)] == [
        (None, False), ("nobody", True), (None, False), ("ada", True)
    ]  # fmt: skip
    assert [len(prejoin.join(rows, nulls, how=how)) for how in ("semi", "anti", "right", "full")] == [2, 2, 3, 5]
    texts = prejoin.prepare(pa.table({"t": ["a", ""]}), "t")
    assert prejoin.join([{"t": "\ud800"}, {"t": ""}], texts) == [{"t": ""}]
    # The leg "wide" tests the column that is a key of "users", in which 300 has no place.
    wide = prejoin.prepare(pa.table({"k": [5], "least": [200]}), "k")
    legs = {"users": Leg(users, how="left"), "wide": Leg(wide, on="k", how="mark", where="probe.id > least")}
    given = [{"id": 300, "k": 5}, {"id": 1, "k": 5}, {"k": 5}]
    assert [row["mark"] for row in StarJoin(legs)(given)] == [True, False, False]
    # One name is looked up in keys of two types.
    longs = prejoin.prepare(pa.table({"id": [1, 300], "long": ["x", "y"]}), "id")
    both = StarJoin([Leg(users, how="left", select=["name"]), Leg(longs, how="left")])
    assert both([{"id": 300}, {"id": 1}]) == [
        {"id": 300, "name": None, "long": "y"}, {"id": 1, "name": "ada", "long": "x"}
    ]  # fmt: skip


def test_as_of_joins_of_rows() -> None:
    """What is searched for has the type of its values; what the order cannot hold is before or after all of it."""
    quotes = prejoin.prepare(
        pa.table({"s": ["a", "a", "b"], "ts": pa.array([10, 20, 15], pa.int8()), "price": [1.0, 2.0, 3.0]}),
        "s",
        order_by="ts",
    )
    rows: Rows = [{"s": "a", "ts": 12}, {"s": "a", "ts": 300}, {"s": "b"}, {"ts": 16, "s": "b", "note": {}}]
    batch = pa.RecordBatch.from_pylist([{"s": row["s"], "ts": row.get("ts")} for row in rows])
    strategies: list[Any] = ["backward", "forward", "nearest"]
    for strategy in strategies:
        found = prejoin.join_asof(rows, quotes, strategy=strategy)
        wanted = [row["price"] for row in prejoin.join_asof(batch, quotes, strategy=strategy).to_pylist()]
        assert [row["price"] for row in found] == wanted
        assert [row.get("note") for row in found] == [None, None, None, {}]
        star = StarJoin([Leg(quotes, asof="ts", strategy=strategy, how="left")])
        assert [row["price"] for row in star(rows)] == [row["price"] for row in star(batch).to_pylist()]
    assert [row["price"] for row in prejoin.join_asof([{"s": "a", "ts": None}], quotes)] == [None]
    with pytest.raises(PlanError, match='no column "ts"'):
        prejoin.join_asof([{"s": "a"}], quotes)


def test_conditions_read_what_they_test() -> None:
    offers = prejoin.prepare(
        pa.table({"shop": ["a", "a"], "from": [dt.date(2024, 1, 1), dt.date(2024, 6, 1)], "price": [1.5, 2.5]}), "shop"
    )
    rows: Rows = [{"shop": "a", "day": dt.date(2024, 3, 1), "note": {1, 2}}, {"shop": "a"}, {"shop": "a", "day": None}]
    assert prejoin.join(rows, offers, where="probe.day >= build.from", select=["day", "price"]) == [
        {"day": dt.date(2024, 3, 1), "price": 1.5}
    ]
    assert prejoin.join(rows[1:], offers, how="semi", where="day IS NULL AND price > 2") == rows[1:]
    condition = prejoin.col("probe.day").is_null()
    assert len(prejoin.join(rows, [Leg(offers, where=condition)])) == 4
    with pytest.raises(PlanError, match='column "note" of the rows is read by the join, and has no one type'):
        prejoin.join([*rows, {"note": 1, "shop": "b"}], offers, where="probe.note = 1")
    with pytest.raises(prejoin.ExecutionError, match="validate=1:m needs probe rows with different keys"):
        prejoin.join(rows, offers, how="semi", validate="1:m")


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([{"id": 1}, [2]], {}, TypeError, "rows are dicts, as the first one is; row 1 is of type list"),
        ([{"id": 1}, None], {}, TypeError, "row 1 is of type NoneType"),
        ([{"x": 1}], {}, PlanError, 'no column "id"; its columns are "x"'),
        ([{"id": 1}], {"on": {"user": "id"}}, PlanError, 'no column "user"'),
        ([{"id": "1"}], {}, PlanError, 'key "id" has type Int8'),
        ([{"id": 1}], {"where": "probe.x = 1"}, PlanError, '"x"'),
        ([{"id": 1}], {"select": ["x"]}, PlanError, '"x"'),
        ([{}], {}, PlanError, '"id"'),
    ],
)
def test_what_is_refused(
    users: prejoin.PreparedBuild, rows: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        prejoin.join(rows, users, **options)
    assert message in str(caught.value), caught.value
    if not options:
        with pytest.raises(error):
            StarJoin([users])(rows)


def test_lookup_rows(users: prejoin.PreparedBuild) -> None:
    ids: list[Any] = [2, 9, 1, None, 2**40]
    for default in (None, {"name": "?"}, {"name": "?", "n": 0}):
        expected = users.lookup(ids, ["name", "n"], default=default).to_pylist()
        assert users.lookup_rows(ids, ["name", "n"], default) == expected
    assert users.lookup_rows(pa.array([1]), columns=[]) == [{}]
    assert users.lookup_rows({"id": [1]}, ["n"], default=0) == [{"n": 7}]
    twice = prejoin.prepare(pa.table({"k": [1, 1], "v": ["a", "b"]}), "k")
    assert [twice.lookup_rows([1], ["v"], keep=keep) for keep in ("first", "last")] == [[{"v": "a"}], [{"v": "b"}]]
    with pytest.raises(PlanError, match="keep="):
        twice.lookup_rows([1])
    with pytest.raises(PlanError, match='no column "x"'):
        users.lookup_rows([1], ["x"])
    with pytest.raises(PlanError, match="Utf8"):
        users.lookup_rows([1], ["name"], 5)
    repeated = prejoin.prepare(pa.table([[1], [2], [3]], names=["k", "x", "x"]), "k")
    with pytest.raises(PlanError, match="a dict has each name once"):
        repeated.lookup_rows([1])
    assert repeated.lookup_rows([1], ["k"]) == [{"k": 1}]
    lists = prejoin.prepare(pa.table({"k": [1], "v": [["a"]]}), "k")
    first, second = lists.lookup_rows([5, 6], ["v"], {"v": ["d"]})
    first["v"].append("e")
    assert second == {"v": ["d"]}


def test_rows_from_many_threads(users: prejoin.PreparedBuild) -> None:
    rows: Rows = [{"id": i % 4, "at": i} for i in range(20_000)]
    expected = prejoin.join(rows, users, how="left")
    wrong: list[threading.Thread] = []

    def work() -> None:
        for _ in range(5):
            if prejoin.join(rows, users, how="left") != expected or len(users.lookup_rows(range(9000))) != 9000:
                wrong.append(threading.current_thread())  # noqa: PERF401

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def pressing() -> Any:
    """The integer 1, which presses Ctrl-C when it is read, without running Python code, which would notice."""
    index = map(operator.countOf, [[None]], iter(_thread.interrupt_main, 0)).__next__
    return type("Key", (), {"__index__": index})()


@pytest.mark.parametrize("call", ["join", "star", "lookup_rows"])
def test_ctrl_c_ends_the_making_of_dicts(users: prejoin.PreparedBuild, call: str) -> None:
    """Once the keys were read; no Python code runs between the call and the place that takes its result."""
    rows: Rows = [*[{"id": 1}] * 30_000, {"id": pressing()}]
    calls: dict[str, Iterator[Any]] = {
        "join": map(prejoin.join, [rows], [users]),
        "star": map(StarJoin([users]), [rows]),
        "lookup_rows": map(users.lookup_rows, [[row["id"] for row in rows]]),
    }
    made: list[Any] = []
    # Others may have callbacks in Python there.
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt):
            made.extend(calls[call])
    finally:
        gc.enable()
    assert not made
