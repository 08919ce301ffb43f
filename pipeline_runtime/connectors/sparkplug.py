"""Sparkplug B: decodes the messages of edge nodes. Pure: it does not know the broker.

A birth names all metrics of an edge node or of a device, each with its type and perhaps a number, its alias.
Later messages may name a metric by its alias alone, and leave its type out. So they cannot be read without
the birth.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from pipeline_runtime.connectors.opcua_rows import GOOD, Change, Row, rows_of
from pipeline_runtime.model.protobuf import message_classes
from pipeline_runtime.operators.ticked_metrics import SPARKPLUG

NAMESPACE = SPARKPLUG
REBIRTH = "Node Control/Rebirth"
PAYLOAD_BYTES_MAX = 4 << 20
METRICS_MAX = 20_000
"""With those in templates."""
NAME_MAX = 2_000
DEPTH_MAX = 8
SEQS = 256
"""Messages of an edge node are numbered from 0 to 255, and then from 0 again."""
_REPEATED_MAX = 8
"""A message that comes again is so few messages old: it comes twice at once where two filters find it."""
_OF_NODE = frozenset({"NBIRTH", "NDATA", "NDEATH"})
_OF_DEVICE = frozenset({"DBIRTH", "DDATA", "DDEATH"})
_NO_DATA = frozenset({"NCMD", "DCMD", "STATE"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# From the specification (https://sparkplug.eclipse.org), sparkplug_b.proto: the fields that say values, and
# the texts of properties. All others are skipped.
_VALUE = {"int_value": "uint32", "long_value": "uint64", "float_value": "float", "double_value": "double"}
_VALUE |= {"boolean_value": "bool", "string_value": "string"}
_FORMAT: dict[str, dict[str, tuple[int, str]]] = {
    "Payload": {"timestamp": (1, "uint64"), "metrics": (2, "*Metric"), "seq": (3, "uint64")},
    "Metric": {
        "name": (1, "string"),
        "alias": (2, "uint64"),
        "timestamp": (3, "uint64"),
        "datatype": (4, "uint32"),
        "is_historical": (5, "bool"),
        "is_null": (7, "bool"),
        "properties": (9, "PropertySet"),
        **{name: (number, type_) for number, (name, type_) in enumerate(_VALUE.items(), 10)},
        "bytes_value": (16, "bytes"),
        "dataset_value": (17, "DataSet"),
        "template_value": (18, "Template"),
    },
    "DataSet": {"columns": (2, "*string"), "types": (3, "*uint32"), "rows": (4, "*Row")},
    "Row": {"elements": (1, "*Cell")},
    "Cell": {name: (number, type_) for number, (name, type_) in enumerate(_VALUE.items(), 1)},
    "PropertySet": {"keys": (1, "*string"), "values": (2, "*Property")},
    "Property": {"type": (1, "uint32"), "string_value": (8, "string")},
    "Template": {"metrics": (2, "*Metric")},
}
_INT8, _INT64, BOOLEAN, _DATETIME = 1, 4, 11, 13
_BOOLEANS, _TEXTS, _DATETIMES = 32, 33, 34
_ARRAYS = dict(zip(range(22, 32), "bhiqBHIQfd", strict=True)) | {_DATETIMES: "q"}
"""The types of arrays, and their items as `struct` names them."""


@dataclass(frozen=True)
class Address:
    """Who has sent a message. `device` is empty for the edge node itself."""

    group: str
    kind: str  # NBIRTH, DDATA, ...
    node: str
    device: str = ""

    @property
    def is_birth(self) -> bool:
        return self.kind.endswith("BIRTH")

    @property
    def is_death(self) -> bool:
        return self.kind.endswith("DEATH")

    @property
    def words(self) -> str:
        return "/".join(filter(None, (self.group, self.node, self.device)))


def address_of(topic: str) -> Address | None:
    """Returns None if the message is a command or tells the state of a host. Raises ValueError if the topic
    is none of Sparkplug B."""
    levels = topic.split("/")
    if levels[0] == NAMESPACE and len(levels) > 2:
        if levels[1] == "STATE" or levels[2] in _NO_DATA:
            return None
        if (levels[2] in _OF_NODE and len(levels) == 4) or (levels[2] in _OF_DEVICE and len(levels) == 5):
            return Address(levels[1], *levels[2:])
    raise ValueError("this is no topic of Sparkplug B")


def parsed(payload: bytes) -> Any:
    """Returns the payload as a message of protobuf. Raises ValueError."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ValueError(f"it has {len(payload)} bytes, and at most {PAYLOAD_BYTES_MAX} are read")
    try:
        found: Any = _classes()["Payload"].FromString(payload)
    except (DecodeError, UnicodeError) as error:
        raise ValueError("it is no payload of Sparkplug B") from error
    _check_bounds(found.metrics)
    return found


