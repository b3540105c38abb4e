"""Star joins: one pass over several builds gives what a chain of joins gives."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from foreign import as_table
from prejoin import Leg, PlanError, StarJoin

KINDS: list[Literal["inner", "left", "semi", "anti", "mark"]] = ["inner", "left", "semi", "anti", "mark"]
KEEPS: list[Literal["all", "first"]] = ["all", "all", "first"]
NAMES = ["a", "b", "k", "mark", "a_right", "probe.a"]
TYPES = [pa.int64(), pa.int32(), pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.float64()]


def values(random: Random, data_type: pa.DataType, rows: int, nulls: bool) -> pa.Array:
    """Few different values, so that keys repeat and match."""
    few = [random.choice([None, 0, 1, 2, 3] if nulls else [0, 1, 2, 3]) for _ in range(rows)]
    if pa.types.is_dictionary(data_type):
        return pa.array([None if v is None else f"s{v}" for v in few], pa.string()).dictionary_encode().cast(data_type)
    if pa.types.is_string(data_type):
        return pa.array([None if v is None else f"s{v}" for v in few])
    return pa.array(few, data_type)


def table(random: Random, columns: list[tuple[str, pa.DataType]], rows: int, note: str) -> pa.Table:
    fields, arrays = [], []
    for name, data_type in columns:
        nullable = random.random() < 0.8
        arrays.append(values(random, data_type, rows, nullable))
        fields.append(pa.field(name, data_type, nullable, {"of": note}))
    metadata = {note: "x", "both": note} if random.random() < 0.5 else None
    return pa.table(arrays, pa.schema(fields, metadata))


def columns_of(random: Random) -> list[tuple[str, pa.DataType]]:
    names = random.sample(NAMES, random.randint(1, 4))
    return [(name, random.choice(TYPES)) for name in names]


def kind_of(data_type: pa.DataType) -> str:
    text = pa.types.is_string(data_type) or pa.types.is_dictionary(data_type)
    return "text" if text else str(data_type)


def renamed(rows: pa.Table, names: list[str]) -> pa.Table:
    """The same with all metadata, which `Table.rename_columns` drops."""
    fields = [field.with_name(name) for field, name in zip(rows.schema, names, strict=True)]
    return pa.table(rows.columns, pa.schema(fields, rows.schema.metadata))


class Case:
    """A random star, the same as a chain of joins over columns that are named with their table, and both outputs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        columns = columns_of(random)
        self.probe = table(random, columns, random.choice([0, 1, 30]), "probe")
        # Column at hand by its address: its type, and its name in the output.
        self.types = {f"probe.{name}": data_type for name, data_type in columns}
        self.names: dict[str, str] = {f"probe.{name}": name for name, _ in columns}
        self.legs: dict[str, Leg] = {}
        self.chain: list[dict[str, Any]] = []
        for i in range(random.randint(1, 5)):
            self.add(f"t{i}")

    def add(self, leg: str) -> None:
        random = self.random
        columns = columns_of(random)
        on: dict[str, list[str]] = {}
        for name, data_type in random.sample(columns, random.randint(1, min(2, len(columns)))):
            fits = [a for a, other in self.types.items() if kind_of(other) == kind_of(data_type) and a not in on]
            if fits:
                on[random.choice(fits)] = [name]
        if random.random() < 0.2 and (keys := [names[0] for names in on.values()]):
            # A key that another column must equal too, and a column that must equal two keys.
            kinds = {name: kind_of(data_type) for name, data_type in columns}
            for address, data_type in random.sample(sorted(self.types.items()), min(2, len(self.types))):
                known = on.get(address, [])
                fits = [key for key in keys if kinds[key] == kind_of(data_type) and key not in known]
                if fits:
                    on[address] = [*known, random.choice(fits)]
        if not on:
            return
        rows = table(random, columns, random.choice([0, 1, 4, 20]), leg)
        null_equal, how = random.random() < 0.4, random.choice(KINDS)
        keep = random.choice(KEEPS)
        where = self.condition(leg, columns) if random.random() < 0.4 else None
        keys = list(dict.fromkeys(key for names in on.values() for key in names))
        free = [name for name, _ in columns if name not in keys]
        select = None
        if how in ("inner", "left") and random.random() < 0.4:
            select = random.sample([name for name, _ in columns], random.randint(0, len(columns)))
        suffix = random.choice(["_right", "_x", ""])
        build = prejoin.prepare(rows, keys, null_equal=null_equal, keep=keep)
        self.legs[leg] = Leg(build, on=on, how=how, where=where, suffix=suffix, select=select)
        own = renamed(rows, [f"{leg}.{name}" for name in rows.column_names])
        self.chain.append(
            {
                "build": prejoin.prepare(own, [f"{leg}.{key}" for key in keys], null_equal=null_equal, keep=keep),
                "on": {address: [f"{leg}.{key}" for key in keys] for address, keys in on.items()},
                "how": how,
                "where": where,
                "leg": leg,
            }
        )
        if how in ("inner", "left"):
            self.types |= {f"{leg}.{name}": data_type for name, data_type in columns}
            self.name(leg, free if select is None else select, suffix)
        elif how == "mark":
            self.types[f"{leg}.mark"] = pa.bool_()
            self.name(leg, ["mark"], suffix)

    def name(self, leg: str, given: list[str], suffix: str) -> None:
        """The names in the output: free ones stay, others get the suffix, or the leg's name where that is taken too."""
        taken = set(self.names.values())
        own = [name for name in given if name not in taken]
        for name in given:
            for candidate in [name] * (name in own) + [name + suffix, f"{leg}.{name}"]:
                if (candidate == name and name in own) or (candidate not in taken and candidate not in own):
                    break
            taken.add(candidate)
            self.names[f"{leg}.{name}"] = candidate

    def condition(self, leg: str, columns: list[tuple[str, pa.DataType]]) -> str:
        name, data_type = self.random.choice(columns)
        fits = [a for a, other in self.types.items() if kind_of(other) == kind_of(data_type)]
        op = self.random.choice(["<", "<=", "<>", ">="])
        if not fits:
            return f'"{leg}.{name}" IS NOT NULL'
        return f'"{self.random.choice(fits)}" {op} "{leg}.{name}"'

    def expected(self, limit: int | None = None) -> pa.Table:
        rows = renamed(self.probe, [f"probe.{name}" for name in self.probe.column_names])
        for step in self.chain:
            leg, how, build = step["leg"], step["how"], step["build"]
            select = {name: name for name in rows.column_names}
            if how in ("inner", "left"):
                select |= {name: f"build.{name}" for name in build.schema.names}
            elif how == "mark":
                select[f"{leg}.mark"] = "mark"
            rows = prejoin.join(rows, build, on=step["on"], how=how, where=step["where"], select=select)
        rows = renamed(rows.select(list(self.names)), list(self.names.values()))
        return rows if limit is None else rows.slice(0, limit)


