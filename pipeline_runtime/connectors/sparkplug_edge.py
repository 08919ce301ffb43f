"""The messages of an edge node of Sparkplug B that sends rows. Pure: it does not know the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline_runtime.connectors.sparkplug import BOOLEAN, NAMESPACE, REBIRTH, SEQS, new_payload, parsed
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.sparkplug import BD_SEQ, EdgeMetric

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


class EdgeNode:
    """Numbers the messages, and knows the last values. It outlives connections."""

    def __init__(self, group: str, node: str, metrics: Sequence[EdgeMetric]) -> None:
        self._group, self._node, self._metrics = group, node, metrics
        self._session = self._seq = 0
        self._newest_ms: int | None = None
        self._last: dict[str, Any] = {}  # by column

    def topic(self, kind: str) -> str:
        return f"{NAMESPACE}/{self._group}/{kind}/{self._node}"

    def begin(self, session: int, now_ms: int) -> bytes:
        """Returns the death of a connection that is made now. `session`: by which number its birth and its
        death belong together, 0 to 255."""
        self._session = session
        payload = new_payload(timestamp=now_ms)
        self._add_session(payload, now_ms)
        return _bytes(payload)

    def birth(self, now_ms: int) -> bytes:
        """Returns what says all metrics with their last values. It is sent: the next message follows it."""
        payload = new_payload(timestamp=now_ms, seq=0)
        time_ms = now_ms if self._newest_ms is None else self._newest_ms
        for alias, each in enumerate(self._metrics, 1):
            type_ = _SENT[each.type][0]
            metric = payload.metrics.add(name=each.name, alias=alias, timestamp=time_ms, datatype=type_)
            _set(metric, each, self._last.get(each.column))
            if each.unit:
                metric.properties.keys.append("engUnit")
                metric.properties.values.add(type=_STRING, string_value=each.unit)
        # In the order of their times, as the specification asks for it.
        self._add_session(payload, now_ms)
        payload.metrics.add(name=REBIRTH, timestamp=now_ms, datatype=BOOLEAN, boolean_value=False)
        self._seq = 1
        return _bytes(payload)

    def data(self, row: Mapping[str, Any], time_ms: int, now_ms: int) -> bytes:
        """Returns the message of a row. Raises ValueError if Sparkplug cannot say one of its values."""
        payload = new_payload(timestamp=now_ms, seq=self._seq)
        for alias, each in enumerate(self._metrics, 1):
            metric = payload.metrics.add(alias=alias, timestamp=max(0, time_ms))
            if self._is_late(time_ms):
                metric.is_historical = True
            try:
                _set(metric, each, row.get(each.column))
            except UnicodeError as error:
                raise ValueError(f"its {each.column} holds a character that no text can have") from error
            except ValueError as error:
                raise ValueError(f"its {each.column} cannot be sent: {error}") from error
        return _bytes(payload)

    def sent(self, row: Mapping[str, Any], time_ms: int) -> None:
        """Tells that the message of a row is sent."""
        self._seq = (self._seq + 1) % SEQS
        if not self._is_late(time_ms):
            self._newest_ms, self._last = time_ms, dict(row)

    def _is_late(self, time_ms: int) -> bool:
        return self._newest_ms is not None and time_ms < self._newest_ms

    def _add_session(self, payload: Any, now_ms: int) -> None:
        payload.metrics.add(name=BD_SEQ, timestamp=now_ms, datatype=_INT64, long_value=self._session)


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
