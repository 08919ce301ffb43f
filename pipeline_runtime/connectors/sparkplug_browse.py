"""What edge nodes of Sparkplug B have, as their messages tell it. Pure: it does not know the broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.opcua_rows import plain
from pipeline_runtime.connectors.sdk import shown_value
from pipeline_runtime.connectors.sparkplug import REBIRTH, Births, NotBorn, address_of, parsed
from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.sparkplug import BD_SEQ, NODE_CONTROL
from pipeline_runtime.operators.ticked_metrics import Source

METRICS_FOUND_MAX = 2_000
SOURCES_MAX = 500
UNIT = "engUnit"
"""The property of a metric that many edge nodes write its unit into."""
_TYPES = (
    *("", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double"),
    *("Boolean", "String", "DateTime", "Text", "UUID", "DataSet", "Bytes", "File", "Template"),
    *("PropertySet", "PropertySetList", "Int8Array", "Int16Array", "Int32Array", "Int64Array"),
    *("UInt8Array", "UInt16Array", "UInt32Array", "UInt64Array", "FloatArray", "DoubleArray"),
    *("BooleanArray", "StringArray", "DateTimeArray"),
)
"""By their numbers."""
_HOLDS = {
    **dict.fromkeys(range(1, 9), FieldType.INTEGER),
    **dict.fromkeys((9, 10), FieldType.NUMBER),
    11: FieldType.BOOLEAN,
    13: FieldType.TIMESTAMP,
}


@dataclass
class _Known:
    births: Births = field(default_factory=Births)
    metrics: dict[str, Found] = field(default_factory=dict)  # by name
    has_unknown: bool = False


class EdgeNodes:
    """Edge nodes and devices, with the metrics that they have named."""

    def __init__(self) -> None:
        self._known: dict[Source, _Known] = {}
        self.is_cut = False
        """Whether there are more than are kept."""

    def take(self, topic: str, raw: bytes) -> bool:
        """Returns False if it is no message of an edge node."""
        try:
            address = address_of(topic)
            if address is None:
                return False
            payload = parsed(raw)
            source = Source(address.group, address.node, address.device)
            self._at(Source(address.group, address.node))
            known = self._at(source)
            if known is None:
                return True
            if address.is_birth:
                known.births = Births()
                known.births.note(payload.metrics)
            for metric in payload.metrics if not address.is_death else ():
                self._note(source, known, metric)
        except ValueError:
            return False
        return True

    def sources(self) -> list[Found]:
        """Returns the edge nodes."""
        return [_source(each) for each in sorted(self._known) if not each.device]

    def within(self, source: Source) -> list[Found]:
        """Returns the devices of an edge node, and the metrics of a source."""
        devices = [each for each in sorted(self._known) if not source.device and each.device]
        known = self._known.get(source, _Known())
        return [
            *(_source(each) for each in devices if each[:2] == source[:2]),
            *(known.metrics[name] for name in sorted(known.metrics)),
        ]

    def named(self, find: str) -> list[Found]:
        """Returns the edge nodes, devices and metrics that have `find` in their names."""
        wanted = find.casefold()
        found = [_source(each) for each in sorted(self._known) if wanted in each.path.casefold()]
        for source in sorted(self._known):
            metrics = self._known[source].metrics
            found += [metrics[name] for name in sorted(metrics) if wanted in name.casefold()]
        return found[:METRICS_FOUND_MAX]

    def has_unknown(self, source: Source) -> bool:
        """Returns whether metrics came that only a birth names."""
        return any(known.has_unknown for each, known in self._known.items() if each[:2] == source[:2])

    def _at(self, source: Source) -> _Known | None:
        if source not in self._known and len(self._known) >= SOURCES_MAX:
            self.is_cut = True
            return None
        return self._known.setdefault(source, _Known())

    def _note(self, source: Source, known: _Known, metric: Any) -> None:
        """Raises ValueError."""
        try:
            values = list(known.births.values(metric))
        except NotBorn:
            known.has_unknown = True
            return
        for name, value in values:
            if name == BD_SEQ or name.startswith(NODE_CONTROL):
                continue
            if name not in known.metrics and len(known.metrics) >= METRICS_FOUND_MAX:
                self.is_cut = True
                continue
            type_ = known.births.types.get(name, metric.datatype)
            try:
                known.metrics[name] = Found(
                    path=source.metric_path(name),
                    title=name,
                    type=_TYPES[type_] if type_ < len(_TYPES) else "",
                    unit=_unit(metric) or getattr(known.metrics.get(name), "unit", ""),
                    usable=True,
                    holds=_HOLDS.get(type_) or _of_value(value),
                    value=shown_value(plain(value)),
                    within=source.titles,
                )
            except ValidationError:  # one metric spoils no others
                self.is_cut = True


def _source(source: Source) -> Found:
    kind = "device" if source.device else "edge node"
    return Found(
        path=source.path,
        title=source.titles[-1],
        type=f"Sparkplug B, {kind}",
        inner=True,
        within=source.titles[:-1],
    )


def _unit(metric: Any) -> str:
    properties = metric.properties
    found = dict(zip(properties.keys, properties.values, strict=False)).get(UNIT)
    unit = "" if found is None else found.string_value
    return unit if isinstance(unit, str) else ""


def _of_value(value: Any) -> FieldType:
    """Returns the type of a column for a metric whose own type is no number and no time, or is not known."""
    if isinstance(value, bool):
        return FieldType.BOOLEAN
    return FieldType.NUMBER if isinstance(value, float) else FieldType.STRING


def words_about(*, has_unknown: bool, is_empty: bool, may_ask: bool, within_s: float) -> str:
    """Returns what is missing in a look at an edge node, and why."""
    if not has_unknown and not is_empty:
        return ""
    said = f" No birth came within {within_s:g} s, so metrics without a name are not shown."
    if may_ask:
        return f"{said} The edge node was asked for it ({REBIRTH})."
    return f"{said} Let the connection ask for births, or look again when the edge node sends one."