def batches(random: Random, rows: pa.Table) -> list[pa.RecordBatch]:
    size = random.choice([1, 7, 100])
    return rows.to_batches(max_chunksize=size) or [rows.schema.empty_table().to_batches()[0]]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_a_star_is_its_chain(seed: int) -> None:
    """B9."""
    case = Case(Random(seed))
    if not case.legs:
        return
    expected = case.expected()
    star = StarJoin(case.legs, batch_size=Random(seed).choice([1, 5, 8192]))
    assert star.schema(case.probe.schema).equals(expected.schema, check_metadata=True)

    found = star(case.probe)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)
    one = case.probe.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], case.probe.schema)]
    whole = star(one[0])
    assert whole.schema.equals(expected.schema, check_metadata=True)
    assert pa.table(whole).equals(expected)
    parts = [star(part) for part in case.probe.to_batches(max_chunksize=7)]
    assert pa.Table.from_batches(parts, expected.schema).equals(expected)
    reader = star(pa.RecordBatchReader.from_batches(case.probe.schema, iter(case.probe.to_batches(max_chunksize=4))))
    pieces = list(reader)
    assert all(0 < piece.num_rows <= star.batch_size for piece in pieces)
    assert pa.Table.from_batches(pieces, expected.schema).equals(expected)

    limit = Random(seed).choice([0, 1, 3, 50])
    assert StarJoin(case.legs, limit=limit)(case.probe).equals(case.expected(limit))
    addresses = Random(seed).sample(list(case.names), Random(seed).randint(0, len(case.names)))
    chosen = StarJoin(case.legs, select={f"c{i}": address for i, address in enumerate(addresses)})(case.probe)
    wanted = expected.select([case.names[address] for address in addresses])
    assert not addresses or chosen.equals(
        renamed(wanted, [f"c{i}" for i in range(len(addresses))]), check_metadata=True
    )
    assert chosen.num_rows == expected.num_rows


