"""`prejoin join`: with one build by `prejoin.join`, with several by a `prejoin.StarJoin`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import prejoin
from prejoin.cli.agree import Typed, agree
from prejoin.cli.build import BuildSide, open_build
from prejoin.cli.columns import check_keys, check_types, chosen_names, csv_options, mapping, pairs, selection
from prejoin.cli.condition import Condition
from prejoin.cli.errors import UsageError
from prejoin.cli.of_build import builds_of, output_columns, stdin_files
from prejoin.cli.progress import Progress
from prejoin.files.errors import FileError
from prejoin.files.formats import TEXT as TEXT_FORMATS
from prejoin.files.formats import expand, format_of, input_file
from prejoin.files.output import Output
from prejoin.files.tables import Tables


def join(options: argparse.Namespace) -> None:
    """Join the probe files to the builds, batch by batch."""
    builds = builds_of(options)
    if stdin_files(builds, options.probe) > 1:
        raise UsageError("standard input is one file: give all but one of --build and --probe another name")
    inputs = Inputs(options, builds)
    hints = inputs.agree()
    joining: OneBuild | SeveralBuilds = OneBuild(inputs) if len(builds) == 1 else SeveralBuilds(inputs)
    try:
        if options.explain:
            print("\n".join(joining.explain()))
            return
        _run(options, inputs.probe, joining)
    except prejoin.PlanError as error:
        # The way out of a CSV column that is text here and a number there is an option.
        if hints and "key types must match" in str(error):
            raise FileError(f"{str(error).strip()}; {'; '.join(hints)}") from None
        raise


class Inputs:
    """The files of a join, opened, with the types of their columns."""

    def __init__(self, options: argparse.Namespace, builds: Sequence[argparse.Namespace]) -> None:
        """Open the builds and the probe files."""
        self.options, self.builds = options, builds
        self.select = selection(output_columns(options))
        self.names = _names(builds)
        self.wheres = [Condition(build.where) for build in builds]
        self.as_text = _out_format(options) in TEXT_FORMATS
        pool = prejoin.MemoryPool(options.memory_limit)
        sides: list[BuildSide] = []
        # The last one first: its keys may be columns of the builds before it, which are then read as keys too.
        for i in reversed(range(len(builds))):
            later = [(j, "build" if j == i else "probe") for j in range(i, len(builds))]
            side = open_build(
                builds[i],
                pairs(builds[i].on),
                partial(self._needs_value, later),
                others=[self._own(self.names[i], name) for side in sides for name, _ in side.pairs],
                pool=pool,
            )
            sides.insert(0, side)
        self.sides = sides
        files = [input_file(path, options.probe_format or options.format) for path in expand(options.probe)]
        self.probe_name = ", ".join(file.name for file in files)
        keys = [self._own("probe", name) for side in sides for name, _ in side.pairs]
        csv = csv_options(options, keys, partial(self._needs_value, [(i, "probe") for i in range(len(builds))]))
        self.probe = Tables(files, options.batch_size, csv)
        brought = {name for side in sides for name in side.schema.names} if len(sides) > 1 else set()
        check_keys("probe", self.probe.schema, [name for name in keys if name not in brought])
        texts = [schema for side in sides for schema in side.texts]
        texts += [self.probe.schema] if any(file.format in TEXT_FORMATS for file in files) else []
        check_types(options, iter(texts))

    def agree(self) -> list[str]:
        """Bring the types of guessed key columns together; advice for those that stay of different types."""
        hints = []
        for i, side in enumerate(self.sides):
            for name, key in side.pairs:
                table, own = self._table_of(name, i)
                hint = agree(table, own, side, key)
                hints += [hint] if hint else []
            self.wheres[i].check("build", side.name, side.guesses)
            self.wheres[i].check("probe", self.probe_name, self.probe.guesses)
            for earlier in self.sides[:i]:
                self.wheres[i].check("probe", earlier.name, earlier.guesses)
        return hints

    def _needs_value(self, conditions: Sequence[tuple[int, str]], name: str) -> bool:
        """Whether a column is read as values: text goes into text as it is, unless a condition asks for its value.

        `conditions` are those that may name the column: positions of builds, and which side the column is of there.
        """
        return not self.as_text or any(self.wheres[i].names(name, side) for i, side in conditions)

    def _table_of(self, name: str, i: int) -> tuple[Typed, str]:
        """The table that has the column that build `i` is looked up by, and its name there."""
        tables: list[tuple[str, Typed]] = [("probe", self.probe), *zip(self.names[:i], self.sides[:i], strict=True)]
        for table_name, table in tables:
            own = self._own(table_name, name)
            if own != name and own in table.schema.names:
                return table, own
        return next((table for _, table in tables if name in table.schema.names), self.probe), name

    @staticmethod
    def _own(table: str, name: str) -> str:
        """A column's name in its table."""
        return name.removeprefix(f"{table}.")

    def needed(self, how: str | None = None) -> list[str] | None:
        """The probe columns that are worth reading; None for all. A column more than needed does no harm."""
        select = [] if how in ("build_semi", "build_anti") else self.select
        if select is None or "probe.*" in (selected := chosen_names(select)):
            return None
        keys = {self._own("probe", name) for side in self.sides for name, _ in side.pairs}
        # A name that a build has too decides about suffixes.
        of_builds = {name for side in self.sides for name in side.schema.names}
        named = {*keys, *of_builds, *selected, *(self._own("probe", name) for name in selected)}
        columns = self.probe.schema.names
        return [name for name in columns if name in named or any(w.names(name, "probe") for w in self.wheres)]

    def shown_probe(self, columns: list[str] | None) -> str:
        """For `--explain`: what is read of the probe."""
        rows = "an unknown number of" if self.probe.num_rows is None else f"{self.probe.num_rows:,}"
        return f"probe: {rows} rows, reading {', '.join(self.probe.schema.names if columns is None else columns)}"


