"""The messages of an edge node of Sparkplug B that sends rows. Pure: it does not know the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pipeline_runtime.connectors.sparkplug import BOOLEAN, NAMESPACE, REBIRTH, SEQS, new_payload, parsed
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.mqtt import sparkplug_id
from pipeline_runtime.operators.sparkplug import BD_SEQ, EdgeMetric

DEVICES_MAX = 1_000
_INT64, _DOUBLE, _STRING, _DATETIME = 4, 10, 12, 13
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole(value: Any) -> int:
    return int(value) % (1 << 64)  # negative ones as two's complement


def _moment(value: Any) -> int:
    ms = (datetime.fromisoformat(value) - _EPOCH) // timedelta(milliseconds=1)
    if ms < 0:
        raise ValueError("Sparkplug B has no time before 1970")
    return ms


_SENT: dict[FieldType, tuple[int, str, Callable[[Any], Any]]] = {
    FieldType.INTEGER: (_INT64, "long_value", _whole),
    FieldType.NUMBER: (_DOUBLE, "double_value", float),
    FieldType.STRING: (_STRING, "string_value", str),
    FieldType.BOOLEAN: (BOOLEAN, "boolean_value", bool),
    FieldType.TIMESTAMP: (_DATETIME, "long_value", _moment),
}
"""The type of the metric, the field of its value, and what makes the value of a row's."""


def wants_rebirth(payload: bytes) -> bool:
    """Returns whether a command asks for the births."""
    try:
        metrics = parsed(payload).metrics
    except ValueError:
        return False
    return any(each.name == REBIRTH and each.boolean_value for each in metrics)


class Message(NamedTuple):
    topic: str
    payload: bytes


@dataclass
class _Source:
    """The edge node itself, or a device of it."""

    name: str  # of a device; else empty
    first_alias: int
    newest_ms: int | None = None
    last: dict[str, Any] = field(default_factory=dict)  # by column
    is_born: bool = False  # of a device: it is not away
    sent_s: float = 0.0

    def is_late(self, time_ms: int) -> bool:
        return self.newest_ms is not None and time_ms < self.newest_ms


