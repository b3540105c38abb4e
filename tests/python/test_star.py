"""Star joins: one pass over several builds gives what a chain of joins gives."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prejoin
from prejoin import Leg, PlanError, StarJoin

KINDS = ["inner", "left", "semi", "anti", "mark"]
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
        on: dict[str, str] = {}
        for name, data_type in random.sample(columns, random.randint(1, min(2, len(columns)))):
            fits = [a for a, other in self.types.items() if kind_of(other) == kind_of(data_type) and a not in on]
            if fits:
                on[random.choice(fits)] = name
        if not on:
            return
        rows = table(random, columns, random.choice([0, 1, 4, 20]), leg)
        null_equal, how = random.random() < 0.4, random.choice(KINDS)
        keep = random.choice(["all", "all", "first"])
        where = self.condition(leg, columns) if random.random() < 0.4 else None
        keys = list(on.values())
        free = [name for name, _ in columns if name not in keys]
        select = None
        if how in ("inner", "left") and random.random() < 0.4:
            select = random.sample([name for name, _ in columns], random.randint(0, len(columns)))
        suffix = random.choice(["_right", "_x", ""])
        build = prejoin.prepare(rows, keys, null_equal=null_equal, keep=keep)
        self.legs[leg] = Leg(build, on=on, how=how, where=where, suffix=suffix, select=select)
        own = renamed(rows, [f"{leg}.{name}" for name in rows.column_names])
        self.chain.append({
            "build": prejoin.prepare(own, [f"{leg}.{key}" for key in keys], null_equal=null_equal, keep=keep),
            "on": {address: f"{leg}.{key}" for address, key in on.items()},
            "how": how,
            "where": where,
            "leg": leg,
        })
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
    assert not addresses or chosen.equals(renamed(wanted, [f"c{i}" for i in range(len(addresses))]), check_metadata=True)
    assert chosen.num_rows == expected.num_rows