class OneBuild:
    """A join with one build."""

    def __init__(self, inputs: Inputs) -> None:
        """Prepare the build."""
        (side,), (options,) = inputs.sides, inputs.builds
        self._inputs, self._on, self._build = inputs, side.pairs, side.prepare()
        self._options: dict[str, Any] = {
            "on": mapping(side.pairs),
            "how": options.how,
            "where": options.where,
            "select": inputs.select,
            "suffix": options.suffix,
            "limit": options.limit,
            "validate": options.validate,
            "batch_size": options.batch_size,
        }
        self.columns = inputs.needed(options.how)

    def rows(self, probe: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The output, as it is pulled."""
        return prejoin.join(probe, self._build, **self._options)

    def explain(self) -> Iterator[str]:
        """The join as text."""
        build, schema, options = self._build, self._inputs.probe.schema, self._options
        output = prejoin.join_schema(schema, build, **options)
        keys = [(key, next(name for name, other in self._on if other == key)) for key in build.keys]
        planned = prejoin.HashJoin(
            build.schema,
            schema,
            on=keys,
            how={"left": "probe_outer", "right": "build_outer"}.get(options["how"], options["how"]),
            null_equal=build.null_equal,
            where=options["where"],
            limit=options["limit"],
            validate=options["validate"],
        )
        yield planned.with_prepared_build(build).explain("tree")
        rest = [f"{name} = {key}" for name, key in self._on if (key, name) not in keys]
        if rest:
            yield f"further equalities: {', '.join(rest)}"
        yield f"build: {build!r}"
        yield self._inputs.shown_probe(self.columns)
        yield _shown_output(output)


class SeveralBuilds:
    """A join with several builds, one after the other."""

    def __init__(self, inputs: Inputs) -> None:
        """Prepare the builds."""
        self._inputs = inputs
        legs = {
            name: prejoin.Leg(
                side.prepare(),
                mapping(side.pairs),
                options.how,
                where=options.where,
                suffix=options.suffix,
                select=selection(options.select),
                validate=options.validate,
            )
            for name, side, options in zip(inputs.names, inputs.sides, inputs.builds, strict=True)
        }
        whole = inputs.options
        self._star = prejoin.StarJoin(legs, select=inputs.select, limit=whole.limit, batch_size=whole.batch_size)
        self.columns = inputs.needed()

    def rows(self, probe: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The output, as it is pulled."""
        return self._star(probe)

    def explain(self) -> Iterator[str]:
        """The join as text."""
        output = self._star.schema(self._inputs.probe.schema)
        yield self._star.explain()
        for name, leg in self._star.legs.items():
            yield f"{name}: {leg.build!r}"
        yield self._inputs.shown_probe(self.columns)
        yield _shown_output(output)


def _shown_output(schema: pa.Schema) -> str:
    return f"output: {', '.join(f'{column.name}: {column.type}' for column in schema)}"


def _names(builds: Sequence[argparse.Namespace]) -> list[str]:
    """The names of the builds, by which their columns are addressed: those of their files, as far as that goes."""
    names: list[str] = []
    for i, build in enumerate(builds):
        stem = Path(build.build[0]).name.split(".")[0]
        free = stem not in ("", "-", "probe", "build", *names)
        names.append(stem if free else f"leg{i}")
    return names


def _out_format(options: argparse.Namespace) -> str | None:
    found: str | None = (
        options.out_format or options.format or ("csv" if options.out == "-" else format_of(options.out))
    )
    return found


def _run(options: argparse.Namespace, probe: Tables, joining: OneBuild | SeveralBuilds) -> None:
    progress = Progress(sys.stderr, probe.num_rows, not options.quiet)
    try:
        rows = joining.rows(probe.reader(joining.columns, progress.count_read))
        with Output(options.out, options.out_format or options.format, rows.schema) as out:
            for batch in rows:
                out.write(batch)
                progress.count_written(batch.num_rows)
        progress.close(f"{progress.read:,} probe rows read, {out.rows:,} rows written to {options.out}")
    finally:
        progress.close()
