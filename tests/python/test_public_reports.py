"""Every case of cases.py, distilled from public bug reports, against a prepared build.

The cases call the build side `left`.
"""

from __future__ import annotations

import operator
import os
import pickle
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import prejoin
from cases import CHECKS, Stream, accepts, canon_rows, load_cases, same, steps, variants
from prejoin import _core

Case = dict[str, Any]

# Every NaN equals every NaN, -0.0 equals 0.0.
POLICY = "canon"

HOW: dict[str, Any] = {
    "inner": "inner",
    "left": "build_outer",
    "right": "probe_outer",
    "full": "full",
    "left_semi": "build_semi",
    "left_anti": "build_anti",
    "right_semi": "semi",
    "right_anti": "anti",
}

# An error is an answer too: more than 2 GiB in one column, and batches that differ from each other. Where other cases
# allow one for types that a library may not know, rows are due.
MAY_FAIL = {"string_output_above_2gib", "batch_nullability_differs"}

OPERATORS = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "add": operator.add,
    "sub": operator.sub,
    "div": operator.truediv,
}


def where(expression: Any) -> prejoin.Expr:
    """The residual predicate of a case as an expression of this library."""
    name, *operands = expression
    if name in ("b", "p"):
        return prejoin.col(f"{'build' if name == 'b' else 'probe'}.{operands[0]}")
    if name == "lit":
        return prejoin.lit(operands[0])
    parts = [where(operand) for operand in operands]
    if name == "isnull":
        return parts[0].is_null()
    return ~parts[0] if name == "not" else OPERATORS[name](*parts)


def schema_of(side: Any) -> pa.Schema:
    return side[0].schema if isinstance(side, list) else side.schema


def source(side: Any) -> Any:
    """A fresh source: a stream is opened, and a list of batches becomes an iterator without a schema."""
    if isinstance(side, Stream):
        return side.open()
    return iter(side) if isinstance(side, list) else side


def hash_join(case: Case, probe: Any, **options: Any) -> prejoin.HashJoin:
    params, build = case["params"], schema_of(case["build"])
    if case["residual_expr"] is not None:
        options["where"] = where(case["residual_expr"])
    if "fetch" in params:
        options["limit"] = params["fetch"]
    if "projection" in params:
        options["projection"] = [at if side == "b" else len(build) + at for side, at in params["projection"]]
    null_equal = case["null_equality"] == "equal"
    return prejoin.HashJoin(
        build=build, probe=probe, on=case["on"], how=HOW[case["how"]], null_equal=null_equal, **options
    )


def prepare(case: Case) -> prejoin.PreparedBuild:
    return hash_join(case, schema_of(case["probe"])).prepare_build(source(case["build"]))


def execute(case: Case, prepared: prejoin.PreparedBuild, **options: Any) -> pa.RecordBatchReader:
    probe = source(case["probe"])
    if isinstance(case["probe"], list):
        probe = pa.RecordBatchReader.from_batches(schema_of(case["probe"]), probe)
    size = {"batch_size": case["params"]["batch_size"]} if "batch_size" in case["params"] else {}
    return hash_join(case, probe, **options).with_prepared_build(prepared).execute(**size)


