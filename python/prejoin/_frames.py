"""Results as objects of the library that the caller's rows or keys are of.

Each function takes rows of pyarrow, and is called only for objects of a library that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as _pandas
    import polars as pl


# What pyarrow says of types that pandas has no place for.
_REFUSALS = (pa.ArrowNotImplementedError, pa.ArrowInvalid)


class Stream:
    """Rows of pyarrow that other libraries read as of any library, with the metadata of their columns."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)


def polars_frame(rows: Any, like: pl.DataFrame) -> pl.DataFrame:
    """As a `polars.DataFrame`: the types that polars wrote come back, enums and categoricals among them."""
    # Of the class and not of the module: an object can be of a library that was replaced since.
    classes = [base for base in type(like).__mro__ if base.__name__ == "DataFrame"]
    frame: pl.DataFrame = classes[-1](Stream(rows))
    return frame


def polars_series(rows: Any, keys: pl.Series) -> pl.Series:
    """The first column as a `polars.Series` with the name of `keys`."""
    return polars_frame(rows, keys.to_frame()).to_series().alias(keys.name)


def arro3_rows(rows: Any, like: Any) -> Any:
    """As an `arro3.core.Table` or `RecordBatch`."""
    return type(like).from_arrow(rows)


def nanoarrow_array(rows: Any, like: Any) -> Any:
    """As a `nanoarrow.Array` of structs."""
    return type(like)(rows)


def nanoarrow_c_array(rows: Any, _: Any) -> Any:
    """As a `nanoarrow.c_array` of structs."""
    import nanoarrow

    return nanoarrow.c_array(rows)


def pandas_series(rows: Any, keys: _pandas.Series) -> _pandas.Series:
    """The first column as a `pandas.Series` with the name and the index of `keys`."""
    series = _series(rows.column(0))
    series.index, series.name = keys.index, keys.name
    return series


def pandas_index(rows: Any, keys: _pandas.Index) -> _pandas.Index:
    """The first column as a `pandas.Index` with the name of `keys`."""
    import pandas as pd

    return pd.Index(_series(rows.column(0)), name=keys.name)


def _series(column: Any) -> _pandas.Series:
    """A column as `pandas_frame` makes it, without the frame."""
    import pandas as pd

    dtype = _pandas_dtype(column, None, None)
    if dtype is None:
        try:
            series = column.to_pandas(integer_object_nulls=True)
        except _REFUSALS:
            dtype = pd.ArrowDtype(column.type)
        else:
            # These can be views of Arrow's memory, which may not be written to.
            return series.copy() if column.null_count == 0 and pa.types.is_primitive(column.type) else series
    return pd.Series(dtype.__from_arrow__(column), copy=False)


def pandas_frame(
    rows: Any,
    like: _pandas.DataFrame | None = None,
    columns: list[int | None] | None = None,
    backend: str | None = None,
) -> _pandas.DataFrame:
    """As a `pandas.DataFrame` with an index of row numbers.

    Args:
        rows: A pyarrow.Table or RecordBatch.
        like: The probe side. Its columns keep their types and labels, unless integers or Booleans gained nulls.
        columns: For each column of `rows` its position in `like`, if it comes from there.
        backend: "numpy_nullable" or "pyarrow" for such types in all columns.

    """
    import pandas as pd

    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    names = table.column_names
    sources: list[Any] = [None] * len(names)
    labels: list[Any] = list(names)
    if like is not None and columns is not None:
        dtypes, own = list(like.dtypes), _labels(like)
        for at, column in enumerate(columns):
            if column is not None:
                sources[at] = dtypes[column]
                name, label = own[column]
                if name == names[at]:
                    labels[at] = label
    special = {}
    for at, source in enumerate(sources):
        dtype = _pandas_dtype(table.column(at), source, backend)
        if dtype is not None:
            special[at] = dtype
    frame = _assembled(table, special)
    if backend is None:
        for at, (source, found) in enumerate(zip(sources, frame.dtypes, strict=True)):
            if source is not None and at not in special and source != found:
                _restore(frame, at, source, table.column(at))
    if any(label is not name for label, name in zip(labels, names, strict=True)):
        frame.columns = pd.Index(labels, tupleize_cols=False)
    return frame


def _labels(frame: _pandas.DataFrame) -> list[tuple[str, Any]]:
    """The labels of the columns, each after the name that the column has in Arrow."""
    labels = list(frame.columns)
    texts = all(isinstance(label, str) for label in labels)
    names = labels if texts else pa.Schema.from_pandas(frame.iloc[:0], preserve_index=False).names
    return list(zip(names, labels, strict=True))


def _assembled(table: Any, special: dict[int, Any]) -> _pandas.DataFrame:
    """A frame of `table` with these types in the columns at these positions, and pandas' own in the others."""
    import pandas as pd

    plain = [at for at in range(table.num_columns) if at not in special]
    try:
        frame = _plain(table.select(plain) if special else table)
    except _REFUSALS:
        # pandas has no type of its own for times with nanoseconds or unions, and others lose digits or nulls.
        def fails(at: int) -> bool:
            try:
                _plain(table.select([at]))
            except _REFUSALS:
                return True
            return False

        odd = {at: pd.ArrowDtype(table.field(at).type) for at in plain if fails(at)}
        if not odd:
            raise
        return _assembled(table, {**special, **odd})
    for at in sorted(special):
        values = special[at].__from_arrow__(table.column(at))
        frame.insert(at, table.column_names[at], values, allow_duplicates=True)
    return frame


def _plain(table: Any) -> _pandas.DataFrame:
    # The notes on pandas' types that a schema may hold are those of a file, before the join. Integers within lists and
    # structs would become floats where there are nulls.
    return table.to_pandas(ignore_metadata=True, integer_object_nulls=True)


def _pandas_dtype(column: Any, source: Any, backend: str | None) -> Any:
    """The type to ask for; None for what pyarrow chooses."""
    import pandas as pd

    if backend == "pyarrow":
        return pd.ArrowDtype(column.type)
    if backend == "numpy_nullable":
        return _nullable(column.type)
    if isinstance(source, pd.api.extensions.ExtensionDtype):
        return source if hasattr(source, "__from_arrow__") else None
    numbers = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    if numbers and column.null_count and getattr(source, "kind", "i") != "O":
        return _nullable(column.type)
    return None


NULLABLE = {
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
    "bool": "boolean",
    "float": "Float32",
    "double": "Float64",
    **dict.fromkeys(("string", "large_string", "string_view"), "string"),
}


def _nullable(data_type: Any) -> Any:
    """The nullable pandas type for values of an Arrow type, such as Int64 for int64; None if pandas has none."""
    import pandas as pd

    word = NULLABLE.get(str(data_type))
    return None if word is None else pd.api.types.pandas_dtype(word)


def _restore(frame: _pandas.DataFrame, at: int, dtype: Any, column: Any) -> None:
    """Gives a column of the probe side its type again where that keeps every value."""
    import pandas as pd

    values = frame.iloc[:, at]
    if isinstance(dtype, pd.CategoricalDtype):
        # A key of a right or full join has values of the build too.
        if isinstance(values.dtype, pd.CategoricalDtype) and not set(values.cat.categories) <= set(dtype.categories):
            return
        values = values.astype(dtype)
    elif getattr(dtype, "kind", None) == "O":
        strings = str(column.type) in ("string", "large_string", "string_view")
        values = pd.Series(column.to_numpy() if strings else values, index=frame.index, dtype=object)
    else:
        return
    frame.isetitem(at, values)
