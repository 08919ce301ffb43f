"""Modbus TCP: polls registers (pymodbus)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, time
from typing import Any

from pymodbus.client import ModbusTcpClient
from pymodbus.exceptions import ConnectionException, ModbusException

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.name_servers import by_address
from pipeline_runtime.connectors.polls import Polls, missed_in
from pipeline_runtime.connectors.sdk import ConnectorError, Ingester, Intake, Place, Probed, Record
from pipeline_runtime.model.connectors import ROWS_SHOWN, Found
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.modbus import (
    ADDRESS_MAX,
    BITS,
    IN_WORDS,
    Kind,
    ModbusConnection,
    ModbusInParams,
    Request,
    joined,
    request_of,
    requests_of,
)

_EXCEPTIONS = {
    1: "it does not know this kind of register (illegal function)",
    2: "it has no such address (illegal data address)",
    3: "it does not read so many at once (illegal data value)",
    4: "it has failed (device failure)",
    5: "it needs longer (acknowledge)",
    6: "it is busy (device busy)",
    8: "its memory has an error (memory parity error)",
    10: "its gateway has no way there (gateway path unavailable)",
    11: "the device behind its gateway does not answer (gateway target device failed to respond)",
}
FOUND_MAX = 40
_FEWER = 10
_OF_THE_ADDRESS = (2, 3)
_NAMED_MAX = 5
_AS_IN_MANUALS = 30_000


class Refusal(Exception):
    """The device answers a request with an exception."""

    def __init__(self, code: int) -> None:
        super().__init__(_EXCEPTIONS.get(code, f"it answers with the exception {code}"))
        self.code = code


class Session:
    """One connection to a device. It is not used again after an error."""

    def __init__(self, connection: ModbusConnection) -> None:
        """Connects. Raises OSError."""
        self._connection = connection

        def connected(address: str, timeout_s: float) -> socket.socket:
            return socket.create_connection((address, connection.port), timeout_s)

        # The client's own way to connect swallows the reason why not.
        opened = by_address(connection.host, connected)
        self._client = ModbusTcpClient(
            connection.host, port=connection.port, timeout=connection.answer_s, retries=0
        )
        self._client.socket = opened

    def read(self, request: Request) -> Sequence[int]:
        """Returns the words, or the bits, of a request. Raises Refusal, ConnectorError."""
        read = {
            "holding": self._client.read_holding_registers,
            "input": self._client.read_input_registers,
            "coil": self._client.read_coils,
            "discrete": self._client.read_discrete_inputs,
        }[request.kind]
        with self._answered(f"a read of {of(request)}"):
            answer = read(request.first, count=request.count, device_id=request.unit_id)
        if answer.isError():
            raise Refusal(int(getattr(answer, "exception_code", 0)))
        found: Sequence[int] = answer.bits if request.kind in BITS else answer.registers
        if len(found) < request.count:
            raise ConnectorError(
                f"{self._connection.where} answers a read of {of(request)} with too few values."
            )
        return found

    def write(self, unit_id: int, kind: Kind, first: int, words: Sequence[int]) -> None:
        """Sets holding registers, or a coil. Raises Refusal, ConnectorError."""
        client, request = self._client, Request(unit_id, kind, first, len(words), ())
        with self._answered(f"a write of {of(request)}"):
            if kind == "coil":
                answer = client.write_coil(first, bool(words[0]), device_id=unit_id)
            elif len(words) == 1:
                answer = client.write_register(first, words[0], device_id=unit_id)
            else:
                answer = client.write_registers(first, list(words), device_id=unit_id)
        if answer.isError():
            raise Refusal(int(getattr(answer, "exception_code", 0)))

    @contextmanager
    def _answered(self, asked: str) -> Iterator[None]:
        where = self._connection.where
        try:
            yield
        except OSError as error:
            raise in_words(error, where) from error
        except ConnectionException as error:
            raise ConnectorError(f"{where} has closed the connection.") from error
        except ModbusException as error:
            raise ConnectorError(
                f"{where} takes the connection and does not answer {asked} within "
                f"{self._connection.answer_s:g} s. Check the unit id, and whether it is a Modbus device."
            ) from error

    def close(self) -> None:
        self._client.close()


@contextmanager
def connected(connection: ModbusConnection) -> Iterator[Session]:
    try:
        session = Session(connection)
    except OSError as error:
        raise in_words(error, connection.where) from error
    try:
        yield session
    finally:
        session.close()


def of(request: Request) -> str:
    """Returns what a request reads, in words."""
    kind = IN_WORDS[request.kind]
    if request.count == 1:
        return f"{kind} {request.first} of unit {request.unit_id}"
    return f"{kind}s {request.first} to {request.first + request.count - 1} of unit {request.unit_id}"


Answer = tuple[Request, Sequence[int] | Refusal]


def values_of(params: ModbusInParams, request: Request, words: Sequence[int]) -> dict[str, Any]:
    """Returns column -> value of the registers that a request has read."""
    values = {}
    for place in request.registers:
        each = params.registers[place]
        at = request_of(params, place).first - request.first
        values[each.name] = each.value(words[at : at + each.words])
    return values


def following_of(request: Request, parts: Sequence[Answer]) -> list[Request]:
    """Returns what to read next time in place of a request, after these answers: what is refused alone, so
    that the others are not refused with it."""
    refused = [each for each, words in parts if isinstance(words, Refusal)]
    if len(parts) == 1:
        return [request]
    taken = [each for each, words in parts if not isinstance(words, Refusal)]
    # If each alone is taken, only the whole is refused: the device does not read so many at once.
    return [*joined(taken), *refused] if refused else taken


class ModbusIngester(Ingester[ModbusInParams, ModbusConnection]):
    """Each poll becomes one record, {column: value}, with the time at which the poll began."""

    def __init__(self, place: Place[ModbusInParams, ModbusConnection]) -> None:
        super().__init__(place)
        self._polls = Polls(place.params.every_ms / 1000)

    def run(self, intake: Intake, stop: threading.Event) -> None:
        requests = requests_of(self.place.params)
        with connected(self.place.connection) as session:
            while not stop.wait(self._polls.wait_s(monotonic())):
                self._polls.begun(monotonic())
                requests = self._poll(session, requests, intake, stop)

    def missed_in(self, pause_s: float) -> int:
        return missed_in(pause_s, self.place.params.every_ms / 1000)

    def tell_left(self, intake: Intake) -> None:
        self._tell_missed(intake, self._polls.left())

    def _poll(
        self, session: Session, requests: list[Request], intake: Intake, stop: threading.Event
    ) -> list[Request]:
        """Returns the requests of the next poll."""
        began_ms = int(time() * 1000)
        answers: list[Answer] = []
        following: list[Request] = []
        values: dict[str, Any] = {}
        refused: list[tuple[Request, Refusal]] = []
        try:
            for request in requests:
                parts = self._read(session, request, stop)
                answers += parts
                following += following_of(request, parts)
                if stop.is_set():
                    return requests
            for request, words in answers:
                if isinstance(words, Refusal):
                    refused.append((request, words))
                else:
                    values |= values_of(self.place.params, request, words)
        except Exception:
            self._polls.failed()
            raise
        if refused:
            intake.failing(self._of_refused(refused))
        else:
            intake.connected()
        if values:
            intake.put([Record(json.dumps(values, ensure_ascii=False).encode(), began_ms)])
            self._tell_missed(intake, self._polls.worked(monotonic()))
        else:
            self._polls.failed()
        return following

    def _read(self, session: Session, request: Request, stop: threading.Event) -> list[Answer]:
        """Returns the answer, or one for each register of a request that is refused as a whole."""
        try:
            return [(request, session.read(request))]
        except Refusal as refusal:
            if len(request.registers) == 1 or refusal.code not in _OF_THE_ADDRESS:
                return [(request, refusal)]
        parts: list[Answer] = []
        for place in request.registers:
            if stop.is_set():
                break
            alone = request_of(self.place.params, place)
            try:
                parts.append((alone, session.read(alone)))
            except Refusal as refusal:
                parts.append((alone, refusal))
        return parts

    def _tell_missed(self, intake: Intake, missed: int) -> None:
        if missed:
            where = self.place.connection.where
            intake.gap(
                f"{missed} polls gave no row: {where} was away, did not answer in time, or refused what"
                " was read",
                missed,
            )

    def _of_refused(self, refused: Sequence[tuple[Request, Refusal]]) -> str:
        params = self.place.params
        named = []
        for request, refusal in refused[:_NAMED_MAX]:
            names = ", ".join(params.registers[each].name for each in request.registers[:_NAMED_MAX])
            hint = ""
            if refusal.code in _OF_THE_ADDRESS and request.first >= _AS_IN_MANUALS:
                number = request.first % 10_000
                hint = f" (in many manuals {request.first} means the {IN_WORDS[request.kind]} {number - 1})"
            named.append(f"{of(request)} ({names}): {refusal}{hint}")
        more = len(refused) - len(named)
        rest = f"; and {more} more" if more > 0 else ""
        return f"{self.place.connection.where} refuses {'; '.join(named)}{rest}. These columns are empty."


def probe(connection: ModbusConnection, path: str) -> Probed:
    """Reads some registers from `path`: the unit id, the kind and the address, such as 1/holding/100, or the
    address alone."""
    unit_id, kind, first = _place(path)
    with connected(connection) as session:
        for most in (FOUND_MAX, _FEWER, ROWS_SHOWN):  # a device refuses all if one is not there
            request = Request(unit_id, kind, first, min(most, ADDRESS_MAX + 1 - first), ())
            try:
                values = session.read(request)
                break
            except Refusal as refusal:
                words = f"Connected: it is a Modbus device. It refuses {of(request)}: {refusal}."
        else:
            return Probed(words)
    numbered = list(enumerate(values, first))[: request.count]
    rows = tuple({IN_WORDS[kind]: address, "value": value} for address, value in numbered[:ROWS_SHOWN])
    found = tuple(_found(unit_id, kind, address, value) for address, value in numbered)
    return Probed(f"Connected. These are {of(request)}, as they are sent.", rows, found)


def _found(unit_id: int, kind: Kind, address: int, value: int) -> Found:
    is_bit = kind in BITS
    return Found(
        path=f"{unit_id}/{kind}/{address}",
        title=f"{IN_WORDS[kind]} {address}",
        type="true or false" if is_bit else "16 bits",
        usable=True,
        holds=FieldType.BOOLEAN if is_bit else FieldType.INTEGER,
        value=bool(value) if is_bit else value,
    )


def _place(path: str) -> tuple[int, Kind, int]:
    if not path:
        return 1, "holding", 0
    if path.isdecimal():
        path = f"1/holding/{path}"
    unit_id, kind, first = (*path.split("/"), "", "")[:3]
    known: list[Kind] = [each for each in IN_WORDS if each == kind]
    if not known or not unit_id.isdecimal() or not first.isdecimal():
        raise ConnectorError("Say the unit id, the kind and the address: 1/holding/100.", lasting=True)
    if int(unit_id) > 255 or int(first) > ADDRESS_MAX:
        raise ConnectorError("A unit id is at most 255, and an address at most 65535.", lasting=True)
    return int(unit_id), known[0], int(first)
