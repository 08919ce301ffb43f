"""Turns cells, which are texts, into typed columns by DuckDB, one piece of the file at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import bare_whole_sql, quoted, read_cell, sql_of
from webapp.imports.convert_text import ROW_BYTES_MAX
from webapp.imports.reading import ColumnReading, Reading, Source
from webapp.imports.time_text import ABOVE, COUNTED, OR, time_reader

THREADS = 2
MEMORY_MB = 200
COLUMNS_AT_ONCE = 128
BUFFER_BYTES = 6 << 20  # each thread parses so many bytes of a piece at a time
_FAST_PARTS = {"%Y", "%y", "%m", "%d", "%H", "%I", "%p", "%M", "%S", "%f"}
YEAR_1000_US = -30_610_224_000_000_000
_ZONED = "(contains({0}, '+') OR suffix({0}, 'Z') OR suffix({0}, 'C') OR {0} LIKE '___________%-%')"
"""SQL that tells whether an ISO 8601 text has an offset: +02:00, -03, Z or UTC."""
# A text that no cell has: the CSV reader must not make any cell null, because that is decided later.
_ABSENT = "\x01absent\x02"


@dataclass(frozen=True)
class Moment:
    """A time that is made of one or several cells: the event time of the row, or the value of a column.

    Its columns in the result are `a<n>` (microseconds), `t<n>` (the text, if DuckDB read no time) and, if it
    is needed, `z<n>` (whether the text has an offset).
    """

    name: str
    sources: tuple[Source, ...]
    format: str


@dataclass(frozen=True)
class Query:
    """The query that DuckDB runs for each piece. `cells` gives a column of texts for each source."""

    reading: Reading
    sources: tuple[Source, ...]
    moments: tuple[Moment, ...]
    plain: tuple[ColumnReading, ...]  # the columns that are no times
    left_out: frozenset[str] = frozenset()  # result columns that are already known, such as v0 and a1

    @property
    def asks(self) -> bool:
        """Returns whether the query has any column to compute."""
        named = [f"v{n}" for n in range(len(self.plain))] + [f"a{n}" for n in range(len(self.moments))]
        return not self.left_out.issuperset(named)

    @cached_property
    def numbers(self) -> frozenset[Source]:
        """Returns the sources that the CSV reader can read as numbers at once. If a cell is no number, the
        reader fails. Returns an empty set if no source can be read so."""
        reading = self.reading
        if any(missing(reading, column) != missing(reading, None) for column in self.plain):
            return frozenset()
        if any(moment.format.startswith(ABOVE) for moment in self.moments):
            # An empty cell means that the date stands in a row above, but the reader would make it null.
            return frozenset()
        others = {source for moment in self.moments for source in moment.sources}
        others |= {column.source for column in self.plain if not self._is_number(column)}
        return frozenset(column.source for column in self.plain) - others

    def _is_number(self, column: ColumnReading) -> bool:
        return column.type is FieldType.NUMBER and marks(self.reading, column) == (
            self.reading.decimal,
            "",
            "",
        )

    def sql(
        self,
        cells: str,
        names: dict[Source, str],
        more: str = "",
        numbers: frozenset[Source] = frozenset(),
    ) -> str:
        """Returns the query's SQL. `more`: further columns of `cells`, each after a comma. `numbers`: the
        sources that already are numbers."""
        plain = self._plain_asked()
        moments = [(n, moment) for n, moment in enumerate(self.moments) if f"a{n}" not in self.left_out]
        sources = dict.fromkeys(column.source for _, column in plain)
        inner = [f"{names[source]} AS {self._cell(source)}" for source in sources]
        inner += [
            f"{self._value(column, names[column.source], numbers)} AS r{n}"
            for n, column in plain
            if column.type not in (FieldType.STRING, FieldType.INTEGER)
        ]
        whole = [(n, column) for n, column in plain if column.type is FieldType.INTEGER]
        inner += [f"{bare_whole_sql(names[column.source])} AS q{n}" for n, column in whole]
        for n, moment in moments:
            inner.append(f"{joined([names[source] for source in moment.sources])} AS t{n}")
        middle = ["*"]
        for n, column in whole:
            # A number in another form takes a second attempt, which is slower.
            otherwise = self._value(column, self._cell(column.source), numbers)
            middle.append(f"CASE WHEN q{n} IS NULL THEN {otherwise} ELSE q{n} END AS r{n}")
        for n, moment in moments:
            middle.append(f"{fast_time(f't{n}', moment.format)} AS a{n}")
        outer = [f"{self._kept(n, column)} AS v{n}" for n, column in plain]
        for n, moment in moments:
            known = is_our_time(f"a{n}", moment.format)
            outer.append(f"CASE WHEN {known} THEN a{n} END AS a{n}")
            outer.append(f"CASE WHEN {known} THEN NULL ELSE t{n} END AS t{n}")
            if moment.format == "iso" and self.zoned:
                outer.append(f"{_ZONED.format(f't{n}')} AS z{n}")
        return (
            f"SELECT {', '.join([*outer, self._bad(numbers)])}{more}"  # noqa: S608  `quoted` makes texts of texts
            f" FROM (SELECT {', '.join(middle)} FROM"
            f" (SELECT {', '.join(inner)}{more} FROM {cells}))"
        )

    def part(self, begin: int, end: int) -> Query:
        """Returns the query for the columns from `begin` to before `end`, numbered from 0. The first part has
        the moments."""
        plain = self.plain[begin:end]
        known = {f"v{n}" for n in range(len(plain)) if f"v{begin + n}" in self.left_out}
        return Query(
            reading=self.reading,
            sources=tuple(dict.fromkeys(column.source for column in plain)),
            moments=() if begin else self.moments,
            plain=plain,
            left_out=frozenset(known | {name for name in self.left_out if name[0] != "v"}),
        )

    def _plain_asked(self) -> list[tuple[int, ColumnReading]]:
        return [(n, column) for n, column in enumerate(self.plain) if f"v{n}" not in self.left_out]

    def _cell(self, source: Source) -> str:
        return f"s{self.sources.index(source)}"

    def _value(self, column: ColumnReading, cell: str, numbers: frozenset[Source]) -> str:
        if column.source in numbers:
            return cell
        return sql_of(cell, column.type, *marks(self.reading, column))

    def _kept(self, n: int, column: ColumnReading) -> str:
        """Returns SQL for the value, or null if the text means "no value"."""
        texts = missing(self.reading, column)
        if column.type is FieldType.STRING:
            cell = self._value(column, self._cell(column.source), frozenset())
            return _without(cell, _listed(texts)) if texts else cell
        values = [value for text in texts if (value := self._read(column, text)) is not None]
        if not values:
            return f"r{n}"
        return f"CASE WHEN r{n} IN ({', '.join(str(value) for value in values)}) THEN NULL ELSE r{n} END"

    def _read(self, column: ColumnReading, text: str) -> int | float | bool | str | None:
        return read_cell(text, column.type, *marks(self.reading, column))

    @property
    def zoned(self) -> bool:
        """Returns whether the result depends on whether a time has an offset."""
        return self.reading.time is not None and self.reading.time.zone != "UTC"

    def _bad(self, numbers: frozenset[Source]) -> str:
        """Returns SQL for the texts that could not be read or that lose a zero: a list in the order of
        `plain`, null where there is none."""
        texts, any_bad = [], []
        for n, column in enumerate(self.plain):
            cell = self._cell(column.source)
            if column.type is FieldType.STRING or column.source in numbers or f"v{n}" in self.left_out:
                texts.append("NULL")
                continue
            listed = _listed(missing(self.reading, column))
            given = f"{cell} IS NOT NULL" + (f" AND trim({cell}) NOT IN {listed}" if listed else "")
            bad = f"CASE WHEN r{n} IS NULL THEN {given} ELSE false END"
            if column.type is FieldType.INTEGER:
                zero = f"regexp_full_match({cell}, '0[0-9]+')"
                bad = f"CASE WHEN q{n} IS NULL THEN {bad} OR {zero} ELSE false END"
            any_bad.append(bad)
            texts.append(f"CASE WHEN {bad} THEN left({cell}, 200) END")
        if not any_bad:
            return "NULL::VARCHAR[] AS bad"
        return f"CASE WHEN {' OR '.join(any_bad)} THEN [{', '.join(texts)}]::VARCHAR[] END AS bad"


def _without(cell: str, texts: str) -> str:
    """Returns SQL for the cell, or null if it is one of the texts. It trims a cell only if the cell has
    spaces, because trimming takes as long as all other steps."""
    spaced = f"CASE WHEN trim({cell}) IN {texts} THEN NULL ELSE {cell} END"
    return (
        f"CASE WHEN {cell} IN {texts} THEN NULL"
        f" WHEN prefix({cell}, ' ') OR suffix({cell}, ' ') THEN {spaced} ELSE {cell} END"
    )


def marks(reading: Reading, column: ColumnReading) -> tuple[str, str, str]:
    """Returns the decimal mark and the thousands mark of a column, and the text beside its numbers."""
    return (
        column.decimal or reading.decimal,
        reading.thousands if column.thousands is None else column.thousands,
        column.beside,
    )


def own_format(reading: Reading, column: ColumnReading) -> str:
    """Returns the format of a column of times without a format of its own: that of the event time if the
    column is the event time, otherwise ISO 8601."""
    time = reading.time
    return time.format if time is not None and time.columns == (column.source,) else "iso"


def missing(reading: Reading, column: ColumnReading | None) -> tuple[str, ...]:
    texts = reading.missing if column is None or column.missing is None else column.missing
    return tuple(text.strip() for text in texts)


def joined(cells: list[str]) -> str:
    """Returns SQL for the text of a time that is made of several cells."""
    return " || ' ' || ".join(cells)


def fast_time(text: str, time_format: str) -> str:
    """Returns SQL for the microseconds since 1970 that DuckDB reads. It is null for texts that DuckDB reads
    in another way than `time_text`, or not at all.

    The caller applies `is_our_time` to the result: as a part of this SQL, DuckDB would compute the time
    twice.
    """
    if time_format == "iso":
        # A cast to TIMESTAMP ignores an offset, and a cast to TIMESTAMPTZ is slow.
        local, zoned = (
            f"epoch_us(TRY_CAST({text} AS TIMESTAMP))",
            f"epoch_us(TRY_CAST({text} AS TIMESTAMPTZ))",
        )
        read = f"CASE WHEN {_ZONED.format(text)} THEN {zoned} ELSE {local} END"
        return f"CASE WHEN strlen({text}) >= {len('2024-05-01')} THEN {read} END"
    if time_format in ("epoch_s", "epoch_ms", "epoch_us"):
        # Whole numbers only, because a double does not hold each microsecond exactly.
        unit = {"epoch_s": 1_000_000, "epoch_ms": 1000, "epoch_us": 1}[time_format]
        whole, most = f"TRY_CAST({text} AS BIGINT)", 60_000_000_000 * 1_000_000 // unit
        known = f"CAST({whole} AS VARCHAR) = {text} AND {whole} BETWEEN -{most} AND {most}"
        return f"CASE WHEN {known} THEN {whole} * {unit} END"
    time_reader(time_format)  # raises ValueError if it is no format
    if OR in time_format and not time_format.startswith("{"):
        found = (fast_time(text, each) for each in time_format.split(OR))
        return f"coalesce({', '.join(found)})"
    if time_format in COUNTED or time_format.startswith("{"):
        return "NULL::BIGINT"
    parts = set(re.findall(r"%.", time_format))
    half_days = ("%I" in parts) == ("%p" in parts)
    if parts <= _FAST_PARTS and half_days and "seconds" not in time_format:
        return f"epoch_us(try_strptime({text}, {quoted(time_format.strip())}))"
    return "NULL::BIGINT"


def is_our_time(micros: str, time_format: str) -> str:
    """Returns SQL that says whether DuckDB's time is right. DuckDB reads 24 as the year 24, and accepts times
    before Christ."""
    return f"{micros} IS NOT NULL" if time_format in COUNTED else f"{micros} >= {YEAR_1000_US}"


def _listed(texts: tuple[str, ...]) -> str:
    return "(" + ", ".join(quoted(text) for text in texts) + ")" if texts else ""


def connected(directory: Path, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """Returns a database in memory that reads only files of this directory, and loads no extension.

    With several threads, the rows of an Arrow table of several pieces lose their order in a query such as
    those of `Query`. Rows from `read_csv` keep it.
    """
    connection = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": f"{MEMORY_MB}MB",
            "temp_directory": str(directory),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            # DuckDB gives the memory of a piece back with the piece. Otherwise memory would grow to twice as
            # much.
            "allocator_flush_threshold": "4MB",
            "allocator_bulk_deallocation_flush_threshold": "4MB",
        }
    )
    connection.execute(f"SET allowed_directories = [{quoted(str(directory))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def csv_cells(
    path: Path, reading: Reading, width: int, quoted_lines: bool, numbers: frozenset[Source] = frozenset()
) -> str:
    """Returns SQL that reads `width` cells of each row of a file, and one more, c<width>, which no row should
    have.

    The columns of `numbers` are numbers, with null for an empty cell. There, a cell that is no number is an
    error.
    """
    columns = ", ".join(f"c{n}: '{'DOUBLE' if n in numbers else 'VARCHAR'}'" for n in range(width + 1))
    nulls = missing(reading, None) if numbers else (_ABSENT,)
    return (
        f"read_csv({quoted(str(path))}, columns = {{{columns}}}, auto_detect = false, header = false,"
        f" delim = {quoted(reading.divider)},"
        f" quote = {quoted(reading.quote)}, escape = {quoted(reading.quote)},"
        f" null_padding = true, strict_mode = false, nullstr = [{', '.join(map(quoted, nulls))}],"
        f" decimal_separator = {quoted(reading.decimal)}, parallel = {str(not quoted_lines).lower()},"
        f" max_line_size = {ROW_BYTES_MAX}, buffer_size = {BUFFER_BYTES})"
    )


def typed(
    connection: duckdb.DuckDBPyConnection,
    query: Query,
    cells: str,
    names: dict[Source, str],
    more: str,
    numbers: frozenset[Source] = frozenset(),
) -> pa.Table:
    """Returns the result of `query.sql`. A wide table is computed some columns at a time, because DuckDB
    needs memory for each column of each step, and takes long to plan a thousand columns."""
    if len(query.plain) <= COLUMNS_AT_ONCE:
        return asked(connection, query.sql(cells, names, more, numbers))
    columns: dict[str, pa.ChunkedArray] = {}
    bad: list[tuple[int, pa.ChunkedArray | None]] = []
    for begin in range(0, len(query.plain), COLUMNS_AT_ONCE):
        part = query.part(begin, begin + COLUMNS_AT_ONCE)
        if not part.asks:
            bad.append((len(part.plain), None))
            continue
        table = asked(connection, part.sql(cells, names, "" if begin else more, numbers))
        bad.append((len(part.plain), table["bad"]))
        for name in table.column_names:
            if name.startswith("v"):
                columns[f"v{begin + int(name[1:])}"] = table[name]
            elif name != "bad":
                columns[name] = table[name]
    return pa.table(columns | {"bad": _joined_lists(bad)})


def _joined_lists(parts: list[tuple[int, pa.ChunkedArray | None]]) -> pa.Array:
    """Returns, for each row, the lists of all parts, one after the other. It is null for a row in which all
    parts are null."""
    rows = max(len(part) for _, part in parts if part is not None)
    if all(part is None or part.null_count == rows for _, part in parts):
        return pa.nulls(rows, pa.list_(pa.string()))
    whole: list[list[str | None] | None] = [None] * rows
    at = 0
    width = sum(size for size, _ in parts)
    for size, part in parts:
        for row, found in enumerate(part.to_pylist() if part is not None else ()):
            if found is not None:
                texts = whole[row] = whole[row] or [None] * width
                texts[at : at + size] = found
        at += size
    return pa.array(whole, pa.list_(pa.string()))


def asked(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return connection.execute(sql).to_arrow_table()