def outcome(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises, also a panic, which is not an `Exception`: accepts() has to see it."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return error


def run(case: Case, prepared: prejoin.PreparedBuild | None = None) -> Any:
    return outcome(lambda: list(execute(case, prepared or prepare(case))))


def verify(case: Case, got: Any, label: str = "") -> None:
    ok, why = accepts({**case, "error_ok": case["name"] in MAY_FAIL}, got, POLICY)
    if not ok and isinstance(got, BaseException):
        raise AssertionError(f"{label}: {why}") from got
    assert ok, f"{label}: {why}"


# ---- checks: one function per name of CHECKS


def _batch_bound(case: Case, prepared: prejoin.PreparedBuild) -> None:
    assert max(batch.num_rows for batch in execute(case, prepared)) <= case["params"]["batch_size"]


def _repeat(case: Case, prepared: prejoin.PreparedBuild | None) -> None:
    for _ in range(3):
        verify(case, run(case, prepared), "repeat")


def _threads(case: Case, prepared: prejoin.PreparedBuild) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                verify(case, run(case, prepared), "threads")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def _filter_safe(case: Case, prepared: prejoin.PreparedBuild) -> None:
    """The join returns the same rows if its filter is applied to the probe side first."""
    keys = [probe for _, probe in case["on"]]
    dynamic = prejoin.DynamicFilter(schema_of(case["probe"]), keys)
    list(execute(case, prepared, dynamic_filter=dynamic))
    assert dynamic.is_complete
    batches = case["probe"] if isinstance(case["probe"], list) else case["probe"].to_batches()
    masks = [dynamic.evaluate(batch) for batch in batches]
    if case["how"] in ("right", "full", "right_anti"):
        assert all(all(mask.to_pylist()) for mask in masks)
    # Row by row, since pyarrow cannot filter views.
    kept = [
        batch.slice(row, 1)
        for batch, mask in zip(batches, masks, strict=True)
        for row, keep in enumerate(mask.to_pylist())
        if keep
    ]
    filtered = {**case, "probe": pa.Table.from_batches(kept, schema_of(case["probe"]))}
    verify(filtered, run(filtered, prepared), "filtered")


def _null_extended(case: Case, prepared: prejoin.PreparedBuild) -> None:
    schema, width = execute(case, prepared).schema, len(schema_of(case["build"]))
    if case["how"] in ("right", "full"):
        assert all(field.nullable for field in list(schema)[:width])
    if case["how"] in ("left", "full"):
        assert all(field.nullable for field in list(schema)[width:])


def _types_kept(case: Case, prepared: prejoin.PreparedBuild) -> None:
    assert execute(case, prepared).schema.types == schema_of(case["build"]).types + schema_of(case["probe"]).types


def _metadata_kept(case: Case, prepared: prejoin.PreparedBuild) -> None:
    sides = [*schema_of(case["build"]), *schema_of(case["probe"])]
    reader = execute(case, prepared)
    assert [field.metadata for field in reader.schema] == [field.metadata for field in sides]
    assert all(batch.schema.equals(reader.schema, check_metadata=True) for batch in reader)


def _count_only(case: Case, prepared: prejoin.PreparedBuild) -> None:
    batches = list(execute(case, prepared))
    assert all(batch.num_columns == 0 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == case["expected_count"]


def _fast(case: Case, prepared: prejoin.PreparedBuild) -> None:
    """A few buckets and comparisons per probe row; a quadratic walk would need rows * rows."""
    before = _core._probe_steps()
    list(execute(case, prepared))
    walked = _core._probe_steps() - before
    assert walked <= 8 * source(case["probe"]).num_rows + 64
    # A dense index neither compares nor walks.
    assert walked or prepared.index_kind == "dense", "nothing is counted without debug assertions: make develop"


def _message(case: Case, _prepared: object) -> None:
    with pytest.raises(ValueError, match="build source broke at row 4") as raised:
        prepare(case)
    assert raised.type is ValueError


def _roundtrip(case: Case, prepared: prejoin.PreparedBuild) -> None:
    """B5: saved, opened and pickled twice, verified and not."""
    with tempfile.TemporaryDirectory() as directory:
        for verify_file in (True, False):
            path = os.path.join(directory, "build")
            prepared.save(path)
            opened = prejoin.open(path, verify=verify_file)
            for _ in range(2):
                opened = pickle.loads(pickle.dumps(opened))
                verify(case, run(case, opened), "opened")
            opened.save(path)
            verify(case, run(case, prejoin.open(path)), "saved again")


def _variants(case: Case, _prepared: object) -> None:
    """All cuts of both sides and all batch sizes; test_case runs them for every case."""
    for label, variant in variants(case):
        verify(variant, run(variant), label)


RUN: dict[str, Callable[[Case, Any], None]] = {
    "batch_bound": _batch_bound,
    "batch_invariance": _variants,
    "probe_split": _variants,
    "build_split": _variants,
    "threads": _threads,
    "repeat": _repeat,
    "fetch_subset": lambda case, prepared: verify(case, run(case, prepared), "fetch"),
    "filter_safe": _filter_safe,
    "null_extended": _null_extended,
    "types_kept": _types_kept,
    "metadata_kept": _metadata_kept,
    "count_only": _count_only,
    "fast": _fast,
    "message": _message,
    "roundtrip": _roundtrip,
}


def passes(case: Case) -> None:
    """Raises unless the case passes alone, in sequence on one build, for all cuts of its sides, and in its checks."""
    prepared = outcome(lambda: prepare(case))
    if isinstance(prepared, BaseException):
        verify(case, prepared, "prepare")
        prepared = None
    else:
        for number, step in enumerate(steps(case)):
            verify(step, run(step, prepared), f"step {number}")
    _variants(case, prepared)
    for check in case["checks"]:
        RUN[check](case, prepared)
    if prepared is not None and not case["heavy"]:
        _roundtrip(case, prepared)


# The heavy ones need several GiB.
CASES = load_cases(heavy=os.environ.get("PREJOIN_HEAVY") == "1")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: Case) -> None:
    passes(case)


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_every_check_runs(check: str) -> None:
    assert check in RUN


def test_all_float_cases_have_the_same_policy() -> None:
    """The rows of a float case by another policy are not accepted, so the comparison can fail."""
    case = next(case for case in load_cases() if case["name"] == "float_nan_payloads")
    got = run(case)
    assert same(canon_rows(got), case["by_policy"][POLICY])
    assert not accepts(case, got, "ieee")[0]