USERS = pa.table({"user": [1, 2, 3], "city": [7, 8, None], "name": ["ada", "bob", "eve"]})
CITIES = pa.table({"city": [7, 8], "name": ["Rome", "Oslo"], "land": [39, 47]})
LANDS = pa.table({"code": [39, 47], "name": ["Italy", "Norway"]})
EVENTS = pa.table({"user": [2, 9, 1, 3, 2], "name": ["x", "y", "z", "u", "v"]})

Build = prejoin.PreparedBuild


@pytest.fixture
def users() -> prejoin.PreparedBuild:
    return prejoin.prepare(USERS, "user")


@pytest.fixture
def cities() -> prejoin.PreparedBuild:
    return prejoin.prepare(CITIES, "city")


@pytest.fixture
def lands() -> prejoin.PreparedBuild:
    return prejoin.prepare(LANDS, "code")


def test_keys_that_earlier_legs_bring(users: Build, cities: Build, lands: Build) -> None:
    """A column that its leg's select leaves out, a key of an earlier leg, names of a list's legs."""
    by_name: dict[str, Build | Leg] = {
        "users": Leg(users, select=[]),
        "cities": Leg(cities, select={"town": "name"}),
        "lands": Leg(lands, on="land"),
    }
    star = StarJoin(by_name, select=["user", "town", "lands.name", "cities.city", "lands.code"])
    assert star(EVENTS).to_pylist() == [
        {"user": 2, "town": "Oslo", "name": "Norway", "city": 8, "code": 47},
        {"user": 1, "town": "Rome", "name": "Italy", "city": 7, "code": 39},
        {"user": 2, "town": "Oslo", "name": "Norway", "city": 8, "code": 47},
    ]
    listed = prejoin.join(EVENTS, [users, cities, Leg(lands, on={"leg1.land": "code"})], select=["leg2.name"])
    assert listed.to_pydict() == {"name": ["Norway", "Italy", "Norway"]}
    again = prejoin.prepare(pa.table({"c": [39], "y": [1]}), "c")
    assert StarJoin([users, cities, Leg(lands, on="land"), Leg(again, on="leg2.code")])(EVENTS).num_rows == 1
    # The same builds twice, under two names.
    twice = StarJoin({"a": users, "b": Leg(users, on={"a.user": "user"})}, select=["a.name", "b.name", "name"])
    assert twice(EVENTS.slice(0, 1)).to_pylist() == [{"name_right": "bob", "b.name": "bob", "name": "x"}]


def test_names_that_clash(users: Build, cities: Build) -> None:
    """No name of a column has to be changed before a join."""
    star = StarJoin({"u": users, "c": Leg(cities, suffix="_c"), "d": Leg(cities, suffix="_c")})
    assert star.schema(EVENTS.schema).names == [
        "user", "name", "city", "name_right", "name_c", "land", "d.name", "land_c"
    ]  # fmt: skip
    taken = EVENTS.append_column("u.name", EVENTS["name"]).append_column("name_right", EVENTS["name"])
    assert StarJoin({"u": users}).schema(taken.schema).names == [
        "user", "name", "u.name", "name_right", "city", "u.name_2"
    ]  # fmt: skip
    # A column that has the name by itself keeps it.
    own = prejoin.prepare(pa.table({"user": [1], "name": [1], "name_right": [2]}), "user")
    assert StarJoin({"o": own})(EVENTS).schema.names == ["user", "name", "o.name", "name_right"]
    same = prejoin.prepare(pa.table([[1], [2], [3]], names=["user", "x", "x"]), "user")
    assert StarJoin([same])(EVENTS).to_pydict() == {"user": [1], "name": ["z"], "x": [2], "x_right": [3]}
    marks = StarJoin({"a": Leg(users, how="mark"), "b": Leg(users, how="mark")}, select=["a.mark", "b.mark", "user"])
    assert marks(EVENTS.slice(0, 2)).to_pydict() == {"mark": [True, False], "mark_right": [True, False], "user": [2, 9]}
    # Names with points: an address is first of all one, and every column has one.
    dotted = pa.table({"user": [1], "u.name": ["p"], "probe.user": [2]})
    star = StarJoin(
        {"u": users}, select={"a": "u.name", "b": "probe.u.name", "c": "probe.probe.user", "d": "probe.user"}
    )
    assert star(dotted).to_pylist() == [{"a": "ada", "b": "p", "c": 2, "d": 1}]
    # The probe side's own repeated names are kept, and its other columns are of use.
    repeated = pa.table([[1], [2], [3]], names=["user", "v", "v"])
    assert StarJoin([users])(repeated).schema.names == ["user", "v", "v", "city", "name"]


