"""How a row comes back to an element that could not take it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline_runtime.model.dead_letters import WayIn
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream


def stream_read(spec: GroupSpec, element: str) -> InputStream | None:
    """Returns the stream that an element reads from outside its group, if it has one input and reads that
    alone. A letter of such an element says where its row lies."""
    found = next((each for each in spec.elements if each.id == element), None)
    if found is None:
        return None
    source = _only_source(found)
    if source is None or (found.inputs and len(_readers(spec, source)) > 1):
        return None
    return next((each for each in spec.inputs if each.source == source), None)


def way_in(specs: Sequence[GroupSpec], element: str, name_of: Callable[[str], str]) -> WayIn | str:
    """Returns how rows come back to the element, or why they cannot, as a sentence.

    Rows are written to Fogline's own topics alone. An element that reads another element's stream gets a row
    there, which all other readers of the stream pass. A row of an element that reads a user's topic is
    written to the stream that this element makes of the topic.
    """
    spec = next((each for each in specs if any(item.id == element for item in each.elements)), None)
    if spec is None:
        return f"{name_of(element)} runs nowhere."
    read = stream_read(spec, element)
    if read is None:
        return _no_way(spec, element, name_of)
    if not read.external:
        return WayIn(read.topic, read.data_schema, element, read.topic)
    made = next((each for each in spec.outputs if each.source == read.source and not each.external), None)
    if made is None:
        return (
            f"{name_of(element)} runs as one with the elements behind it. No topic of Fogline's own lies "
            "between them, and Fogline never writes to the topic that it reads."
        )
    return WayIn(made.topic, made.data_schema, None, read.topic, read.reading)


def _no_way(spec: GroupSpec, element: str, name_of: Callable[[str], str]) -> str:
    found = next(each for each in spec.elements if each.id == element)
    title, sources = name_of(element), [*found.inputs.values()]
    if not sources:
        return (
            f"{title} takes its rows from a file or makes them itself, so a row cannot be given to it again. "
            "If they come from a file, correct the file and import it again."
        )
    if len(sources) > 1:
        return f"{title} has several inputs, and a dead letter does not say from which its row came."
    readers = [each.id for each in _readers(spec, sources[0]) if each.id != element]
    maker = sources[0].partition(".")[0]
    if any(each.id == maker for each in spec.elements):
        return f"{title} runs as one with {name_of(maker)}, so no topic lies between them."
    return f"{name_of(readers[0])} runs as one with {title} and reads the same rows: it would get them again."


def _only_source(element: ElementSpec) -> str | None:
    """Returns the stream that the element reads. One without an input stands for the stream that it makes."""
    sources = [*element.inputs.values()]
    if len(sources) > 1:
        return None
    return sources[0] if sources else f"{element.id}.out"


def _readers(spec: GroupSpec, source: str) -> list[ElementSpec]:
    return [each for each in spec.elements if source in each.inputs.values()]