def _check_bounds(metrics: Any) -> None:
    """Raises ValueError if there is more, also within templates, than is read: a short message can name very
    much."""
    waiting, count = [(metrics, 0, 1)], 0
    while waiting:
        inner, before, depth = waiting.pop()
        count += len(inner)
        if count > METRICS_MAX:
            raise ValueError(f"it has more than {METRICS_MAX} metrics")
        if depth > DEPTH_MAX:
            raise ValueError(f"its templates lie in each other more than {DEPTH_MAX} levels deep")
        for metric in inner:
            length = before + len(metric.name)
            if length > NAME_MAX:
                raise ValueError(f"the name of a metric has more than {NAME_MAX} letters")
            if metric.HasField("template_value"):
                waiting.append((metric.template_value.metrics, length + 1, depth + 1))


def new_payload(**fields: int) -> Any:
    """Returns a payload without metrics."""
    return _classes()["Payload"](**fields)


def missed_before(last: int | None, seq: int) -> int | None:
    """Returns how many messages of an edge node are missing between two numbers. Returns None if the message
    came before, and comes again. `last` is None before the first."""
    if last is None:
        return 0
    ahead = (seq - last) % SEQS
    return ahead - 1 if 0 < ahead < SEQS - _REPEATED_MAX else None


def rebirth_command(now_ms: int) -> bytes:
    """Returns the payload that asks an edge node to send its births again."""
    payload = new_payload(timestamp=now_ms)
    payload.metrics.add(name=REBIRTH, timestamp=now_ms, datatype=BOOLEAN, boolean_value=True)
    made: bytes = payload.SerializeToString()
    return made


def metric_names(topic: str, payload: bytes) -> str | None:
    """Returns the names or aliases of the metrics, for people. Returns None if it is no message of Sparkplug
    B."""
    try:
        if address_of(topic) is None:
            return None
        metrics = parsed(payload).metrics
        return ", ".join(_text(each.name) or f"alias {each.alias}" for each in metrics)
    except ValueError:
        return None


class NotBorn(Exception):
    """No birth is known that says what a metric is. The message says which one."""


@dataclass
class Births:
    """What the births of an edge node or of one device have said."""

    names: dict[int, str] = field(default_factory=dict)  # by alias
    types: dict[str, int] = field(default_factory=dict)  # by name

    @property
    def size(self) -> int:
        """Returns how many metrics have an alias or a type."""
        return max(len(self.names), len(self.types))

    def note(self, metrics: Any, within: str = "") -> None:
        """`within`: what is before their names, if they are those of a template. Raises ValueError."""
        for metric in metrics:
            name = within + _text(metric.name)
            if metric.HasField("alias"):
                self.names[metric.alias] = name
            if metric.datatype:
                self.types[name] = metric.datatype
            if metric.HasField("template_value"):
                self.note(metric.template_value.metrics, f"{name}/")

    def rows(self, payload: Any, now_ms: int) -> list[tuple[Row, bool]]:
        """Returns the metrics as rows, one for each timestamp, each with whether it is historical. Raises
        NotBorn, ValueError."""
        default_ms = payload.timestamp or now_ms
        changes: dict[bool, list[Change]] = {False: [], True: []}
        for metric in payload.metrics:
            time_us = (metric.timestamp or default_ms) * 1000
            for name, value in self.values(metric):
                changes[metric.is_historical].append(Change(name, value, GOOD, time_us))
        return [(row, historical) for historical in (True, False) for row in rows_of(changes[historical])]

    def values(self, metric: Any) -> Iterator[tuple[str, Any]]:
        """Yields a metric, or those of a template, by name. Raises NotBorn, ValueError."""
        name = _text(metric.name)
        if not metric.HasField("name"):
            if metric.alias not in self.names:
                raise NotBorn(f"the metric with the alias {metric.alias}")
            name = self.names[metric.alias]
        type_ = metric.datatype or self.types.get(name, 0)
        if metric.is_null:
            yield name, None
        elif metric.HasField("template_value"):
            for inner in _within(metric.template_value, name):
                yield from self.values(inner)
        else:
            yield name, _value(metric, type_, name)


