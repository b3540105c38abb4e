"""Documented examples of pandas, polars and pyarrow, and the same with one call replaced: both give the same.

The data and the calls are those of the libraries' reference pages, which the names say. What is prepared once stands
before the example, since that is what the replaced call does each time.
"""

# mypy: disable-error-code="attr-defined,operator", allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import prejoin
import prejoin.pandas
import prejoin.polars

Examples = tuple[Any, Any]
EXAMPLES: list[Callable[[], Examples]] = []


def example(function: Callable[[], Examples]) -> Callable[[], Examples]:
    """Gives the answer as documented, and that of the replaced call."""
    EXAMPLES.append(function)
    return function


@example
def pandas_merge_left_on_right_on() -> Examples:
    df1 = pd.DataFrame({"lkey": ["foo", "bar", "baz", "foo"], "value": [1, 2, 3, 5]})
    df2 = pd.DataFrame({"rkey": ["foo", "bar", "baz", "foo"], "value": [5, 6, 7, 8]})
    right = prejoin.prepare(df2, on="rkey")
    columns = {"lkey": "lkey", "value_left": "probe.value", "rkey": "build.rkey", "value_right": "build.value"}
    return (
        df1.merge(df2, left_on="lkey", right_on="rkey", suffixes=("_left", "_right")),
        df1.prejoin.join(right, on={"lkey": "rkey"}, select=columns),
    )


@example
def pandas_merge_inner() -> Examples:
    df1 = pd.DataFrame({"a": ["foo", "bar"], "b": [1, 2]})
    df2 = pd.DataFrame({"a": ["foo", "baz"], "c": [3, 4]})
    right = prejoin.prepare(df2, on="a")
    return df1.merge(df2, how="inner", on="a"), df1.prejoin.join(right, how="inner", on="a")


@example
def pandas_merge_left() -> Examples:
    df1 = pd.DataFrame({"a": ["foo", "bar"], "b": [1, 2]})
    df2 = pd.DataFrame({"a": ["foo", "baz"], "c": [3, 4]})
    right = prejoin.prepare(df2, on="a")
    # pandas makes floats of integers that gain nulls.
    return df1.merge(df2, how="left", on="a").astype({"c": "Int64"}), df1.prejoin.join(right, how="left", on="a")


@example
def pandas_join_on_a_column() -> Examples:
    df = pd.DataFrame({"key": ["K0", "K1", "K2", "K3", "K4", "K5"], "A": ["A0", "A1", "A2", "A3", "A4", "A5"]})
    other = pd.DataFrame({"key": ["K0", "K1", "K2"], "B": ["b0", "b1", "b2"]})
    right = prejoin.prepare(other, on="key")
    return df.join(other.set_index("key"), on="key"), df.prejoin.join(right, on="key", how="left")


@example
def pandas_join_that_repeats_rows() -> Examples:
    """With `validate="m:1"`, as the page shows it."""
    df = pd.DataFrame({"key": ["K0", "K1", "K1", "K3", "K0", "K1"], "A": ["A0", "A1", "A2", "A3", "A4", "A5"]})
    other = pd.DataFrame({"key": ["K0", "K1", "K2"], "B": ["b0", "b1", "b2"]})
    right = prejoin.prepare(other, on="key")
    return (
        df.join(other.set_index("key"), on="key", validate="m:1"),
        df.prejoin.join(right, on="key", how="left", validate="m:1"),
    )


@example
def pandas_series_map() -> Examples:
    s = pd.Series(["cat", "dog", np.nan, "rabbit"])
    young = {"cat": "kitten", "dog": "puppy"}
    names = prejoin.prepare(pd.DataFrame({"animal": young.keys(), "young": young.values()}), on="animal")
    return s.map(young), s.prejoin.map(names, "young")


@example
def pandas_series_isin() -> Examples:
    s = pd.Series(["llama", "cow", "llama", "beetle", "llama", "hippo"], name="animal")
    animals = prejoin.prepare(pd.DataFrame({"animal": ["cow", "llama"]}), on="animal")
    return s.isin(["cow", "llama"]), s.prejoin.contains(animals)


@example
def pandas_rows_chosen_by_isin() -> Examples:
    df = pd.DataFrame({"A": [5, 6, 3, 4], "B": [1, 2, 3, 5]})
    chosen = prejoin.prepare(pd.DataFrame({"A": [3, 6]}), on="A")
    return df[df["A"].isin([3, 6])], df[df["A"].prejoin.contains(chosen)]


DF = pl.DataFrame({"foo": [1, 2, 3], "bar": [6.0, 7.0, 8.0], "ham": ["a", "b", "c"]})
OTHER_DF = pl.DataFrame({"apple": ["x", "y", "z"], "ham": ["a", "b", "d"]})


