"""Names for people: elements by their titles, parameters by the words of their form.

Ids and paths are for machines and are what is stored and sent. Messages for people use these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline_runtime.model.ids import document_group

NAMES_SHOWN_MAX = 3
_UNITS = {
    "s": "in seconds",
    "ms": "in milliseconds",
    "us": "in microseconds",
    "hz": "in Hz",
    "bytes": "in bytes",
    "percent": "in percent",
}
_PARTS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ELEMENT = re.compile(r"^spec\.elements\[\d+\]\.?(.*)$")
_MENTION = re.compile(r"«([^«»]*)»")
_PLACES = {
    "id": "Id",
    "type": "Type",
    "title": "Title",
    "node": "Node",
    "site": "Node",
    "copy_of": "Copy of",
    "inputs": "Connections",
    "params": "Parameters",
    "ui": "Place on the canvas",
    "ui.replace": "Your source goes here",
    "metadata.name": "Name",
    "metadata.description": "Description",
    "spec.elements": "Elements",
    "spec.groups": "Groups",
    "spec.notes": "Notes",
}


def element_name(id: str, type_: str, title: object, operator_title: str | None) -> str:
    """Returns its title, else its operator's ("CSV replay 2" for csv-replay-2), else its id."""
    if isinstance(title, str) and title.strip() and title != id:
        return title
    if operator_title is not None:
        if id == type_:
            return operator_title
        number = id.removeprefix(f"{type_}-")
        if number != id and number.isdigit():
            return f"{operator_title} {number}"
    return id


def mention(id: str) -> str:
    """Returns a mark for an element or a group in a sentence made where only ids are known. `with_names` puts
    the name in."""
    return f"«{document_group(id)}»"


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replaces marks by names. `names` maps ids to names; an id that it does not hold stands for itself."""
    return _MENTION.sub(lambda found: names.get(found[1], found[1]), text)


def listed_and(names: Sequence[str]) -> str:
    """'a, b and c'."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def sentence(text: str) -> str:
    """Returns `text` with a full stop, unless it ends as a sentence does. Blanks at its end go."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def group_name(title: object, members: Sequence[str]) -> str:
    """Returns a group's title, else the names of its first elements."""
    if isinstance(title, str) and title.strip():
        return title
    if len(members) > NAMES_SHOWN_MAX + 1:
        return f"{', '.join(members[:NAMES_SHOWN_MAX])} and {len(members) - NAMES_SHOWN_MAX} more"
    return listed_and(members)


def parameter_title(name: str, given: object = None) -> str:
    """Returns the title of a parameter: `size_s` -> "Size, in seconds", since names end in their unit.

    `given` is the title in the schema. It counts if it is more than pydantic's own title, which is the name
    in title case.
    """
    if isinstance(given, str) and given.lower() != name.replace("_", " ").lower():
        return given
    stem, _, unit = name.rpartition("_")
    if stem and unit in _UNITS:
        return f"{_sentence_case(stem)}, {_UNITS[unit]}"
    return _sentence_case(name)


def _sentence_case(name: str) -> str:
    text = " ".join(name.replace("-", "_").split("_")).strip().lower()
    return text[:1].upper() + text[1:]


def place_words(path: str, inputs: Iterable[str] = (), params_schema: Mapping[str, Any] | None = None) -> str:
    """Returns the place of a path in the words of the editor's forms: "Aggregate 1, column".

    `inputs` are the operator's ports; `params_schema` is the JSON Schema of its parameters.
    """
    inside = _ELEMENT.match(path)
    local = inside[1] if inside is not None else path
    head, _, rest = local.partition(".")
    if inside is not None and head == "params" and rest and params_schema is not None:
        return _parameter_words(rest, params_schema)
    if inside is not None and head == "inputs" and rest:
        return f"Input {rest}" if len(list(inputs)) > 1 else "Reads from"
    if local.startswith("spec.groups["):
        return "Groups"
    return _PLACES.get(local, local)


def _parameter_words(path: str, root: Mapping[str, Any]) -> str:
    words: list[str] = []
    schema = _resolved(root, root)
    for name, index in _PARTS.findall(path):
        if index:
            item = str(schema.get("x-item") or (singular(words[-1]) if words else "entry"))
            words[-1:] = [f"{item[:1].upper()}{item[1:]} {int(index) + 1}"]
            schema = _resolved(schema.get("items") or {}, root)
            continue
        below = (schema.get("properties") or {}).get(name)
        if below is None:  # a key of a map, or a name that does not exist
            words.append(str(name))
            more = schema.get("additionalProperties")
            schema = _resolved(more if isinstance(more, Mapping) else {}, root)
        else:
            schema = _resolved(below, root)
            words.append(parameter_title(name, below.get("title")))
    return ", ".join([*words[:1], *(word[:1].lower() + word[1:] for word in words[1:])])


def with_titles(message: str, params_schema: Mapping[str, Any]) -> str:
    """Returns a message with the titles of parameters for their names: slide_s -> "Slide, in seconds".

    Only names of several words are replaced: others may be ordinary words.
    """
    for name, schema in (params_schema.get("properties") or {}).items():
        if "_" in name and name in message:
            # as a word of its own, not quoted: quoted is what the user has written
            word = re.compile(rf"(?<![\w\"'.]){re.escape(name)}(?![\w\"'])")
            message = f'"{parameter_title(name, schema.get("title"))}"'.join(word.split(message))
    return message


def singular(title: str) -> str:
    """Returns the form's word for one entry of a list, from the list's title."""
    return re.sub(r"s$", "", re.sub(r"ies$", "y", title))


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema that a reference leads to, without "or null"."""
    while "$ref" in schema:
        schema = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return _resolved(parts[0], root) if len(parts) == 1 else schema
