"""Classes of protobuf for a format that is written as a table, without code that a compiler has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Format = Mapping[str, Mapping[str, tuple[int, str]]]
"""message -> field -> (number, type). A type is one of `_PLAIN` or a message of the table; with a * before it
the field may come again and again. Fields that the table lacks are skipped."""

_Field = descriptor_pb2.FieldDescriptorProto
_PLAIN = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


def message_classes(name: str, format: Format) -> dict[str, Any]:
    """Returns the class of each message. `name`: what the format is called, a small word."""
    package = f"fogline.{name}"
    file = descriptor_pb2.FileDescriptorProto(name=f"fogline/{name}.proto", package=package)
    for message_name, fields in format.items():
        message = file.message_type.add(name=message_name)
        for field, (number, type_) in fields.items():
            many, kind = type_.startswith("*"), type_.removeprefix("*")
            added = message.field.add(name=field, number=number)
            added.label = _Field.Label.Value("LABEL_REPEATED" if many else "LABEL_OPTIONAL")
            if kind in _PLAIN:
                added.type = _PLAIN[kind]
            else:
                added.type = _Field.TYPE_MESSAGE
                added.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        each: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{each}"))
        for each in format
    }
