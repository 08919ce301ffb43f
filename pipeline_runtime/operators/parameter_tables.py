"""The table of an operator's parameters, from their JSON Schema, for the page of operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from pipeline_runtime.model.faults import pattern_words
from pipeline_runtime.operators.columns import NEW_COLUMN

LEGEND = """\
In the tables of parameters, a *column* is the name of a column of the input.
A *name* is that of a new column. It has 1 to 120 characters, does not begin with an underscore or a dot, and
has no backquotes.
A *path* says where a value lies in a record, and an *expression* is explained [below](#expressions).
A parameter without a default may be left out, unless it is required. "empty:" says what is so without it.
`a[].b` is a part of each entry of the list `a`, and `a.b` is a part of the object `a`."""

Shape = dict[str, Any]
"""The JSON Schema of a value."""

_UNITS = {"_s": " of seconds", "_hz": " of hertz"}
"""The unit of a number, by how the parameter's name ends."""
_OF_TYPES = {
    ("integer", "number"): " of numbers",
    ("boolean", "integer", "number"): " of numbers, or of true and false",
    ("boolean",): " of true and false",
}
_RANGES = (
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
    ("minimum", "maximum", ""),
)
_BOUNDS = (
    ("minLength", "at least", " characters"),
    ("maxLength", "at most", " characters"),
    ("minItems", "at least", " entries"),
    ("maxItems", "at most", " entries"),
    ("minimum", "at least", ""),
    ("exclusiveMinimum", "more than", ""),
    ("maximum", "at most", ""),
    ("exclusiveMaximum", "less than", ""),
)


def parameter_table(schema: Shape) -> Iterator[str]:
    """Yields the lines of the table for the JSON Schema of parameters."""
    if not schema.get("properties"):
        yield "It has no parameters."
        return
    yield "| parameter | type | default | allowed | |"
    yield "|---|---|---|---|---|"
    yield from _rows(schema, schema.get("$defs", {}), "")


def _rows(schema: Shape, definitions: dict[str, Shape], prefix: str) -> Iterator[str]:
    """Yields a line for each parameter, and behind it one for each part of an object or of a list's entry."""
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        shape = _shape(field, definitions)
        entry = _shape(shape.get("items", {}), definitions)
        default = "required" if name in required else _default(field.get("default"), entry)
        described = re.sub(r"([|<])", r"\\\1", field.get("description", ""))
        cells = f"`{prefix}{name}`", _type(name, shape, entry), default, _allowed(shape), described
        yield f"| {' | '.join(cells)} |"
        if "properties" in entry:
            yield from _rows(entry, definitions, f"{prefix}{name}[].")
        elif "properties" in shape:
            yield from _rows(shape, definitions, f"{prefix}{name}.")


def _shape(field: Shape, definitions: dict[str, Shape]) -> Shape:
    """Returns what a value looks like unless it is null. No parameter takes two kinds of values besides."""
    if "anyOf" in field:
        [field] = (each for each in field["anyOf"] if each.get("type") != "null")
    reference = field.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else field


def _type(name: str, shape: Shape, entry: Shape) -> str:
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if shape.get("type") == "array":
        word, *more = _type("", entry, {}).split(" ", 1)
        return "list" if "properties" in entry else " ".join(["list of", f"{word}s", *more])
    if shape.get("pattern") == NEW_COLUMN:
        return "name"
    if shape.get("format") == "column":
        of = shape.get("x-column", {})
        return f"column{'' if 'unless' in of else _OF_TYPES.get(tuple(of.get('types', ())), '')}"
    if shape.get("format") in ("expression", "file", "path"):
        return str(shape["format"])
    unit = next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
    return f"{shape['type']}{unit}"


def _default(value: Any, entry: Shape) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        given = [_without_defaults(each, entry) for each in value]
        return f"`{yaml.safe_dump(given, default_flow_style=True).strip()}`" if given else "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _without_defaults(entry: dict[str, Any], shape: Shape) -> dict[str, Any]:
    usual = {name: field.get("default") for name, field in shape["properties"].items()}
    return {name: value for name, value in entry.items() if value != usual[name]}


def _allowed(shape: Shape) -> str:
    """Returns the bounds in words. Returns an empty text if there are none, or if the type says it."""
    if shape.get("pattern") == NEW_COLUMN or shape.get("format") in ("column", "file"):
        return ""
    if "pattern" in shape:
        return pattern_words(shape["pattern"])
    for least, most, of in _RANGES:
        if least in shape and most in shape:
            return f"{_number(shape[least])} to {_number(shape[most])}{of}"
    found = [f"{word} {_number(shape[key])}{of}" for key, word, of in _BOUNDS if key in shape]
    return ", ".join(found)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
