"""The pipeline document: what the user draws, as YAML, as JSON, in the editor and over REST."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sized
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import yaml
from pydantic import ConfigDict, Field, StrictBool, StrictInt, StringConstraints, ValidationError

from pipeline_runtime.model.faults import (
    DocumentInvalid,
    Fault,
    join_path,
    pydantic_faults,
    words_for_pattern,
)
from pipeline_runtime.model.plain_data import DEPTH_MAX, NotJson, NotPlainData, read_json, shown, unfit
from pipeline_runtime.model.spec import LATENCY_MS_MAX, LATENCY_MS_MIN, Frozen

API_VERSION: Final = "fogline/v1"
DOCUMENT_BYTES_MAX = 1_000_000
ELEMENTS_MAX = 500
INPUTS_MAX = 50  # per element
YAML_VALUES_MAX = 50_000  # reading these takes some seconds
NOTES_MAX = 100
NOTE_TEXT_MAX = 2000
NOTE_SIDE_MIN, NOTE_SIDE_MAX = 60, 6000
PLACE_MAX = 1_000_000
NAME_MAX = 40
TITLE_MAX = 120
NAME_PATTERN = words_for_pattern(
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    "a name has lower-case letters, digits and hyphens, and starts and ends with a letter or digit",
)

Name = Annotated[str, StringConstraints(max_length=NAME_MAX, pattern=NAME_PATTERN)]
"""Lower-case letters, digits and hyphens, since it becomes a part of Kafka topic names."""


class Metadata(Frozen):
    """The id of a pipeline, and what people call it."""

    name: Name
    title: str | None = Field(default=None, max_length=TITLE_MAX)  # what people call it
    description: str | None = Field(default=None, max_length=2000)


class CopyOf(Frozen):
    """Says which element this one is a copy of, at the site where it runs (`planning/copies.py`)."""

    part: Name  # the elements that were copied together and are at each site
    element: Name  # the id of the element as it was drawn, the same for its copies at all sites
    params: dict[str, Any] = {}  # those of its parameters that name the site, as drawn: "readings-{site}"


Place = Annotated[float, Field(ge=-PLACE_MAX, le=PLACE_MAX, strict=True)]
"""On the canvas, in its own lengths."""


class ElementUi(Frozen):
    """Where the editor draws an element, and what it says about it. The runtime ignores it."""

    model_config = ConfigDict(extra="allow")

    x: Place | None = None
    y: Place | None = None
    replace: StrictBool | None = None  # in a template that was not changed yet: the user puts a source here


class Element(Frozen):
    """One step: a source, a processor, a sink or a view."""

    id: Name
    type: str = Field(min_length=1, max_length=60)
    title: str | None = Field(default=None, max_length=TITLE_MAX)
    params: dict[str, Any] = {}
    inputs: dict[str, str] = Field(default={}, max_length=INPUTS_MAX)  # port: "element" or "element.port"
    node: str | None = None  # a pin: the group runs on this node and on no other
    site: str | None = Field(default=None, min_length=1, max_length=60)  # it runs on a node of that site
    # The elements that it must not share a node with. An entry at one of two elements counts for both.
    apart: tuple[str, ...] | None = Field(default=None, max_length=ELEMENTS_MAX)
    # The target from a row's arrival to its results. For a group, the lowest target of its elements counts.
    latency_ms: StrictInt | None = Field(default=None, ge=LATENCY_MS_MIN, le=LATENCY_MS_MAX)
    copy_of: CopyOf | None = None  # the runtime ignores it, and the next one too
    ui: ElementUi | None = None


class Group(Frozen):
    """Elements that run, move and are restored together."""

    id: Name
    elements: tuple[str, ...] = Field(min_length=1, max_length=ELEMENTS_MAX)
    title: str | None = Field(default=None, max_length=TITLE_MAX)
    ui: dict[str, Any] | None = None


class Note(Frozen):
    """What people write or frame on the canvas. Nothing runs otherwise because of it.

    Lengths and places are those of the canvas. What lies in a frame moves with it.
    """

    id: Name
    kind: Literal["note", "frame"]
    text: str = Field(default="", max_length=NOTE_TEXT_MAX)  # of a frame: its title
    colour: Literal["grey", "blue", "orange", "green", "pink", "yellow"] = "grey"
    x: StrictInt = Field(ge=-PLACE_MAX, le=PLACE_MAX)
    y: StrictInt = Field(ge=-PLACE_MAX, le=PLACE_MAX)
    width: StrictInt = Field(ge=NOTE_SIDE_MIN, le=NOTE_SIDE_MAX)
    height: StrictInt = Field(ge=NOTE_SIDE_MIN, le=NOTE_SIDE_MAX)


class Spec(Frozen):
    elements: tuple[Element, ...] = Field(default=(), max_length=ELEMENTS_MAX)
    groups: tuple[Group, ...] = Field(default=(), max_length=ELEMENTS_MAX)
    notes: tuple[Note, ...] = Field(default=(), max_length=NOTES_MAX)  # the runtime ignores them


class PipelineDocument(Frozen):
    """A pipeline as a user has drawn it."""

    apiVersion: Literal["fogline/v1"] = API_VERSION
    kind: Literal["Pipeline"] = "Pipeline"
    metadata: Metadata
    spec: Spec = Spec()

    def element(self, id: str) -> Element | None:
        return next((element for element in self.spec.elements if element.id == id), None)

    def to_data(self) -> dict[str, Any]:
        """Returns the document as plain JSON data, without empty values."""
        return self.model_dump(mode="json", exclude_none=True)


def to_yaml(data: Mapping[str, Any]) -> str:
    """Returns the data of a document or draft as YAML that people can read and edit."""
    return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=110)


def parse_reference(reference: str) -> tuple[str, str]:
    """'readings' or 'readings.out' -> ('readings', 'out')."""
    element, _, port = reference.partition(".")
    return element, port or "out"


def parse_document(data: Mapping[str, Any] | str) -> PipelineDocument:
    """Returns the document in plain data, or in YAML or JSON text.

    Raises DocumentInvalid with every structural fault: unknown and missing fields, wrong types, bad names.
    What needs the operator library (types, ports, schemas) is checked by `validation.validate`.
    """
    content: Any = load_text(data) if isinstance(data, str) else data
    faults = structural_faults(content)
    if faults:
        raise DocumentInvalid(faults)
    return PipelineDocument.model_validate(content)


def structural_faults(data: Any) -> list[Fault]:
    """Returns the faults of form: those that pydantic finds without the operator library."""
    return refusals(data) or form_faults(data)


def form_faults(data: Any) -> list[Fault]:
    """Returns the faults of form in a document that is not refused."""
    try:
        PipelineDocument.model_validate(data)
    except ValidationError as error:
        return [
            Fault(element=_element_at(data, loc), path=path, message=message, code=code)
            for path, message, code, loc in pydantic_faults(error, known=_KNOWN_NAMES)
        ]
    return []


def refusals(data: Any) -> list[Fault]:
    """Returns why a document is not checked any further: it is no document, holds data that cannot be stored,
    or is too large.

    Checks that look at each part more than once come after this one.
    """
    if not isinstance(data, Mapping):
        return [Fault(element=None, path="", message="a pipeline document is a mapping", code="invalid")]
    found = [
        Fault(element=_element_at(data, loc), path=join_path(*loc), message=reason, code="invalid")
        for loc, reason in unfit(data)
    ]
    return found or [
        Fault(
            element=None,
            path=join_path(*loc),
            message=f"has {count:,}; at most {most} are possible",
            code="invalid",
        )
        for loc, count, most in _counts(data)
        if count > most
    ]


_PARTS_MAX = {
    "elements": {"inputs": INPUTS_MAX, "apart": ELEMENTS_MAX},
    "groups": {"elements": ELEMENTS_MAX},
    "notes": {},
}


def _counts(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], int, int]]:
    """Yields (where, how many there are, how many are allowed), as far as a draft can be read."""
    spec = _part(data, "spec")
    for name in _PARTS_MAX:
        items = _part(spec, name)
        if not isinstance(items, list | tuple):
            continue
        yield ("spec", name), len(items), NOTES_MAX if name == "notes" else ELEMENTS_MAX
        for index, item in enumerate(items):
            for below, most in _PARTS_MAX[name].items():
                part = _part(item, below)
                if isinstance(part, Sized):
                    yield ("spec", name, index, below), len(part), most


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


_KNOWN_NAMES = (
    *PipelineDocument.model_fields,
    *Metadata.model_fields,
    *Spec.model_fields,
    *Element.model_fields,
    *Note.model_fields,
    *CopyOf.model_fields,
)


def _element_at(data: Mapping[str, Any], loc: tuple[Any, ...]) -> str | None:
    if len(loc) < 3 or loc[:2] != ("spec", "elements") or not isinstance(loc[2], int):
        return None
    try:
        id = data["spec"]["elements"][loc[2]]["id"]
    except (KeyError, TypeError, IndexError):
        return None
    return id if isinstance(id, str) and not unfit(id) else None


class ValuesLeft:
    """How many values may still be read of one file in YAML, which can have several documents."""

    def __init__(self, count: int = YAML_VALUES_MAX) -> None:
        self.count = count


def documents_in(text: str) -> list[tuple[int, str]]:
    """Returns the documents of a YAML stream, each with the number of lines before it."""
    found, line = [], 0
    for part in re.split(r"(?m)^---(?=\s|$)", text):
        if any(not each.startswith(("#", "%", "...")) for each in part.splitlines() if each.strip()):
            found.append((line, part))
        line += part.count("\n")
    return found


def load_text(text: str, *, lines_before: int = 0, left: ValuesLeft | None = None) -> Any:
    """Returns the data in YAML or JSON text. Raises DocumentInvalid, which names the line."""
    if len(text) > DOCUMENT_BYTES_MAX:
        raise _invalid_text(f"the document is larger than {DOCUMENT_BYTES_MAX} characters")
    if text.lstrip().startswith("{"):
        try:
            return read_json(text)
        except NotJson:
            pass  # YAML's flow style looks like JSON, and its error names the line as well
        except NotPlainData as error:
            raise DocumentInvalid(
                [
                    Fault(element=None, path=join_path(*loc), message=reason, code="invalid")
                    for loc, reason in error.places
                ]
                or [Fault(element=None, path="", message=str(error), code="syntax")]
            ) from error
    try:
        loader = partial(_PlainLoader, left=left or ValuesLeft())  # a SafeLoader, made stricter
        return yaml.load(text, Loader=loader)  # type: ignore[arg-type]  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {lines_before + mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise _invalid_text(f"{where}{problem}") from error
    except RecursionError as error:
        raise _invalid_text("the document is nested too deeply") from error
    except ValueError as error:  # for example an integer of more digits than Python reads
        raise _invalid_text(f"a value cannot be read: {shown(error, 200)}") from error


def _invalid_text(message: str) -> DocumentInvalid:
    return DocumentInvalid([Fault(element=None, path="", message=message, code="syntax")])


class _PlainLoader(yaml.SafeLoader):
    """YAML with the meaning of JSON: no aliases (a small text could grow without bound), no dates, and no key
    twice (the second would win silently). Depth and number of values have a bound."""

    def __init__(self, stream: str, left: ValuesLeft) -> None:
        super().__init__(stream)
        self._depth = 0
        self._left = left

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", event.start_mark)
        self._depth += 1
        self._left.count -= 1
        for too_many, most, what in (
            (self._depth > DEPTH_MAX, DEPTH_MAX, "levels: it is nested too deeply"),
            (self._left.count < 0, YAML_VALUES_MAX, "values: it is too large"),
        ):
            if too_many:
                start = self.peek_event().start_mark
                raise yaml.composer.ComposerError(None, None, f"more than {most:,} {what}", start)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.value in seen and isinstance(key_node.value, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f'"{key_node.value}" is there twice', key_node.start_mark
                )
            if isinstance(key_node.value, str):
                seen.add(key_node.value)
        return cast(dict[Any, Any], super().construct_mapping(node, deep))


# Without the timestamp rule, so that `2012-02-22` stays the text that the user wrote.
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
