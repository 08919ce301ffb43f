"""Modbus TCP: writes registers (pymodbus)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from time import time
from typing import Any

from pipeline_runtime.connectors.late import late
from pipeline_runtime.connectors.modbus import Refusal, Session, connected
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Deliverer, Place, Refused
from pipeline_runtime.connectors.sent import Sent
from pipeline_runtime.operators.modbus import IN_WORDS, Kind, ModbusConnection, ModbusOutParams

_NEVER = (1, 2, 3)
"""The exceptions that no repetition ends: of the function, the address and the value."""


def writes_of(params: ModbusOutParams, row: Mapping[str, Any]) -> list[tuple[int, Kind, int, list[int]]]:
    """Returns (unit id, kind, address as it is sent, words) of each value of a row that is not empty. Raises
    ValueError if one does not fit."""
    made: list[tuple[int, Kind, int, list[int]]] = []
    for each in params.registers:
        value = row.get(each.column)
        if value is None:
            continue
        try:
            words = each.words_of(value)
        except ValueError as error:
            raise ValueError(f"its {each.column} cannot be written: {error}") from error
        made.append((each.unit_id, each.kind, each.address - params.first_address, words))
    return made


class ModbusDeliverer(Deliverer[ModbusOutParams, ModbusConnection]):
    """A row counts as delivered when the device has confirmed each of its values."""

    batch_rows = 20  # a batch is confirmed as a whole, and each value takes an answer of the device

    def __init__(self, place: Place[ModbusOutParams, ModbusConnection]) -> None:
        super().__init__(place)
        self._open = ExitStack()
        self._session: Session | None = None
        self._sent = Sent()

    def open(self, epoch: int) -> None:
        self._session = self._open.enter_context(connected(self.place.connection))

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        session = self._session
        assert session is not None
        for place in self._sent.missing(batch):
            why = late(batch.times_ms[place], self.place.params.late_s, time())
            self._sent.note(batch.offsets[place], why or self._written(session, batch.rows[place]))
        return self._sent.refused(batch)

    def settle(self) -> None:
        self._sent.settle()

    def close(self) -> None:
        self._session = None
        self._open.close()

    def _written(self, session: Session, row: Mapping[str, Any]) -> str | None:
        """Writes a row. Returns why the device does not take it, if it does not."""
        try:
            writes = writes_of(self.place.params, row)
        except ValueError as error:
            return str(error)
        for unit_id, kind, first, words in writes:
            self.goes_on()
            try:
                session.write(unit_id, kind, first, words)
            except Refusal as refusal:
                what = f"the device refuses {IN_WORDS[kind]} {first} of unit {unit_id}: {refusal}"
                if refusal.code in _NEVER:
                    return what
                raise ConnectorError(f"{self.place.connection.where}: {what}.") from refusal
        return None