class EdgeNode:
    """Numbers the messages, and knows the last values. It outlives connections."""

    def __init__(
        self, group: str, node: str, metrics: Sequence[EdgeMetric], device_column: str | None = None
    ) -> None:
        """`device_column`: what names the device whose metrics they are. Without it they are those of the
        edge node itself."""
        self._group, self._node, self._metrics, self._column = group, node, metrics, device_column
        self._session = self._seq = 0
        self._itself = _Source("", 1)
        self._devices: dict[str, _Source] = {}

    @property
    def words(self) -> str:
        return f"{self._group}/{self._node}"

    def topic(self, kind: str, device: str = "") -> str:
        return f"{NAMESPACE}/{self._group}/{kind}/{self._node}{device and f'/{device}'}"

    @property
    def own_topics(self) -> list[str]:
        """Returns those of its births and its data."""
        if self._column is None:
            return [self.topic("NBIRTH"), self.topic("NDATA")]
        return [self.topic("NBIRTH"), self.topic("DBIRTH", "+"), self.topic("DDATA", "+")]

    @property
    def all_topics(self) -> str:
        """Returns one filter for all that it writes and reads, for people."""
        return self.topic("+") if self._column is None else self.topic("+", "#")

    def begin(self, session: int, now_ms: int, now_s: float = 0.0) -> bytes:
        """Returns the death of a connection that is made now. `session`: by which number its birth and its
        death belong together, 0 to 255. `now_s`: the time for `silent`."""
        self._session = session
        for each in self._devices.values():  # nobody knows how long their rows have waited
            each.sent_s = now_s
        payload = new_payload(timestamp=now_ms)
        self._add_session(payload, now_ms)
        return _bytes(payload)

    def births(self, now_ms: int) -> Iterator[Message]:
        """Yields what says all metrics with their last values: of the edge node, and of each device that is
        not away. Each is sent before the next one is asked for, and the next message follows them."""
        payload = new_payload(timestamp=now_ms, seq=0)
        if self._column is None:
            self._add_metrics(payload, self._itself, now_ms)
        # In the order of their times, as the specification asks for it.
        self._add_session(payload, now_ms)
        payload.metrics.add(name=REBIRTH, timestamp=now_ms, datatype=BOOLEAN, boolean_value=False)
        self._seq = 1
        yield Message(self.topic("NBIRTH"), _bytes(payload))
        for each in self._devices.values():
            if each.is_born:
                yield self._birth_of(each, now_ms)

    def birth_before(self, row: Mapping[str, Any], now_ms: int, now_s: float = 0.0) -> Message | None:
        """Returns the birth of a row's device if it is new or was away. It is sent, so it takes the number of
        the message before it was made. `now_s`: the time for `silent`. Raises ValueError as `data`."""
        source = self._source(row)
        if source is self._itself or source.is_born:
            return None
        self._devices[source.name] = source
        source.sent_s = now_s
        return self._birth_of(source, now_ms)

    def data(self, row: Mapping[str, Any], time_ms: int, now_ms: int) -> Message:
        """Returns the message of a row. Raises ValueError if the row names no device, or if Sparkplug cannot
        say one of its values."""
        source = self._source(row)
        payload = new_payload(timestamp=now_ms, seq=self._seq)
        for alias, each in enumerate(self._metrics, source.first_alias):
            metric = payload.metrics.add(alias=alias, timestamp=max(0, time_ms))
            if source.is_late(time_ms):
                metric.is_historical = True
            try:
                _set(metric, each, row.get(each.column))
            except UnicodeError as error:
                raise ValueError(f"its {each.column} holds a character that no text can have") from error
            except ValueError as error:
                raise ValueError(f"its {each.column} cannot be sent: {error}") from error
        return Message(self._data_topic(source), _bytes(payload))

    def sent(self, row: Mapping[str, Any], time_ms: int, now_s: float = 0.0) -> None:
        """Tells that the message of a row is sent. `now_s`: the time for `silent`."""
        source = self._source(row)
        source.sent_s = now_s
        self._count()
        if not source.is_late(time_ms):
            source.newest_ms, source.last = time_ms, dict(row)

    def probe(self, topic: str, now_ms: int) -> Message:
        """Returns a message of data that says nothing new. It is sent."""
        payload = new_payload(timestamp=now_ms, seq=self._seq)
        self._count()
        return Message(topic, _bytes(payload))

    def silent(self, since_s: float, now_ms: int) -> Iterator[Message]:
        """Yields the death of each device that has sent no row since then. It is sent."""
        for each in self._devices.values():
            if each.is_born and each.sent_s < since_s:
                each.is_born = False
                payload = new_payload(timestamp=now_ms, seq=self._seq)
                self._count()
                yield Message(self.topic("DDEATH", each.name), _bytes(payload))

    def _source(self, row: Mapping[str, Any]) -> _Source:
        """Returns a new one, which is not kept, for a device that was never born. Raises ValueError."""
        if self._column is None:
            return self._itself
        name = row.get(self._column)
        known = self._devices.get(name) if isinstance(name, str) else None
        if known is not None:
            return known
        name = "" if name is None else str(name)
        try:
            sparkplug_id(name)
        except ValueError as error:
            raise ValueError(f"its {self._column} names no device: {error}") from error
        if name in self._devices:
            return self._devices[name]
        if len(self._devices) >= DEVICES_MAX:
            raise ValueError(f"the edge node has {DEVICES_MAX} devices already, and sends no more of them")
        return _Source(name, 1 + len(self._devices) * len(self._metrics))

    def _data_topic(self, source: _Source) -> str:
        return self.topic("DDATA" if source.name else "NDATA", source.name)

    def _birth_of(self, device: _Source, now_ms: int) -> Message:
        device.is_born = True
        payload = new_payload(timestamp=now_ms, seq=self._seq)
        self._add_metrics(payload, device, now_ms)
        self._count()
        return Message(self.topic("DBIRTH", device.name), _bytes(payload))

    def _add_metrics(self, payload: Any, source: _Source, now_ms: int) -> None:
        time_ms = now_ms if source.newest_ms is None else source.newest_ms
        for alias, each in enumerate(self._metrics, source.first_alias):
            type_ = _SENT[each.type][0]
            metric = payload.metrics.add(name=each.name, alias=alias, timestamp=time_ms, datatype=type_)
            _set(metric, each, source.last.get(each.column))
            if each.unit:
                metric.properties.keys.append("engUnit")
                metric.properties.values.add(type=_STRING, string_value=each.unit)

    def _add_session(self, payload: Any, now_ms: int) -> None:
        payload.metrics.add(name=BD_SEQ, timestamp=now_ms, datatype=_INT64, long_value=self._session)

    def _count(self) -> None:
        self._seq = (self._seq + 1) % SEQS


def _set(metric: Any, what: EdgeMetric, value: Any) -> None:
    """Raises ValueError."""
    if value is None:
        metric.is_null = True
    else:
        _, field, made = _SENT[what.type]
        setattr(metric, field, made(value))


def _bytes(payload: Any) -> bytes:
    made: bytes = payload.SerializeToString()
    return made
