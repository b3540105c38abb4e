"""Parquet files as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from prejoin.files.errors import FileError

INT96_UNIT = "us"
"""Times of the old 96-bit form reach far beyond what 64 bits of nanoseconds do."""


class ParquetSource:
    """One Parquet file, read piece by piece: memory does not follow the size of its row groups."""

    def __init__(self, source: Any, name: str) -> None:
        """`source` is a path or something that seeks; `name` is what messages call it."""
        self._source, self._name = source, name
        with self._open() as file:
            self.schema: pa.Schema = file.schema_arrow
            self.num_rows: int = file.metadata.num_rows
            paths = [file.schema.column(i) for i in range(len(file.schema))]
            self._old_times = [column.path for column in paths if column.physical_type == "INT96"]

    def _open(self, unit: str | None = INT96_UNIT) -> Any:
        return pa.parquet.ParquetFile(
            self._source, buffer_size=1 << 20, pre_buffer=False, coerce_int96_timestamp_unit=unit
        )

    def batches(self, batch_size: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """All rows, of some columns or all."""
        old = [path for path in self._old_times if columns is None or path.split(".")[0] in columns]
        with self._open() as file:
            batches = file.iter_batches(batch_size, columns=columns)
            if not old:
                yield from batches
                return
            with self._open("ns") as exact:
                for batch, finer in zip(batches, exact.iter_batches(batch_size, columns=old), strict=True):
                    for name, times in zip(finer.schema.names, finer.columns, strict=True):
                        self._check(name, batch.column(name), times)
                    yield batch

    def _check(self, name: str, times: pa.Array, finer: pa.Array) -> None:
        """Refuse nanoseconds that microseconds do not hold. Times that nanoseconds do not reach have wrapped."""
        if not pa.types.is_timestamp(times.type):
            return
        nanoseconds = finer.cast(pa.int64())
        coarse = pc.floor(pc.divide(nanoseconds.cast(pa.float64(), safe=False), 1000.0))
        same = pc.less(pc.abs(pc.subtract(coarse, times.cast(pa.int64()).cast(pa.float64(), safe=False))), 4096.0)
        whole = pc.multiply(pc.divide(nanoseconds, 1000), 1000)
        lost = pc.fill_null(pc.and_(same, pc.not_equal(whole, nanoseconds)), False)
        if pc.any(lost).as_py():
            raise FileError(
                f"{self._name}: column {name!r} holds INT96 times with nanoseconds, which are read as microseconds; "
                "write the file anew with timestamps of 64 bits"
            )
