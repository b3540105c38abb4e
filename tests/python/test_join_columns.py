"""`prefix=`, `default=`, `select=` by tables, and schemas without rows, each against a chain of simpler calls."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import Leg, PlanError, StarJoin

HOWS = ["inner", "left", "right", "full", "semi", "anti", "mark", "build_semi", "build_anti"]
PROBE = pa.table({"k": [2, 3, 2, None, 1], "v": ["p", "q", "r", "s", "t"], "w": [1, 2, 3, 4, 5]})
BUILD = pa.table(
    {
        "id": [1, 2, 4],
        "v": ["a", None, "c"],
        "x": [0.5, 1.5, 2.5],
        "n": pa.array([7, None, 9], pa.int32()),
        "d": pa.array(["r", "s", None]).dictionary_encode(),
        "l": [[1], [], None],
        "s": [{"a": 1}, {"a": None}, None],
    }
)
DEFAULTS: dict[str, Any] = {"v": "none", "x": -1.0, "n": 0, "d": "t", "l": [5, 6], "s": {"a": 9}, "id": 0}


def filled(rows: pa.Table, default: dict[str, Any], found: pa.ChunkedArray) -> pa.Table:
    """Each column of `default` where no row was found."""
    for name, value in default.items():
        if name in rows.column_names:
            field = rows.schema.field(name)
            column = rows[name].cast(field.type.value_type) if pa.types.is_dictionary(field.type) else rows[name]
            fill = pa.array([value] * rows.num_rows, column.type)
            values = [new if missing else old for new, old, missing in zip(
                fill.to_pylist(), column.to_pylist(), pc.invert(found).to_pylist(), strict=True)]  # fmt: skip
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, column.type))
    return rows


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["left", "full"]), st.data())
def test_default_is_a_fill_of_rows_without_a_match(how: Any, data: st.DataObject) -> None:
    """S17: a null of a row that matches stays. Batches, tables, streams, pieces, with and without a condition."""
    where = data.draw(st.sampled_from([None, "build.x < 1.0"]))
    default = {name: DEFAULTS[name] for name in data.draw(st.lists(st.sampled_from(list(DEFAULTS)), unique=True))}
    marked = BUILD.append_column("found", pa.array([True] * BUILD.num_rows))
    build = prejoin.prepare(BUILD, "id")
    probe, select = PROBE.rename_columns(["k", "pv", "w"]), ["k", "pv", "w", *BUILD.column_names]
    options: dict[str, Any] = {"on": {"k": "id"}, "how": how, "where": where, "coalesce": False}
    plain = prejoin.join(probe, build, select=select, **options)
    found = prejoin.join(probe, prejoin.prepare(marked, "id"), select=["found"], **options)["found"].fill_null(False)
    want = filled(plain, default, found)
    got = prejoin.join(probe, build, select=select, default=default, **options)
    assert got.schema.equals(plain.schema, check_metadata=True)
    assert got.to_pylist() == want.to_pylist()
    stream = prejoin.join(
        probe.to_reader(max_chunksize=2), build, select=select, default=default, batch_size=2, **options
    )
    assert stream.read_all().to_pylist() == got.to_pylist()
    batch = prejoin.join(probe.to_batches()[0], build, select=select, default=default, **options)
    assert batch.to_pylist() == got.to_pylist()
    if how == "left":
        leg = Leg(build, {"k": "id"}, "left", where=where, default=default)
        star = StarJoin({"b": leg}, select=[*probe.column_names, *(f"b.{name}" for name in BUILD.column_names)])
        assert star(probe).to_pylist() == got.to_pylist()


def test_one_default_is_for_all_columns_that_come_out_but_the_keys() -> None:
    numbers = prejoin.prepare(BUILD.select(["id", "n", "x", "v"]), "id")
    got = prejoin.join(PROBE, numbers, {"k": "id"}, "left", default=0, select=["k", "n", "x", "build.id"])
    assert got["n"].to_pylist() == [None, 0, None, 0, 7]
    assert got["x"].to_pylist() == [1.5, 0.0, 1.5, 0.0, 0.5]
    assert got["id"].to_pylist() == [2, None, 2, None, 1]
    leg = Leg(numbers, {"k": "id"}, "left", select=["n", "x"], default=0)
    assert StarJoin([leg])(PROBE).select(["n", "x"]).equals(got.select(["n", "x"]))
    # A remembered join is not mixed up with one of another default.
    for default, want in ((1, 1), (None, None), (2, 2), ({"n": 3}, 3), ({}, None)):
        rows = prejoin.join(PROBE, numbers, {"k": "id"}, "left", default=default, select=["n"])
        assert rows["n"].to_pylist() == [None, want, None, want, 7]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"default": 0}, 'default=0 is of type int, column "v" has type Utf8'),
        ({"default": {"x": "no"}}, "default='no' is of type str, column \"x\" has type Float64"),
        ({"default": {"n": 1 << 40}}, 'column "n" has type Int32'),
        ({"default": {"zz": 0}}, 'default names the column "zz", the columns are "id", "v"'),
        ({"default": {"n": 0}, "how": "inner"}, "left and full joins return such rows, this is a join of kind inner"),
        ({"default": {"n": 0}, "how": "semi"}, "this is a join of kind semi"),
    ],
)
def test_defaults_that_do_not_fit_are_refused(options: dict[str, Any], text: str) -> None:
    build = prejoin.prepare(BUILD, "id")
    options = {"on": {"k": "id"}, "how": "left", **options}
    for call in (
        lambda: prejoin.join(PROBE, build, **options),
        lambda: Leg(build, **options),
        lambda: prejoin.join_schema(PROBE.schema, build, **options),
    ):
        with pytest.raises(PlanError) as caught:
            call()
        assert text in str(caught.value)
    with pytest.raises(PlanError, match="default= belongs to each leg"):
        prejoin.join(PROBE, [Leg(build, {"k": "id"}, "left")], default=0)


def test_a_later_leg_looks_up_the_default_of_an_earlier_one() -> None:
    """As in a chain, whose second join sees the default as any value; conditions too."""
    users = prejoin.prepare(pa.table({"user": [1, 2], "city": [7, None]}), "user")
    cities = prejoin.prepare(pa.table({"city": [7, 0], "name": ["Rome", "nowhere"]}), "city")
    events = pa.table({"user": [1, 2, 3]})
    for where in (None, "users.city < 7"):
        chain = prejoin.join(events, users, how="left", default={"city": 0})
        text = where and where.replace("users.", "probe.")
        chain = prejoin.join(chain, cities, how="left", where=text, default={"name": "?"})
        star = StarJoin(
            {
                "users": Leg(users, how="left", default={"city": 0}),
                "cities": Leg(cities, how="left", where=where, default={"name": "?"}),
            }
        )
        assert star(events).equals(chain)
        assert star(events.to_reader(max_chunksize=1)).read_all().equals(chain)
    assert chain["name"].to_pylist() == ["?", "?", "nowhere"]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(HOWS), st.data())
def test_prefix_and_tables_of_select(how: Any, data: st.DataObject) -> None:
    """A prefix is a build with other names; both tables together are the whole output."""
    build, columns = prejoin.prepare(BUILD, "id"), BUILD.column_names
    options: dict[str, Any] = {"on": {"k": "id"}, "how": how, "coalesce": data.draw(st.sampled_from([None, False]))}
    prefix = data.draw(st.sampled_from(["", "shop_"]))
    got = prejoin.join(PROBE, build, prefix=prefix, **options)
    named = prejoin.prepare(BUILD.rename_columns([prefix + name for name in columns]), prefix + "id")
    want = prejoin.join(PROBE, named, **{**options, "on": {"k": prefix + "id"}})
    if how == "mark":
        want = want.rename_columns([*want.column_names[:-1], prefix + "mark"])
    assert got.to_pylist() == want.to_pylist()
    assert got.schema.equals(want.schema)
    tables = [
        *(["probe.*"] if not how.startswith("build") else []),
        *(["build.*"] if how not in ("semi", "anti") else []),
    ]
    assert prejoin.join(PROBE, build, prefix=prefix, select=tables, **options).equals(got)
    if how in ("inner", "left"):
        leg = Leg(build, {"k": "id"}, how, prefix=prefix)
        assert (
            StarJoin({"b": leg})(PROBE)
            .select(prejoin.join(PROBE, build, {"k": "id"}, how).column_names[:3])
            .equals(got.select(PROBE.column_names))
        )
        star = StarJoin({"b": leg}, select=["b.*", {"key": "b.id"}, "probe.*"])(PROBE)
        chain = prejoin.join(
            PROBE, build, {"k": "id"}, how, prefix=prefix, select=["build.*", {"key": "build.id"}, "probe.*"]
        )
        assert star.equals(chain)


def test_tables_of_select_in_a_star() -> None:
    users = prejoin.prepare(pa.table({"user": [1, 2], "city": [7, 8], "name": ["ada", "bob"]}), "user")
    cities = prejoin.prepare(pa.table({"city": [7, 8], "name": ["Rome", "Oslo"], "land": [39, 47]}), "city")
    events = pa.table({"user": [2, 1], "name": ["x", "y"]})
    legs = {
        "u": Leg(users, prefix="u_"),
        "c": Leg(cities, on="u.city", select={"town": "name"}),
        "m": Leg(users, how="mark"),
    }
    assert StarJoin(legs).schema(events.schema).names == ["user", "name", "u_city", "u_name", "town", "mark"]
    chosen = StarJoin(legs, select=["c.*", "m.*", "probe.*", {"city": "c.city"}, "c.land"])(events)
    assert chosen.to_pydict() == {
        "town": ["Oslo", "Rome"],
        "mark": [True, True],
        "user": [2, 1],
        "name": ["x", "y"],
        "city": [8, 7],
        "land": [47, 39],
    }
    star = StarJoin(legs, select=["c.*", {"city": "c.city"}])
    assert star.select == ["c.*", {"city": "c.city"}]
    for select, text in (
        (["zz.*"], 'names "zz.*", "zz" is none of the tables; there are probe.user'),
        ({"a": "u.*"}, 'gives all columns of "u" one name'),
        (["probe.*", "user"], 'gives two columns the name "user"'),
    ):
        with pytest.raises(PlanError) as caught:
            StarJoin(legs, select=select).schema(events)
        assert text in str(caught.value)
    with pytest.raises(PlanError, match=r'names "s\.\*", a semi join gives no build columns'):
        StarJoin({"s": Leg(users, how="semi")}, select=["s.*"])(events)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HOWS), st.data())
def test_a_schema_without_rows_is_that_of_the_join(how: Any, data: st.DataObject) -> None:
    prefix, suffix = data.draw(st.sampled_from(["", "b_"])), data.draw(st.sampled_from(["_right", "_2"]))
    options: dict[str, Any] = {"on": {"k": "id"}, "how": how, "prefix": prefix, "suffix": suffix}
    if how in ("left", "full") and data.draw(st.booleans()):
        options["default"] = {"v": "none"}
    if how in ("left", "inner"):
        options["select"] = data.draw(st.sampled_from([None, ["probe.*", "build.n"], {"a": "w"}]))
    build = prejoin.prepare(BUILD, "id")
    want = prejoin.join(PROBE, build, **options).schema
    sides: list[Any] = [build, BUILD.schema, BUILD, BUILD.to_batches()[0]]
    for side in sides:
        for probe in (PROBE.schema, PROBE, PROBE.to_batches()[0].schema):
            assert prejoin.join_schema(probe, side, **options).equals(want, check_metadata=True)


def test_schemas_read_no_rows_and_take_legs() -> None:
    read = []

    def rows() -> Any:
        read.append(1)
        yield PROBE.to_batches()[0]

    build = prejoin.prepare(BUILD, "id")
    reader = pa.RecordBatchReader.from_batches(PROBE.schema, rows())
    legs = [Leg(build, {"k": "id"}, "left", prefix="b_"), Leg(build, {"w": "id"}, "mark")]
    want = prejoin.join(PROBE, legs).schema
    assert prejoin.join_schema(reader, legs).equals(want)
    assert prejoin.join_schema(PROBE.schema, legs, select=["mark"]).names == ["mark"]
    assert StarJoin(legs).schema(reader).equals(want)
    assert not read
    with pytest.raises(PlanError, match='no column "zz"'):
        prejoin.join_schema(PROBE.schema, build, on={"zz": "id"})
    with pytest.raises(PlanError, match="together with on="):
        prejoin.join_schema(PROBE.schema, BUILD.schema)


def test_legs_show_and_pickle_prefix_and_default(tmp_path: Path) -> None:
    prejoin.prepare(BUILD.select(["id", "v", "x"]), "id").save(tmp_path / "build")
    build = prejoin.open(tmp_path / "build")
    given: dict[str, Any] = {"v": "?"}
    leg = Leg(build, {"k": "id"}, "left", prefix="b_", select=["v", {"price": "x"}], default=given)
    given["v"] = "changed"
    assert (leg.prefix, leg.default, leg.select) == ("b_", {"v": "?"}, ["v", {"price": "x"}])
    assert repr(leg).endswith("how='left', prefix='b_', select=['v', {'price': 'x'}], default={'v': '?'})")
    star = StarJoin({"b": leg}, select=["k", "b.*"])
    for other in (star, pickle.loads(pickle.dumps(star))):
        assert other(PROBE).to_pydict() == {
            "k": [2, 3, 2, None, 1],
            "b_v": [None, "?", None, "?", "a"],
            "price": [1.5, None, 1.5, None, 0.5],
        }
    frozen = leg.default
    frozen["v"] = "changed"
    assert leg.default == {"v": "?"}


def test_as_of_joins_have_prefix_and_default() -> None:
    quotes = prejoin.prepare(pa.table({"k": ["a", "a"], "at": [1, 5], "bid": [10, 11]}), "k", order_by="at")
    trades = pa.table({"k": ["a", "b", "a"], "at": [4, 4, 9]})
    plain = prejoin.join_asof(trades, quotes)
    got = prejoin.join_asof(trades, quotes, prefix="q_", default={"bid": -1, "at": 0})
    assert got.column_names == ["k", "at", "q_at", "q_bid"]
    assert got["q_bid"].to_pylist() == pc.fill_null(plain["bid"], -1).to_pylist() == [10, -1, 11]
    assert got["q_at"].to_pylist() == [1, 0, 5]
    leg = Leg(quotes, how="left", asof="at", prefix="q_", default={"bid": -1, "at": 0})
    assert StarJoin([leg])(trades).equals(got)
