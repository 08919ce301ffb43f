"""The browser's types, made from the REST API's OpenAPI document and the messages of /ws/live.

make api-types --> static/shared/api.gen.ts (a unit test fails when it is not current)
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from pipeline_runtime.model.document import PipelineDocument
from webapp.api.api import api
from webapp.monitoring.messages import LiveBody, Wish

Schema = dict[str, Any]
REF = "#/components/schemas/"
HEAD = """// Written by `make api-types` from webapp/*/schemas.py, webapp/monitoring/messages.py and
// pipeline_runtime/model/document.py. Do not edit: a test compares it with them.
"""
_PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def api_types() -> str:
    """Returns the text of api.gen.ts."""
    components: dict[str, Schema] = dict(
        api.get_openapi_schema(path_prefix="/api/v1/")["components"]["schemas"]
    )
    for name, type_ in (("LiveBody", LiveBody), ("Wish", Wish)):
        schema = TypeAdapter(type_).json_schema(mode="serialization", ref_template=REF + "{model}")
        # Types that both have are the REST API's, where ninja has named them.
        components = schema.pop("$defs", {}) | components | {name: schema}
    components |= _document_types()
    types = [_declared(name, components[name]) for name in sorted(components)]
    live = "/** A message of /ws/live: numbered by each socket for itself. */\n"
    return "\n".join([HEAD, *types, f"{live}export type LiveMessage = LiveBody & {{ n: number }};\n"])


def _document_types() -> dict[str, Schema]:
    """Returns the pipeline document's types as the browser sends it: fields with a default may be left
    out."""
    schema = PipelineDocument.model_json_schema(mode="validation", ref_template=f"{REF}Doc{{model}}")
    parts = schema.pop("$defs")
    return {f"Doc{name}": part for name, part in parts.items()} | {"PipelineDocument": schema}


def _declared(name: str, schema: Schema) -> str:
    comment = _comment(schema.get("description"), "")
    if "properties" in schema:
        return f"{comment}export interface {name} {_object(schema, '')}\n"
    return f"{comment}export type {name} = {type_of(schema, '')};\n"


def type_of(schema: Schema, indent: str) -> str:
    """Returns a JSON Schema as a TypeScript type. Raises ValueError for a schema that it does not support."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "x-typescript" in schema:  # the browser's own type for something that the server sends unchanged
        return str(schema["x-typescript"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if len(schema.get("allOf", ())) == 1:  # a reference with a default beside it
        return type_of(schema["allOf"][0], indent)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(each, indent) for each in schema[key]))
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return f"[{', '.join(type_of(each, indent) for each in schema['prefixItems'])}]"
    if kind == "array":
        item = type_of(schema.get("items", {}), indent)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        return _object(schema, indent) if "properties" in schema else _record(schema, indent)
    if kind is None and not schema.keys() - {"title", "description", "default"}:
        return "unknown"
    if kind not in _PRIMITIVES:
        raise ValueError(f"no TypeScript type is known for {schema}")
    return _PRIMITIVES[kind]


def _record(schema: Schema, indent: str) -> str:
    values = schema.get("additionalProperties")
    value = type_of(values, indent) if isinstance(values, dict) else "unknown"
    names = schema.get("propertyNames")
    # Keys that are listed need not all be there.
    return f"Partial<Record<{type_of(names, indent)}, {value}>>" if names else f"Record<string, {value}>"


def _object(schema: Schema, indent: str) -> str:
    inner = indent + "  "
    required = schema.get("required", ())
    lines = []
    for name, each in schema["properties"].items():
        key = name if name.isidentifier() else json.dumps(name)
        optional = "" if name in required else "?"
        comment = _comment(each.get("description"), inner)
        lines.append(f"{comment}{inner}{key}{optional}: {type_of(each, inner)};\n")
    return "{\n" + "".join(lines) + indent + "}"


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    lines = text.replace("*/", "* /").splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"
