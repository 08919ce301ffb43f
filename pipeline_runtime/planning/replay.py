"""Finds the way by which a row comes back to an element that refused it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline_runtime.model.dead_letters import WayIn, WaysIn
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream


def streams_read(spec: GroupSpec, element: str) -> tuple[InputStream, ...]:
    """Returns the streams that an element reads, if all of them come from outside its group. A letter of such
    an element says in which of them its row lies, and where."""
    found = next((each for each in spec.elements if each.id == element), None)
    # An element without inputs stands for the stream that it makes.
    sources = [] if found is None else [*dict.fromkeys(found.inputs.values())] or [f"{element}.out"]
    outside = {each.source: each for each in spec.inputs}
    return tuple(outside[each] for each in sources) if all(each in outside for each in sources) else ()


def ways_in(specs: Sequence[GroupSpec], element: str, name_of: Callable[[str], str]) -> WaysIn | str:
    """Returns how rows come back to the element, or why none can, as a sentence.

    Rows are written to Fogline's own topics alone. An element that reads another element's stream gets a row
    there, which all other readers of the stream pass. A row of an element that reads a user's topic is
    written to the stream that this element makes of the topic.
    """
    spec = next((each for each in specs if any(item.id == element for item in each.elements)), None)
    if spec is None:
        return f"{name_of(element)} runs nowhere."
    found = next(each for each in spec.elements if each.id == element)
    ways = WaysIn({each.source: _way(spec, found, each, name_of) for each in streams_read(spec, element)})
    if ways.each:
        return ways
    why = next(iter(ways.by_source.values()), None)
    return why if isinstance(why, str) else _no_way(spec, found, name_of)


def _way(
    spec: GroupSpec, element: ElementSpec, read: InputStream, name_of: Callable[[str], str]
) -> WayIn | str:
    title = name_of(element.id)
    if not read.external:
        readers = [each for each in spec.elements for source in each.inputs.values() if source == read.source]
        other = next((each for each in readers if each.id != element.id), None)
        if other is not None:
            return (
                f"{name_of(other.id)} runs as one with {title} and reads the same rows: "
                "it would get them again."
            )
        if len(readers) > 1:
            return f"{title} reads the same stream by several inputs: each of them would get the row."
        return WayIn(read.topic, read.data_schema, element.id, read.topic)
    made = next((each for each in spec.outputs if each.source == read.source and not each.external), None)
    if made is None:
        return (
            f"{title} runs as one with the elements behind it. No topic of Fogline's own lies "
            "between them, and Fogline never writes to the topic that it reads."
        )
    return WayIn(made.topic, made.data_schema, None, read.topic, read.reading)


def _no_way(spec: GroupSpec, element: ElementSpec, name_of: Callable[[str], str]) -> str:
    title, members = name_of(element.id), {each.id for each in spec.elements}
    makers = [source.partition(".")[0] for source in element.inputs.values()]
    inside = next((each for each in makers if each in members), None)
    if inside is not None:
        return f"{title} runs as one with {name_of(inside)}, so no topic lies between them."
    return (
        f"{title} takes its rows from a file or makes them itself, so a row cannot be given to it again. "
        "If they come from a file, correct the file and import it again."
    )