def test_conditions(users: Build, cities: Build) -> None:
    """Columns of the probe side, of earlier legs and of the leg itself, as text and as expressions."""
    conditions: list[Any] = [
        "build.name < users.name",
        'build.name < "users"."name"',
        "cities.name < users.name",
        prejoin.col("build.name") < prejoin.col("users.name"),
        prejoin.col("cities.name") < prejoin.col("users.name"),
        prejoin.sql("cities.name < users.name"),
        'build[1] < "users.name"',
    ]
    for condition in conditions:
        star = StarJoin({"users": users, "cities": Leg(cities, how="left", where=condition)}, select=["user", "land"])
        assert star(EVENTS).to_pylist() == [
            {"user": 2, "land": 47},
            {"user": 1, "land": 39},
            {"user": 3, "land": None},
            {"user": 2, "land": 47},
        ], condition
        assert pickle.loads(pickle.dumps(Leg(cities.share(), where=condition))).where.__reduce__() == (
            Leg(cities, where=condition).where.__reduce__()
        )
    star = StarJoin([users, Leg(cities, where="land > 40 AND probe.name <> 'v' AND user IS NOT NULL")])
    assert star(EVENTS)["name"].to_pylist() == ["x"]
    for condition, message in [
        ("name = 'x'", 'names "name", which the build and the rows at hand have'),
        (
            "planes.x = 1",
            'names "planes.x", which neither the build nor the rows at hand have; the columns of build are "city"',
        ),
        ("build.x = 1", 'the build side has no column "x"'),
        ("probe[9] = 1", "no column at position 9"),
        ("probe.user = build.name", "compares Int64 with Utf8"),
        ("city > 1", 'names "city", which the build and the rows at hand have'),
    ]:
        with pytest.raises(PlanError, match='leg "c": ') as caught:
            StarJoin({"u": users, "c": Leg(cities, where=condition)})(EVENTS)
        assert message in str(caught.value), caught.value
    with pytest.raises(prejoin.ExecutionError, match="division"):
        StarJoin([Leg(users, where="probe.user / 0 = 1")])(EVENTS)


