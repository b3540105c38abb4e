"""Files as the rows of a build: what `prejoin.prepare` reads of a path."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

import pyarrow as pa

from prejoin.files.csv_read import Csv
from prejoin.files.errors import FileError
from prejoin.files.formats import SAY, TEXT, expand, input_file, is_saved_build
from prejoin.files.tables import Tables, read_whole


def open_rows(
    path: str | os.PathLike[str], keys: Sequence[str], columns: Sequence[str] | None
) -> pa.Table | pa.RecordBatchReader:
    """The rows of the files that a path or pattern means: their keys and `columns` alone, where that is possible."""
    name = os.fspath(path)
    # On the command line it is standard input.
    name = os.path.join(os.curdir, name) if name == "-" else name
    if not glob.has_magic(name):
        os.stat(name)
    paths = expand([name])
    if saved := next((path for path in paths if is_saved_build(path)), None):
        raise FileError(f"{saved}: is a build that was prepared and saved; open it by prejoin.open")
    csv = Csv(keys=frozenset(keys))
    try:
        files = [input_file(path, None) for path in paths]
        if any(file.format in TEXT for file in files):
            return read_whole(files, csv).rows
        tables = Tables(files, 1 << 17, csv)
    except FileError as error:
        # The options of the command line are not at hand.
        raise FileError(str(error).replace(SAY, "read it by pyarrow and give the table")) from error.__cause__
    wanted = None if columns is None else [*keys, *columns]
    # The caller says which columns there are, where one is missing.
    if wanted is not None and not set(wanted) <= set(tables.schema.names):
        wanted = None
    return tables.reader(wanted)
