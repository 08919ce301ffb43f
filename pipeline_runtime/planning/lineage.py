"""Finds the rows from which a row was made, element by element, as far as topics still hold them.

Pure, but for the functions that it is given to read with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream
from pipeline_runtime.operators.lineage import Came, Found, TracedRow
from pipeline_runtime.operators.registry import Registry
from pipeline_runtime.operators.sdk import Operator

FOLLOWED_MAX = 20
"""The trace looks for what so many rows of a stream came from: the newest ones."""
ROWS_MAX = 20_000
"""How many records of a stream are read at most to find the rows."""
AS_ONE = (
    "The elements run as one, so the rows between them are kept nowhere. These are all rows of that time."
)


@dataclass(frozen=True)
class Looked:
    """The rows of a topic in a time, in the order in which they came."""

    rows: Sequence[TracedRow]
    removed: bool = False  # older ones were removed from the topic
    left_out: bool = False  # there were too many to read all


Read = Callable[[InputStream, int | None, int | None, int], Looked]
"""Reads a stream: from and until which time, and near which one if there are too many rows."""


@dataclass(frozen=True)
class TracedStream:
    """The rows of one input of an element which some of its output rows came from."""

    element: str
    port: str
    source: str  # "element.port"
    schema: StreamSchema
    rows: Sequence[TracedRow] = ()
    kept: bool = True  # whether the stream lies in a topic; if not, its elements run as one
    bounds: tuple[str, ...] = ()
    removed: bool = False
    left_out: bool = False
    followed: int = 0  # of how many of the element's output rows this was looked for
    untraced: int = 0  # of how many others it was not


@dataclass
class _Wanted:
    """What of a stream is traced further: rows, or all of a time if its rows are not kept."""

    rows: list[TracedRow] = field(default_factory=list)
    span: tuple[int | None, int | None] | None = None


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
            spec, element, registry.create(element.type, element.params), found, read
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


def _add(wanted: dict[str, _Wanted], source: str, more: _Wanted) -> None:
    there = wanted.setdefault(source, _Wanted())
    known = {(row.partition, row.offset) for row in there.rows}
    there.rows += [row for row in more.rows if (row.partition, row.offset) not in known]
    there.span = more.span or there.span


def _behind(
    spec: GroupSpec, element: ElementSpec, operator: Operator, wanted: _Wanted, read: Read
) -> Iterator[tuple[TracedStream, _Wanted]]:
    schemas = {port: spec.schemas[source] for port, source in element.inputs.items()}
    followed = wanted.rows[-FOLLOWED_MAX:]
    came_from = [operator.came_from(row, schemas) for row in followed]
    ends = [
        operator.came_from(TracedRow(at_ms, {}), schemas)
        for at_ms in (wanted.span or ())
        if at_ms is not None
    ]
    for port, source in element.inputs.items():
        came = [each[port] for each in came_from if port in each]
        at_ends = [each[port] for each in ends if port in each]
        if not came and not at_ends:
            continue
        from_ms, until_ms = _span([*came, *at_ends], wanted.span)
        item = next((each for each in spec.inputs if each.source == source), None)
        stream = TracedStream(
            element.id,
            port,
            source,
            schemas[port],
            kept=item is not None,
            followed=len(followed),
            untraced=len(wanted.rows) - len(followed),
        )
        if item is None:
            yield _inside(stream, came, bool(at_ends), (from_ms, until_ms))
            continue
        near_ms = max((row.time_ms for row in followed), default=until_ms or 0)
        looked = read(item, from_ms, until_ms, near_ms)
        rows, bounds, whole = _chosen(looked.rows, came, bool(at_ends), (from_ms, until_ms))
        yield (
            replace(
                stream,
                rows=rows,
                bounds=bounds,
                removed=looked.removed and not whole,
                left_out=looked.left_out and not whole,
            ),
            _Wanted([*rows]),
        )


def _inside(
    stream: TracedStream, came: Sequence[Came], is_span: bool, span: tuple[int | None, int | None]
) -> tuple[TracedStream, _Wanted]:
    """Returns what is known of a stream between elements that run as one: rows that passed through the second
    element as they were, or else the time of the rows."""
    rows = [each.row for each in came]
    if is_span or None in rows:
        return replace(stream, bounds=(AS_ONE,)), _Wanted(span=span)
    found = [replace(row, partition=-1, offset=place) for place, row in enumerate(rows) if row is not None]
    return stream, _Wanted(found)


def _span(came: Sequence[Came], outer: tuple[int | None, int | None] | None) -> tuple[int | None, int | None]:
    """Returns the time that covers all of them."""
    begins, ends = [each.from_ms for each in came], [each.until_ms for each in came]
    if outer is not None:
        begins += [outer[0]] if outer[0] is None else []
        ends += [outer[1]] if outer[1] is None else []
    from_ms = None if None in begins else min(each for each in begins if each is not None)
    until_ms = None if None in ends else max(each for each in ends if each is not None)
    return from_ms, until_ms


def _chosen(
    rows: Sequence[TracedRow], came: Sequence[Came], is_span: bool, span: tuple[int | None, int | None]
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