def test_what_is_refused(users: Build, cities: Build) -> None:
    repeats = prejoin.prepare(pa.table({"user": [1, 1]}), "user")
    two = prejoin.prepare(USERS, ["user", "city"])
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ([], {}, "at least one leg"),
        ({}, {}, "at least one leg"),
        ({"probe": users}, {}, "the name of the probe side"),
        ({"build": users}, {}, "own build"),
        ([users], {"limit": -1}, "limit"),
        ([users], {"batch_size": 0}, "batch_size"),
    ]
    for legs, options, message in cases:
        with pytest.raises(PlanError) as caught:
            StarJoin(legs, **options)
        assert message in str(caught.value), caught.value
    for how in ("right", "full", "build_semi", "build_anti"):
        with pytest.raises(PlanError, match=f"a {how} join gives build rows after the last probe row"):
            Leg(users, how=how)  # type: ignore[arg-type]
    of_leg: list[tuple[prejoin.PreparedBuild, dict[str, Any], str]] = [
        (users, {"how": "semi", "select": ["name"]}, "a semi join gives none"),
        (repeats, {"validate": "m:1"}, "validate=m:1 needs a build with one row per key"),
        (two, {"on": "user"}, 'leaves out the keys ["city"]'),
        (two, {"on": {"a": ["user", "user"]}}, 'names the key "user" twice for the column "a"'),
        (users, {"on": {"user": "id"}}, 'on names the key "id", the build was prepared on ["user"]'),
    ]
    for build, options, message in of_leg:
        with pytest.raises(PlanError) as caught:
            Leg(build, **options)
        assert message in str(caught.value), caught.value
    planned: list[tuple[Any, Any, str]] = [
        (
            [cities],
            None,
            'leg "leg0": no column at hand has the name of the build\'s key "city"; say what it is looked up by, '
            'on={column: "city"}; there are probe.user, probe.name',
        ),
        ([Leg(users, on="nick")], None, 'on names "nick", which no column at hand is; there are probe.user'),
        ([Leg(users, on="name")], None, 'build column "user" is Int64, probe.name is Utf8'),
        ([Leg(users, select=["age"])], None, 'select names "age"; the build side has no column "age"'),
        ([Leg(users, select={"name": "city"})], None, 'second column the name "name"; choose another new name'),
        (
            [users],
            ["age"],
            'select names "age", which no column at hand is; there are probe.user, probe.name, leg0.city',
        ),
        ([users], ["user", "user"], 'select gives two columns the name "user"'),
        ([Leg(users, how="semi"), Leg(cities, on="city")], None, 'on names "city", which no column at hand is'),
        (
            {"a": Leg(users, select=[]), "b": Leg(users, on="user", select=[])},
            ["city"],
            'select names "city", which is the name of several columns: a.city, b.city',
        ),
    ]
    for legs, select, message in planned:
        star = StarJoin(legs, select=select)
        with pytest.raises(PlanError) as caught:
            star(EVENTS)
        assert message in str(caught.value), caught.value
        with pytest.raises(PlanError) as caught:
            star.schema(EVENTS.schema)
        assert message in str(caught.value), caught.value
    for other in (USERS, [users], None):
        with pytest.raises(TypeError, match="prepare"):
            StarJoin([other])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="legs is a list"):
        StarJoin(users)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="named by str"):
        StarJoin({1: users})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match='leg "leg1"'):
        prejoin.join(EVENTS, [users, USERS])
    assert prejoin.join(EVENTS, Leg(users, on="user")).num_rows == 4
    with pytest.raises(TypeError, match="a StarJoin is called with the rows"):
        prejoin.join(EVENTS, StarJoin([users]))  # type: ignore[call-overload]
    for option in ({"on": "user"}, {"how": "left"}, {"where": "1 = 1"}, {"validate": "m:1"}, {"suffix": "_x"}):
        with pytest.raises(PlanError, match="belongs to each leg"):
            prejoin.join(EVENTS, [users], **option)  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="not a kind of join"):
        Leg(users, how="sideways")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="line 1, column"):
        Leg(users, where="a = = 1")


def test_a_result_has_the_form_of_its_probe_side(users: Build, cities: Build) -> None:
    star = StarJoin([users, Leg(cities, how="left")])
    expected = star(EVENTS)
    assert isinstance(expected, pa.Table)
    assert isinstance(star(EVENTS.to_batches()[0]), pa.RecordBatch)
    for frame in (pl.DataFrame(EVENTS), EVENTS.to_pandas(), EVENTS.to_batches(), prejoin.Source(EVENTS)):
        found = star(frame)
        assert as_table(found).cast(expected.schema).equals(expected)
    pulled = []

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in EVENTS.to_batches(max_chunksize=2):
            pulled.append(batch)
            yield batch

    reader = star(pa.RecordBatchReader.from_batches(EVENTS.schema, rows()))
    assert not pulled
    assert reader.read_next_batch().num_rows == 1
    assert len(pulled) == 1
    # Nothing can come out, so nothing is asked for.
    empty = prejoin.prepare(USERS.slice(0, 0), "user")
    reader = StarJoin([Leg(users, how="left"), empty])(pa.RecordBatchReader.from_batches(EVENTS.schema, rows()))
    assert reader.read_all().num_rows == 0
    assert len(pulled) == 1
    limited = StarJoin([users], limit=1)(pa.RecordBatchReader.from_batches(EVENTS.schema, rows()))
    assert limited.read_all().num_rows == 1
    assert len(pulled) == 2


