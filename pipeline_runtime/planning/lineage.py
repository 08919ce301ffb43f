"""Finds the rows from which a row was made, element by element, as far as topics still hold them.

Pure, but for the functions that it is given to read with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream, OutputStream
from pipeline_runtime.operators.lineage import Came, Found, TracedRow
from pipeline_runtime.operators.registry import Registry
from pipeline_runtime.operators.sdk import Operator

FOLLOWED_MAX = 20
"""The trace looks for what so many rows of a stream came from: the newest ones."""
ROWS_MAX = 20_000
"""How many records of a stream are read at most to find the rows."""
AS_ONE = (
    "Elements that run as one keep no rows between them, so these are all rows of that time, whether they"
    " took part or not."
)


@dataclass(frozen=True)
class Looked:
    """The rows of a topic in a time, in the order in which they came."""

    rows: Sequence[TracedRow]
    removed: bool = False  # older ones were removed from the topic
    left_out: bool = False  # there were too many to read all
    late: bool = False  # not all were given in time


Held = InputStream | OutputStream
"""A stream that lies in a topic."""
Read = Callable[[Held, int | None, int | None, int], Looked]
"""Reads a stream: from and until which time, and near which one if there are too many rows."""
Span = tuple[int | None, int | None]
"""From and until which time, in ms; None stands for no limit."""


@dataclass(frozen=True)
class TracedStream:
    """The rows of one input of an element which some of its output rows came from."""

    element: str
    port: str
    source: str  # "element.port"
    schema: StreamSchema
    rows: Sequence[TracedRow] = ()
    kept: bool = True  # whether its rows lie in a topic; if not, its elements run as one
    bounds: tuple[str, ...] = ()
    removed: bool = False
    left_out: bool = False
    late: bool = False
    followed: int = 0  # of how many of the element's output rows this was looked for
    untraced: int = 0  # of how many others it was not


@dataclass
class _Wanted:
    """What of a stream is traced further: rows, or all of a time if its rows are not kept."""

    rows: list[TracedRow] = field(default_factory=list)
    span: Span | None = None


def trace(
    specs: Iterable[GroupSpec], registry: Registry, start: TracedRow, source: str, read: Read
) -> Iterator[TracedStream]:
    """Yields what a row of the stream `source` ("element.port") came from, from its element back to the
    sources.

    Raises OperatorUnknown. What `read` raises is passed on.
    """
    of_element = {element.id: (spec, element) for spec in specs for element in spec.elements}
    wanted = {".".join(parse_reference(source)): _Wanted([start])}
    for id in _readers_first(of_element):
        found = wanted.get(f"{id}.out")
        if found is None:
            continue
        spec, element = of_element[id]
        for stream, further in _behind(
            spec, element, registry.create(element.type, element.params), found, read, start.time_ms
        ):
            _add(wanted, stream.source, further)
            yield stream


def _readers_first(elements: Mapping[str, tuple[GroupSpec, ElementSpec]]) -> list[str]:
    """Returns all elements, each before those whose output it reads."""
    found: dict[str, None] = {}

    def visit(id: str) -> None:
        if id in found or id not in elements:
            return
        for source in elements[id][1].inputs.values():
            visit(parse_reference(source)[0])
        found[id] = None

    for id in elements:
        visit(id)
    return [*found][::-1]


def latest(rows: Sequence[TracedRow], most: int) -> list[TracedRow]:
    """Returns the newest `most` rows by their time, in the order in which they are given."""
    by_time = sorted(range(len(rows)), key=lambda place: rows[place].time_ms)
    return [rows[place] for place in sorted(by_time[max(0, len(rows) - most) :])]


def _add(wanted: dict[str, _Wanted], source: str, more: _Wanted) -> None:
    """Adds what another reader of the stream came from."""
    there = wanted.setdefault(source, _Wanted())
    known = {(row.partition, row.offset) for row in there.rows}
    there.rows += [row for row in more.rows if (row.partition, row.offset) not in known]
    there.span = _both(there.span, more.span)


def _both(one: Span | None, other: Span | None) -> Span | None:
    if one is None or other is None:
        return one or other
    return _from([one[0], other[0]]), _until([one[1], other[1]])


def _from(times: Sequence[int | None]) -> int | None:
    return None if None in times else min(each for each in times if each is not None)


def _until(times: Sequence[int | None]) -> int | None:
    return None if None in times else max(each for each in times if each is not None)


def _held(spec: GroupSpec, source: str) -> Held | None:
    """Returns the stream if its rows lie in a topic. That of an element of the group does if an element of
    another group, or a view, reads it too."""
    streams: tuple[Held, ...] = (*spec.outputs, *spec.inputs)
    return next((each for each in streams if each.source == source and _is_rows(each)), None)


def _is_rows(stream: Held) -> bool:
    """Returns whether each record is a row. Those of others and of connectors may be read by paths."""
    if isinstance(stream, OutputStream) or stream.reading is None:
        return True
    names = [column.path[0] for column in stream.reading.columns]
    return stream.reading.is_plain and names == [*stream.data_schema.names]


def _behind(
    spec: GroupSpec, element: ElementSpec, operator: Operator, wanted: _Wanted, read: Read, start_ms: int
) -> Iterator[tuple[TracedStream, _Wanted]]:
    """`start_ms`: the time of the row with which the trace begins."""
    schemas = {port: spec.schemas[source] for port, source in element.inputs.items()}
    followed = latest(wanted.rows, FOLLOWED_MAX)
    came_from = [operator.came_from(row, schemas) for row in followed]
    ends = [
        operator.came_from(TracedRow(at_ms, {}), schemas)
        for at_ms in (wanted.span or ())
        if at_ms is not None
    ]
    for port, source in element.inputs.items():
        came = [each[port] for each in came_from if port in each]
        at_ends = [each[port] for each in ends if port in each]
        is_span = wanted.span is not None and bool(at_ends or not ends)
        if not came and not is_span:
            continue
        from_ms, until_ms = _span([*came, *at_ends], wanted.span)
        held = _held(spec, source)
        stream = TracedStream(
            element.id,
            port,
            source,
            schemas[port],
            kept=held is not None,
            followed=len(followed),
            untraced=len(wanted.rows) - len(followed),
        )
        if held is None:
            yield stream, _inside(came, is_span, (from_ms, until_ms))
            continue
        end_ms = start_ms if until_ms is None else until_ms
        near_ms = max((row.time_ms for row in followed), default=end_ms)
        looked = read(held, from_ms, until_ms, near_ms)
        rows, bounds, whole = _chosen(looked.rows, came, is_span, (from_ms, until_ms))
        yield (
            replace(
                stream,
                rows=rows,
                bounds=bounds,
                removed=looked.removed and not whole,
                left_out=looked.left_out and not whole,
                late=looked.late,
            ),
            _Wanted([*rows]),
        )


def _inside(came: Sequence[Came], is_span: bool, span: Span) -> _Wanted:
    """Returns what is known of a stream between elements that run as one: rows that passed through the second
    element as they were, or else the time of the rows."""
    rows = [each.row for each in came]
    if is_span or None in rows:
        return _Wanted(span=span)
    known = [replace(row, partition=-1, offset=place) for place, row in enumerate(rows) if row is not None]
    return _Wanted(known)


def _span(came: Sequence[Came], outer: Span | None) -> Span:
    """Returns the time that covers all of them."""
    begins, ends = [each.from_ms for each in came], [each.until_ms for each in came]
    if outer is not None:
        begins += [outer[0]] if outer[0] is None else []
        ends += [outer[1]] if outer[1] is None else []
    return _from(begins), _until(ends)


def _chosen(
    rows: Sequence[TracedRow], came: Sequence[Came], is_span: bool, span: Span
) -> tuple[list[TracedRow], tuple[str, ...], bool]:
    """Returns the rows that any of them came from, in the order in which they came, what bounds them, and
    whether no older one can belong to them."""
    found: list[Found] = [each.chosen(rows) for each in came]
    if is_span:
        from_ms, until_ms = span
        inside = [
            row
            for row in rows
            if (from_ms is None or row.time_ms >= from_ms) and (until_ms is None or row.time_ms <= until_ms)
        ]
        found.append(Found(inside, AS_ONE))
    places = {(row.partition, row.offset) for each in found for row in each.rows}
    chosen = [row for row in rows if (row.partition, row.offset) in places]
    bounds = tuple(dict.fromkeys(each.bound for each in found if each.bound))
    return chosen, bounds, all(each.whole for each in found)
