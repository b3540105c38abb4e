"""Prepared builds within DuckDB and DataFusion: as relations, and by scalar functions over them (docs/sql.md)."""

# mypy: allow-untyped-calls, disable-error-code="call-overload"
from __future__ import annotations

from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest

import prejoin
from test_readme import python_in

USERS = pa.table(
    {
        "id": pa.array(range(5_000)),
        "name": pa.array([None if i % 7 == 0 else f"user {i % 100}" for i in range(5_000)]),
        "vip": pa.array([i % 3 == 0 for i in range(5_000)]),
        "tags": pa.array([[i, None] if i % 2 else None for i in range(5_000)]),
        "kind": pa.array([f"k{i % 4}" for i in range(5_000)]).dictionary_encode(),
    }
)
EVENTS = pa.table(
    {
        "minute": range(20_000),
        "user": pa.array([None if i % 11 == 0 else (i * 7919) % 7_000 for i in range(20_000)], pa.int64()),
    }
)


@pytest.fixture
def users() -> prejoin.PreparedBuild:
    return prejoin.prepare(USERS, "id")


def test_examples() -> None:
    blocks = python_in("docs/sql.md")
    assert len(blocks) == 6
    exec(compile("\n".join(blocks), "docs/sql.md", "exec"), {"__name__": "sql"})


def test_a_build_is_a_table_for_whoever_reads_tables(pool: prejoin.MemoryPool) -> None:
    """B10. Any number of times, also where the build is mapped; the rows keep the build alive."""
    build = prejoin.prepare(USERS, "id", pool=pool)
    for _ in range(2):
        assert pa.table(build).equals(USERS)
    assert pa.schema(build).equals(USERS.schema)
    shared = build.share().open(pool=pool)
    assert pa.table(shared).equals(USERS)
    again = prejoin.prepare(shared, ["kind", "id"])
    assert again.keys == ["kind", "id"]
    assert again.to_table().equals(USERS)
    reader = pa.RecordBatchReader.from_stream(build)
    kept = prejoin.prepare(pa.table({"k": [1]}), "k", pool=pool)
    rows = pa.table(kept)
    del kept, build, shared
    assert pool.reserved > 0
    assert reader.read_all().equals(USERS)
    assert rows.to_pydict() == {"k": [1]}


QUERIES = [
    "SELECT id, name, kind FROM {users} WHERE vip AND id < 1000 ORDER BY id",
    "SELECT kind, count(*) AS n, count(name) AS named FROM {users} GROUP BY kind ORDER BY kind",
    'SELECT e.minute, u.name FROM {events} e JOIN {users} u ON u.id = e."user" WHERE u.vip ORDER BY e.minute',
]


def in_duckdb(query: str, **tables: Any) -> list[dict[str, Any]]:
    with duckdb.connect() as con:
        for name, rows in tables.items():
            con.register(name, rows)
        found: list[dict[str, Any]] = con.sql(query).to_arrow_table().to_pylist()
        return found


def in_datafusion(query: str, **tables: Any) -> list[dict[str, Any]]:
    ctx = datafusion.SessionContext()
    for name, rows in tables.items():
        ctx.from_arrow(rows, name=name)
    found: list[dict[str, Any]] = ctx.sql(query).to_pylist()
    return found


@pytest.mark.parametrize("engine", [in_duckdb, in_datafusion])
@pytest.mark.parametrize("query", QUERIES)
def test_a_relation_in_sql(users: prejoin.PreparedBuild, engine: Any, query: str) -> None:
    """As of the table that the build was made of."""
    named = query.format(users="users", events="events")
    wanted = engine(named, users=USERS, events=EVENTS)
    assert wanted
    assert engine(named, users=users, events=EVENTS) == wanted


@pytest.mark.parametrize("default", [None, "nobody"])
def test_a_scalar_function_is_a_left_join(users: prejoin.PreparedBuild, default: str | None) -> None:
    asked = []

    def user_name(ids: Any) -> Any:
        asked.append(len(ids))
        return users.map(ids, "name", default)

    join = """SELECT e.minute, CASE WHEN u.id IS NULL THEN $default ELSE u.name END AS name
        FROM events e LEFT JOIN users u ON u.id = e."user" ORDER BY e.minute"""
    with duckdb.connect() as con:
        con.register("events", EVENTS)
        con.register("users", USERS)
        wanted = con.sql(join, params={"default": default}).to_arrow_table().to_pydict()
        con.create_function("user_name", user_name, ["BIGINT"], "VARCHAR", type="arrow", null_handling="special")
        call = 'SELECT minute, user_name("user") AS name FROM events ORDER BY minute'
        assert con.sql(call).to_arrow_table().to_pydict() == wanted
    assert 0 < sum(asked) <= EVENTS.num_rows
    assert max(asked) <= 2_048

    ctx = datafusion.SessionContext()
    ctx.from_arrow(EVENTS, name="events")
    ctx.register_udf(datafusion.udf(user_name, [pa.int64()], pa.string(), "stable", "user_name"))
    assert ctx.sql(call).to_pydict() == wanted


def test_an_error_fails_the_query(users: prejoin.PreparedBuild) -> None:
    with duckdb.connect() as con:
        con.create_function("user_name", lambda ids: users.map(ids, "name"), ["VARCHAR"], "VARCHAR", type="arrow")
        with pytest.raises(duckdb.Error, match="does not compare with the build's key of type Int64"):
            con.sql("SELECT user_name('x')").fetchall()
    ctx = datafusion.SessionContext()
    ctx.register_udf(datafusion.udf(lambda ids: users.map(ids, "name"), [pa.string()], pa.string(), "stable", "f"))
    with pytest.raises(Exception, match=r"PlanError.* does not compare with the build"):
        ctx.sql("SELECT f('x')").to_pylist()