def test_only_columns_that_are_used_are_read(users: Build) -> None:
    """Text that is not UTF-8 fails where it is read, and nowhere else."""
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    rows = pa.record_batch({"bad": bad, "user": pa.array([1])})
    assert StarJoin([users], select=["leg0.name"])(rows).to_pylist() == [{"name": "ada"}]
    assert StarJoin([users], select=["leg0.name"])(pa.table(rows)).to_pylist() == [{"name": "ada"}]
    with pytest.raises(prejoin.ExecutionError, match="bad"):
        StarJoin([users])(rows)


def test_many_rows() -> None:
    """More rows than go from leg to leg at once, keys with many rows, pieces of any size."""
    random = Random(1)
    tags = prejoin.prepare(pa.table({"k": [i % 40 for i in range(400)], "t": range(400)}), "k")
    sizes = prejoin.prepare(pa.table({"t": [i // 2 for i in range(800)], "s": range(800)}), "t")
    some = prejoin.prepare(pa.table({"s": range(0, 800, 3)}), "s")
    probe = pa.table({"k": [random.randrange(50) for _ in range(30_000)], "row": range(30_000)})
    expected = prejoin.join(prejoin.join(prejoin.join(probe, tags), sizes), some)
    legs: dict[str, Build | Leg] = {"tags": tags, "sizes": Leg(sizes), "some": some}
    assert expected.num_rows > 100_000
    for batch_size in (1_000, 8_192, 50_000):
        star = StarJoin(legs, batch_size=batch_size)
        pieces = list(star(pa.RecordBatchReader.from_batches(probe.schema, probe.to_batches(max_chunksize=20_000))))
        assert max(piece.num_rows for piece in pieces) == batch_size
        assert pa.Table.from_batches(pieces).equals(expected)
    assert pa.table(StarJoin(legs)(probe.combine_chunks().to_batches()[0])).equals(expected.combine_chunks())
    chain = prejoin.join(prejoin.join(probe, tags), sizes, where="probe.row < build.s * 50", how="left")
    where = StarJoin({"tags": tags, "sizes": Leg(sizes, how="left", where="probe.row < build.s * 50")})
    assert where(probe).equals(chain)


def test_validate(users: Build) -> None:
    """Over the rows that reach the leg, in all batches of one call and in no other."""
    star = StarJoin({"all": Leg(users, how="left"), "once": Leg(users, validate="1:m")})
    once = EVENTS.slice(0, 4)
    for _ in range(2):
        assert star(once).num_rows == 3
    for rows in (EVENTS, EVENTS.combine_chunks().to_batches()[0], EVENTS.to_batches(max_chunksize=1)):
        with pytest.raises(prejoin.ExecutionError, match=r'validate=1:m .* "user" = 2'):
            star(rows)
    # The first leg drops the second row of the key.
    few = prejoin.prepare(pa.table({"name": ["x", "z"]}), "name")
    assert StarJoin([Leg(few, how="semi"), Leg(users, on="user", validate="1:1")])(EVENTS).num_rows == 2


def test_explain_and_repr(users: Build, cities: Build) -> None:
    star = StarJoin(
        {
            "users": Leg(users, on={"user": "user"}),
            "cities": Leg(cities, how="left", where="land > 40", validate="m:1"),
        },
        select={"town": "cities.name"},
        limit=3,
        batch_size=2,
    )
    assert repr(star) == (
        "StarJoin(users: inner on user; cities: left on city; "
        "2 legs, select=[cities.name as town], limit=3, batch_size=2)"
    )
    assert star.explain().splitlines() == [
        "StarJoin: 2 legs, select=[cities.name as town], limit=3, batch_size=2",
        "  users: inner on user; build of 3 rows, dense index; rows in 0, rows out 0",
        "  cities: left on city, where land > 40, validate m:1; build of 2 rows, dense index; rows in 0, rows out 0",
    ]
    assert star(EVENTS).to_pydict() == {"town": ["Oslo", None, None]}
    star(EVENTS.append_column("other", EVENTS["name"]))
    assert [line.split("; ")[-1] for line in star.explain().splitlines()[1:]] == [
        "rows in 10, rows out 8",
        "rows in 8, rows out 8",
    ]
    assert list(star.legs) == ["users", "cities"]
    assert star.legs["cities"].how == "left"
    assert (star.select, star.limit, star.batch_size) == ({"town": "cities.name"}, 3, 2)
    leg = star.legs["users"]
    assert (leg.build is users, leg.on, leg.how, leg.suffix, leg.select) == (
        True,
        {"user": "user"},
        "inner",
        "_right",
        None,
    )
    assert repr(Leg(users, "user", "left", where="city > 7", suffix="_u", select=["name"], validate="m:1")) == (
        "Leg(keys=['user'], rows=3, on='user', how='left', where='city > 7', suffix='_u', select=['name'], "
        "validate='m:1')"
    )
    for frozen in (star, leg):
        with pytest.raises(AttributeError):
            frozen.limit = 4  # type: ignore[misc,union-attr]
    # Lists and mappings that were given may change afterwards.
    names = ["name"]
    leg = Leg(users, select=names)
    names.append("city")
    assert leg.select == ["name"]


def test_pickles_and_copies(users: Build, cities: Build, tmp_path: Path) -> None:
    users.save(tmp_path / "users")
    opened = [prejoin.open(tmp_path / "users", verify=verify) for verify in (True, False)]
    shared = cities.share()
    for build in opened:
        star = StarJoin(
            {
                "u": Leg(build, ["user"], "left", suffix="_u"),
                "c": Leg(shared, select={"town": "name"}, where="c.land > 40"),
            },
            select=["user", "town", "u.name"],
            limit=1,
        )
        assert star(EVENTS).to_pylist() == [{"user": 2, "town": "Oslo", "name": "bob"}]
        for other in (pickle.loads(pickle.dumps(star)), copy.deepcopy(star), copy.copy(star)):
            assert repr(other) == repr(star)
            assert other(EVENTS).equals(star(EVENTS))
    listed = pickle.loads(pickle.dumps(StarJoin([Leg(opened[0], how="semi")])))
    assert listed(EVENTS)["user"].to_pylist() == [2, 1, 3, 2]
    with pytest.raises(prejoin.NotSupported, match="prepared build"):
        pickle.dumps(StarJoin([users]))


def shared_by_threads(star: StarJoin) -> list[int]:
    """Calls of four threads, with more schemas than a star remembers; what was wrong."""
    expected, wrong = star(EVENTS), []

    def work(seed: int) -> None:
        random = Random(seed)
        for _ in range(60):
            more = random.randrange(12)
            rows = EVENTS.append_column(f"c{more}", EVENTS["user"])
            found = star(rows.combine_chunks().to_batches()[0]) if random.random() < 0.5 else star(rows)
            if not pa.table(found).drop_columns([f"c{more}"]).equals(expected):
                wrong.append(more)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_threads_and_memory(pool: prejoin.MemoryPool) -> None:
    """Any number of threads, schemas that come and go, and nothing held when the last user is gone."""
    users = prejoin.prepare(USERS, "user", pool=pool)
    star = StarJoin([users, Leg(users, on="user", how="mark", suffix="_2")])
    assert not shared_by_threads(star)
    assert [line.split("; ")[-1] for line in star.explain().splitlines()[1:]] == [
        f"rows in {241 * 5}, rows out {241 * 4}",
        f"rows in {241 * 4}, rows out {241 * 4}",
    ]
    found = star(EVENTS)
    assert pool.reserved == users.reserved_bytes > 0
    del star, users
    assert pool.reserved == 0
    assert found.num_rows == 4


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    """Row numbers of an unverified file are proven before anything is read by them."""
    keys = [f"key {i}" for i in range(2_000)]
    path = tmp_path / "build"
    prejoin.prepare(pa.table({"k": keys[::-1], "v": range(2_000)}), "k").save(path)
    whole, probe = path.read_bytes(), pa.record_batch({"k": keys})
    answers = 0
    for at in range(64, len(whole), len(whole) // 150):
        path.with_name("bad").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF] * 8) + whole[at + 8 :])
        try:
            bad = prejoin.open(path.with_name("bad"), verify=False)
            answers += StarJoin([Leg(bad, how="left"), Leg(bad, on="k", how="mark")])(probe).num_rows == 2_000
        except (prejoin.ExecutionError, prejoin.PlanError, prejoin.NotSupported):
            continue
    assert 0 < answers < 150