@example
def polars_join_inner() -> Examples:
    other = prejoin.prepare(OTHER_DF, on="ham")
    return DF.join(OTHER_DF, on="ham"), DF.prejoin.join(other, on="ham")


@example
def polars_join_full() -> Examples:
    other = prejoin.prepare(OTHER_DF, on="ham")
    return (
        DF.join(OTHER_DF, on="ham", how="full", maintain_order="left_right"),
        DF.prejoin.join(other, on="ham", how="full", coalesce=False).select("foo", "bar", "ham", "apple", "ham_right"),
    )


@example
def polars_join_left() -> Examples:
    other = prejoin.prepare(OTHER_DF, on="ham")
    return DF.join(OTHER_DF, on="ham", how="left", coalesce=True), DF.prejoin.join(other, on="ham", how="left")


@example
def polars_join_anti() -> Examples:
    other = prejoin.prepare(OTHER_DF, on="ham")
    return DF.join(OTHER_DF, on="ham", how="anti"), DF.prejoin.join(other, on="ham", how="anti")


@example
def polars_lazy_join_semi() -> Examples:
    other = prejoin.prepare(OTHER_DF, on="ham")
    lf, other_lf = DF.lazy(), OTHER_DF.lazy()
    return lf.join(other_lf, on="ham", how="semi").collect(), lf.prejoin.join(other, on="ham", how="semi").collect()


@example
def polars_replace_strict() -> Examples:
    df = pl.DataFrame({"a": [1, 2, 2, 3]})
    mapping = {1: 1, 2: 100, 3: 200}
    held = prejoin.prepare(pl.DataFrame({"old": mapping.keys(), "new": mapping.values()}), on="old")
    return (
        df.with_columns(replaced=pl.col("a").replace_strict(mapping)),
        df.with_columns(replaced=pl.col("a").prejoin.map(held, "new")),
    )


@example
def polars_replace_strict_with_default() -> Examples:
    df = pl.DataFrame({"a": ["x", "y", "z"]})
    mapping = {"x": 1, "y": 2}
    held = prejoin.prepare(pl.DataFrame({"old": mapping.keys(), "new": mapping.values()}), on="old")
    return (
        df.with_columns(replaced=pl.col("a").replace_strict(mapping, default=-1)),
        df.with_columns(replaced=pl.col("a").prejoin.map(held, "new", default=-1)),
    )


@example
def polars_series_is_in() -> Examples:
    s = pl.Series("a", [1, 2, 3])
    s2 = pl.Series("b", [2, 4])
    held = prejoin.prepare(s.to_frame(), on="a")
    return s2.is_in(s.to_list()), s2.prejoin.contains(held)


T1 = pa.table({"id": [1, 2, 3], "year": [2020, 2022, 2019]})
T2 = pa.table({"id": [3, 4], "n_legs": [5, 100], "animal": ["Brittle stars", "Centipede"]})


@example
def pyarrow_join_left_outer() -> Examples:
    right = prejoin.prepare(T2, on="id")
    return (
        T1.join(T2, "id").combine_chunks().sort_by("year"),
        prejoin.join(T1, right, "id", "left outer").combine_chunks().sort_by("year"),
    )


@example
def pyarrow_join_full_outer() -> Examples:
    right = prejoin.prepare(T2, on="id")
    return (
        T1.join(T2, "id", join_type="full outer").combine_chunks().sort_by("year"),
        prejoin.join(T1, right, "id", "full outer").combine_chunks().sort_by("year"),
    )


@example
def pyarrow_join_inner() -> Examples:
    right = prejoin.prepare(T2, on="id")
    return (
        T1.join(T2, "id", join_type="inner").combine_chunks(),
        prejoin.join(T1, right, "id", "inner").combine_chunks(),
    )


@example
def pyarrow_is_in() -> Examples:
    right = prejoin.prepare(T2, on="id")
    return T1.filter(pc.is_in(T1["id"], value_set=pa.array([3, 4]))), T1.filter(right.contains(T1["id"]))


@pytest.mark.parametrize("documented", EXAMPLES, ids=lambda function: function.__name__)
def test_a_documented_example_with_one_call_replaced(documented: Callable[[], Examples]) -> None:
    before, after = documented()
    assert type(after) is type(before)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)
    elif isinstance(before, pd.Series):
        pd.testing.assert_series_equal(after, before)
    elif isinstance(before, pl.DataFrame):
        pl.testing.assert_frame_equal(after, before)
    elif isinstance(before, pl.Series):
        pl.testing.assert_series_equal(after, before)
    else:
        assert after.equals(before)