def _within(template: Any, name: str) -> Iterator[Any]:
    """Yields the metrics of a template, by their whole names."""
    for inner in template.metrics:
        named = type(inner)()
        named.CopyFrom(inner)
        named.name = f"{name}/{_text(inner.name)}"
        yield named


def _value(metric: Any, type_: int, name: str) -> Any:
    if metric.HasField("dataset_value"):
        return _table(metric.dataset_value)
    if metric.HasField("bytes_value"):
        return _array(metric.bytes_value, type_)
    found = _plain(metric)
    if isinstance(found, int) and not isinstance(found, bool):
        if not type_:
            raise NotBorn(f"the type of {name}")
        return _whole(found, type_)
    return found


def _plain(holder: Any) -> Any:
    """Returns what a metric or a cell holds, or None."""
    found = next((getattr(holder, each) for each in _VALUE if holder.HasField(each)), None)
    return _text(found) if isinstance(found, bytes) else found


def _text(found: str | bytes) -> str:
    """Returns a text. Raises UnicodeError: protobuf gives bytes for one that is no UTF-8."""
    return found.decode() if isinstance(found, bytes) else found


def _whole(found: int, type_: int) -> Any:
    """Returns what a field of whole numbers says: negative ones are sent as their two's complement, some
    publishers in 32 bits, others in those of the type."""
    if type_ == _DATETIME:
        return _moment(found)
    if _INT8 <= type_ <= _INT64:
        bits = 8 << (type_ - _INT8)
        found &= (1 << bits) - 1
        return found - (1 << bits) if found >> (bits - 1) else found
    return bool(found) if type_ == BOOLEAN else found


def _moment(ms: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError as error:
        raise ValueError(f"{ms} ms since 1970 are no time") from error


def _table(found: Any) -> list[dict[str, Any]]:
    rows = []
    for row in found.rows:
        cells = {}
        for name, type_, cell in zip(found.columns, found.types, row.elements, strict=False):
            cells[_text(name)] = _value_of_cell(cell, type_)
        rows.append(cells)
    return rows


def _value_of_cell(cell: Any, type_: int) -> Any:
    found = _plain(cell)
    return _whole(found, type_) if isinstance(found, int) and not isinstance(found, bool) else found


def _array(found: bytes, type_: int) -> Any:
    try:
        if type_ == _TEXTS:
            return [each.decode() for each in found.split(b"\0")[:-1]]
        if type_ == _BOOLEANS:
            [count] = struct.unpack_from("<I", found)
            if count > 8 * (len(found) - 4):
                raise ValueError
            return [bool(found[4 + at // 8] >> (7 - at % 8) & 1) for at in range(count)]
        if type_ not in _ARRAYS:
            return found
        items = [item for [item] in struct.iter_unpack(f"<{_ARRAYS[type_]}", found)]
    except (struct.error, ValueError) as error:
        raise ValueError("an array in it is broken") from error
    return [_moment(item) for item in items] if type_ == _DATETIMES else items


@cache
def _classes() -> dict[str, Any]:
    """Returns protobuf's classes for the format."""
    return message_classes("sparkplug", _FORMAT)
