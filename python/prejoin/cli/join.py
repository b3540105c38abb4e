"""`prejoin join`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import prejoin
from prejoin.cli.build import BuildSide, open_build
from prejoin.cli.columns import check_keys, check_types, csv_options, mapping, pairs, selection
from prejoin.cli.condition import Condition
from prejoin.cli.errors import UsageError
from prejoin.cli.progress import Progress
from prejoin.files.csv_types import TEXT, strict
from prejoin.files.errors import FileError
from prejoin.files.formats import TEXT as TEXT_FORMATS
from prejoin.files.formats import expand, format_of, input_file
from prejoin.files.output import Output
from prejoin.files.tables import Tables


def join(options: argparse.Namespace) -> None:
    """Join the probe files to the build, batch by batch."""
    if [*options.build, *options.probe].count("-") > 1:
        raise UsageError("standard input is one file: give one of --build and --probe another name")
    on = pairs(options.on)
    where = Condition(options.where)
    # Text that goes into text is passed on as it is, but where its value counts.
    as_text = _out_format(options) in TEXT_FORMATS
    side = open_build(options, on, (lambda name: where.names(name, "build")) if as_text else lambda _: True)
    files = [input_file(path, options.probe_format or options.format) for path in expand(options.probe)]
    keys = (probe for probe, _ in side.pairs)
    csv = csv_options(options, keys, (lambda name: where.names(name, "probe")) if as_text else lambda _: True)
    probe = Tables(files, options.batch_size, csv)
    check_keys("probe", probe.schema, [name for name, _ in side.pairs])
    texts = [*side.texts, *([probe.schema] if any(file.format in TEXT_FORMATS for file in files) else [])]
    check_types(options, iter(texts))
    hints = _agree(side, probe)
    where.check("build", side.name, side.guesses)
    where.check("probe", ", ".join(file.name for file in files), probe.guesses)
    build = side.prepare()
    choices: dict[str, Any] = {
        "on": mapping(side.pairs),
        "how": options.how,
        "where": options.where,
        "select": selection(options.select, probe.schema, build.schema),
        "suffix": options.suffix,
        "limit": options.limit,
        "validate": options.validate,
        "batch_size": options.batch_size,
    }
    try:
        if options.explain:
            print("\n".join(_explain(build, probe, side.pairs, choices)))
            return
        _run(options, build, probe, choices)
    except prejoin.PlanError as error:
        # The way out of a CSV column that is text here and a number there is an option.
        if hints and "key types must match" in str(error):
            raise FileError(f"{str(error).strip()}; {'; '.join(hints)}") from None
        raise


def _out_format(options: argparse.Namespace) -> str | None:
    found: str | None = (
        options.out_format or options.format or ("csv" if options.out == "-" else format_of(options.out))
    )
    return found


def _run(options: argparse.Namespace, build: prejoin.PreparedBuild, probe: Tables, choices: dict[str, Any]) -> None:
    progress = Progress(sys.stderr, probe.num_rows, not options.quiet)
    columns = _needed(probe.schema, build.schema, choices)
    try:
        rows = prejoin.join(probe.reader(columns, progress.count_read), build, **choices)
        with Output(options.out, options.out_format or options.format, rows.schema) as out:
            for batch in rows:
                out.write(batch)
                progress.count_written(batch.num_rows)
        progress.close(f"{progress.read:,} probe rows read, {out.rows:,} rows written to {options.out}")
    finally:
        progress.close()


def _agree(side: BuildSide, probe: Tables) -> list[str]:
    """Bring the types of guessed key columns together, where that cannot make one value of two texts.

    A column without values takes on the other one's type; where one is text, the other is read as the text that it was
    written as. Gives advice for key columns that stay of different types.
    """
    hints = []
    for name, key in side.pairs:
        if name not in probe.schema.names or key not in side.schema.names:
            continue
        ours, theirs = probe.guesses.get(name), side.guesses.get(key)
        types = probe.schema.field(name).type, side.schema.field(key).type
        if types[0] == types[1]:
            continue
        if ours is not None and ours.empty:
            probe.retype(name, theirs or strict(_readable(types[1])))
        elif theirs is not None and theirs.empty:
            side.retype(key, ours or strict(_readable(types[0])))
        elif ours is not None and _is_text(types[1]):
            probe.retype(name, TEXT)
        elif theirs is not None and _is_text(types[0]):
            side.retype(key, TEXT)
        elif ours is not None:
            hints.append(f"read the probe column as that type by --csv-type {name}={types[1]}")
        elif theirs is not None:
            hints.append(f"read the build column as that type by --csv-type {key}={types[0]}")
    return hints


def _readable(data_type: pa.DataType) -> pa.DataType:
    """A type of the same kind that text can be read as."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _readable(data_type.value_type)
    return pa.string() if _is_text(data_type) else data_type


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _is_text(data_type.value_type)
    return bool(
        pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type)
    )


def _needed(probe: pa.Schema, build: pa.Schema, choices: dict[str, Any]) -> list[str] | None:
    """The probe columns that are worth reading; None for all. A column more than needed does no harm."""
    select = choices["select"]
    if choices["how"] in ("build_semi", "build_anti"):
        select = []
    if select is None:
        return None
    selected = set(select.values() if isinstance(select, dict) else select)
    # A name that the build has too decides about suffixes.
    named = {*choices["on"], *build.names, *selected, *(name.removeprefix("probe.") for name in selected)}
    condition = Condition(choices["where"])
    return [name for name in probe.names if name in named or condition.names(name, "probe")]


def _explain(
    build: prejoin.PreparedBuild, probe: Tables, on: list[tuple[str, str]], choices: dict[str, Any]
) -> Iterator[str]:
    output = prejoin.join(pa.RecordBatchReader.from_batches(probe.schema, iter(())), build, **choices).schema
    keys = [(key, next(name for name, other in on if other == key)) for key in build.keys]
    planned = prejoin.HashJoin(
        build.schema,
        probe.schema,
        on=keys,
        how={"left": "probe_outer", "right": "build_outer"}.get(choices["how"], choices["how"]),
        null_equal=build.null_equal,
        where=choices["where"],
        limit=choices["limit"],
        validate=choices["validate"],
    )
    yield planned.with_prepared_build(build).explain("tree")
    rest = [f"{name} = {key}" for name, key in on if (key, name) not in keys]
    if rest:
        yield f"further equalities: {', '.join(rest)}"
    yield f"build: {build!r}"
    rows = "an unknown number of" if probe.num_rows is None else f"{probe.num_rows:,}"
    read = _needed(probe.schema, build.schema, choices)
    yield f"probe: {rows} rows, reading {', '.join(probe.schema.names if read is None else read)}"
    yield f"output: {', '.join(f'{column.name}: {column.type}' for column in output)}"
