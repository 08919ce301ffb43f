"""Source and sink: registers of a Modbus device, by Modbus TCP."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading
from pipeline_runtime.operators.columns import SIGNALS, UNIT, NewColumn, SchemaCheck, SignalColumn
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.connections import ConnectionFields, Host, connection_field
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import entries, new_columns, new_targets, registers

REGISTERS_MAX = 500
WORDS_OF_A_REQUEST = 125
BITS_OF_A_REQUEST = 2000
ADDRESS_MAX = 65_535
ANSWER_S_MAX = 2.0
"""An ingester must return within this time when it has to stop."""
_CLOCK_AHEAD_S = 900.0

Kind = Literal["holding", "input", "coil", "discrete"]
IN_WORDS: dict[Kind, str] = {
    "holding": "holding register",
    "input": "input register",
    "coil": "coil",
    "discrete": "discrete input",
}
BITS: tuple[Kind, ...] = ("coil", "discrete")

Type = Literal["int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
_FORMATS: dict[Type, str] = {
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "uint64": ">Q",
    "float32": ">f",
    "float64": ">d",
}
Order = Literal["ABCD", "CDAB", "BADC", "DCBA"]


class ModbusConnection(ConnectionFields):
    """How to reach a Modbus device or gateway."""

    kind = "modbus"
    title = "Modbus TCP device"
    probe = "pipeline_runtime.connectors.modbus:probe"
    search = "pipeline_runtime.connectors.modbus:probe"  # a user finds a register by its address

    host: Host
    port: int = Field(default=502, ge=1, le=65_535, description="502 is usual")
    answer_s: float = Field(
        default=1.0,
        ge=0.05,
        le=ANSWER_S_MAX,
        title="Answers within, in seconds",
        description="the longest wait for an answer; serial lines need more",
    )

    @property
    def where(self) -> str:
        return f"the Modbus device {self.host}, port {self.port}"


_KINDS: list[JsonValue] = [
    {"title": "Holding register", "value": "holding", "help": "16 bits; 4xxxx in many manuals"},
    {"title": "Input register", "value": "input", "help": "16 bits; 3xxxx in many manuals"},
    {"title": "Coil", "value": "coil", "help": "true or false; 0xxxx in many manuals"},
    {"title": "Discrete input", "value": "discrete", "help": "true or false; 1xxxx in many manuals"},
]
_ORDERS: list[JsonValue] = [
    {"title": "ABCD: high register first", "value": "ABCD", "help": "what the protocol says"},
    {"title": "CDAB: low register first", "value": "CDAB"},
    {"title": "BADC: high register first, bytes swapped", "value": "BADC"},
    {"title": "DCBA: low register first, bytes swapped", "value": "DCBA"},
]
_COUNTINGS: list[JsonValue] = [
    {"title": "0: addresses as they are sent", "value": 0, "help": "40001 of a manual is 0"},
    {"title": "1: numbers as many manuals have them", "value": 1, "help": "40001 of a manual is 1"},
]


class ModbusPlace(BaseModel):
    """The place of a value in a device, and the way to read its registers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Kind = Field(
        default="holding", json_schema_extra={"x-choices": _KINDS}, description="the kind of the value"
    )
    address: int = Field(
        ge=0,
        le=ADDRESS_MAX + 1,
        description="the register's number, counted as First address says, without a leading 4 or 3",
    )
    type: Type | None = Field(
        default=None,
        description="how a register's bits are read: 32 bits take 2 registers, 64 take 4; empty: uint16, and"
        " true or false for coils and discrete inputs",
    )
    order: Order = Field(
        default="ABCD",
        json_schema_extra={"x-choices": _ORDERS},
        description="the order of the bytes; A is the highest",
    )
    scale: float = Field(default=1.0, description="what the value is multiplied by: 0.1 makes 215 to 21.5")
    offset: float = Field(default=0.0, description="what is then added")
    unit_id: int = Field(
        default=1,
        ge=0,
        le=255,
        title="Unit id",
        description="the device behind the address, as a gateway numbers them",
    )

    @model_validator(mode="after")
    def _fits(self) -> ModbusPlace:
        if self.kind in BITS and (self.type is not None or self.scale != 1 or self.offset != 0):
            raise ValueError("a coil or discrete input is true or false: it has no type, scale and offset")
        if self.scale == 0:
            raise ValueError("a scale of 0 makes every value the same")
        return self

    @property
    def words(self) -> int:
        """Returns the number of registers, or bits, of the value."""
        return 1 if self.kind in BITS else struct.calcsize(_FORMATS[self.type or "uint16"]) // 2

    @property
    def scaled(self) -> bool:
        return (self.scale, self.offset) != (1, 0)

    def value(self, words: Sequence[int]) -> float | int | bool | None:
        """Returns the value of the registers or bits. Returns None for NaN."""
        if self.kind in BITS:
            return bool(words[0])
        ordered = words if self.order in ("ABCD", "BADC") else tuple(reversed(words))
        end: Literal["big", "little"] = "big" if self.order in ("ABCD", "CDAB") else "little"
        data = b"".join(word.to_bytes(2, end) for word in ordered)
        [value] = struct.unpack(_FORMATS[self.type or "uint16"], data)
        if self.scaled:
            value = value * self.scale + self.offset
        return value if math.isfinite(value) else None

    def words_of(self, value: float) -> list[int]:
        """Returns the registers, or the bit, for a value. Raises ValueError if the value does not fit."""
        if self.kind in BITS:
            if value not in (0, 1):
                raise ValueError("a coil is true or false")
            return [int(value)]
        type_ = self.type or "uint16"
        number = (value - self.offset) / self.scale if self.scaled else value
        try:
            data = struct.pack(_FORMATS[type_], number if type_.startswith("float") else round(number))
        except (struct.error, OverflowError, ValueError) as error:
            raise ValueError(f"{number:g} does not fit into {type_}") from error
        end: Literal["big", "little"] = "big" if self.order in ("ABCD", "CDAB") else "little"
        words = [int.from_bytes(data[at : at + 2], end) for at in range(0, len(data), 2)]
        return words if self.order in ("ABCD", "BADC") else words[::-1]


class _Named(BaseModel):
    name: NewColumn = Field(description="the name of the new column")
    unit: str | None = Field(default=None, max_length=40, description=UNIT)


class ModbusRegister(ModbusPlace, _Named):
    """A value of the device that becomes a column."""

    def field(self) -> SchemaField:
        if self.kind in BITS:
            type_ = FieldType.BOOLEAN
        elif self.scaled or (self.type or "uint16").startswith("float"):
            type_ = FieldType.NUMBER
        else:
            type_ = FieldType.INTEGER
        return SchemaField(name=self.name, type=type_, unit=self.unit)


def _check_within(place: ModbusPlace, name: str, first_address: int) -> None:
    first = place.address - first_address
    if first < 0 or first + place.words - 1 > ADDRESS_MAX:
        raise ValueError(
            f'"{name}" does not lie between {first_address} and {ADDRESS_MAX + first_address}, where the'
            " registers of a device are"
        )


class ModbusInParams(Params):
    connection: str = connection_field(ModbusConnection)
    every_ms: int = Field(
        default=1000,
        ge=10,
        le=3_600_000,
        title="Poll every, in milliseconds",
        description="the time between two polls",
    )
    first_address: Literal[0, 1] = Field(
        default=0,
        title="First address",
        json_schema_extra={"x-choices": _COUNTINGS},
        description="the number of the first register in the table below",
    )
    registers: tuple[ModbusRegister, ...] = Field(
        min_length=1, max_length=REGISTERS_MAX, description="the values to read, each a column"
    )

    @model_validator(mode="after")
    def _within(self) -> ModbusInParams:
        for each in self.registers:
            _check_within(each, each.name, self.first_address)
        return self


@dataclass(frozen=True)
class Request:
    """One request to the device, and the registers that its answer holds."""

    unit_id: int
    kind: Kind
    first: int  # the address as the protocol sends it
    count: int
    registers: tuple[int, ...]  # places in ModbusInParams.registers


def requests_of(params: ModbusInParams) -> list[Request]:
    """Returns the fewest requests that read all registers of the table, and no other registers."""
    return joined([request_of(params, place) for place in range(len(params.registers))])


def request_of(params: ModbusInParams, place: int) -> Request:
    """Returns a request that reads only one register."""
    each = params.registers[place]
    return Request(each.unit_id, each.kind, each.address - params.first_address, each.words, (place,))


def joined(requests: Sequence[Request]) -> list[Request]:
    """Returns the requests, with neighbours joined as far as the protocol allows."""
    made: list[Request] = []
    for each in sorted(requests, key=lambda one: (one.unit_id, one.kind, one.first)):
        both = _joined(made[-1], each) if made else None
        if both is None:
            made.append(each)
        else:
            made[-1] = both
    return made


def _joined(before: Request, after: Request) -> Request | None:
    """Returns one request for both, or None if they are not neighbours or too large for one request."""
    if (before.unit_id, before.kind) != (after.unit_id, after.kind):
        return None
    end = max(before.first + before.count, after.first + after.count)
    most = BITS_OF_A_REQUEST if before.kind in BITS else WORDS_OF_A_REQUEST
    if after.first > before.first + before.count or end - before.first > most:
        return None
    registers = before.registers + after.registers
    return Request(before.unit_id, before.kind, before.first, end - before.first, registers)


class ModbusIn(ConnectorSource):
    """Polls the registers of a Modbus device by Modbus TCP, **at least once**.

    Each poll makes one row. The event time of the row is the time at which the poll began. A device keeps no
    past values, so a poll without an answer is lost. The element counts such polls and reports them as a gap.
    It also counts polls that it did not make, because the connection was lost, or because the device needs
    longer for an answer than `every_ms`. While the element moves, it may poll a moment twice, or not at all.
    After a move, and after a restart of its node, it counts the polls since its last row and reports them as
    a gap.

    `registers` is a table of the values. One request reads neighbouring registers: 125 registers or 2,000
    bits at most. The element never reads a register that is not in the table. A value is multiplied by
    `scale`, and then `offset` is added. Without both, whole numbers stay whole numbers. NaN becomes null.

    If the device refuses a register, for example because of an illegal address, the column is null. The
    element names the register, and the other columns get their values. A poll fails if a device behind a
    gateway does not answer at all. Give such a device an element of its own.

    In many manuals, 40123 means the 123rd holding register. Here it is the kind *Holding register* and the
    address 122, or 123 if the first address is 1.
    """

    type = "modbus-in"
    title = "Modbus in"
    summary = "Polls registers of a Modbus TCP device, at least once"
    icon = "cable"
    Params = ModbusInParams
    connector = "pipeline_runtime.connectors.modbus:ModbusIngester"
    connection = ModbusConnection
    example = {
        "connection": "press-plc",
        "every_ms": 1000,
        "registers": [
            {"name": "temperature", "unit": "°C", "address": 100, "type": "int16", "scale": 0.1},
            {
                "name": "energy",
                "unit": "kWh",
                "kind": "input",
                "address": 0,
                "type": "uint32",
                "order": "CDAB",
            },
            {"name": "running", "kind": "coil", "address": 3},
        ],
    }

    ticks = "many"

    params: ModbusInParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        before, new = entries(params, "registers", "address"), registers(params, ticked)
        made = new_columns(before, [([title], None, "", place) for title, place in new])
        return {**params, "registers": made}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = StreamSchema(fields=tuple(each.field() for each in self.params.registers))
        with SchemaCheck() as check:
            check.unique(schema.names, "params.registers")
        return schema

    def reading(self) -> RecordReading:
        return RecordReading(
            columns=tuple(ColumnReading(path=(each.name,)) for each in self.params.registers),
            ahead_s=_CLOCK_AHEAD_S,
        )


_WRITABLE: list[JsonValue] = [_KINDS[0], _KINDS[2]]


class _Written(BaseModel):
    column: SignalColumn = Field(description="the column whose value is written")


class ModbusTarget(ModbusPlace, _Written):
    """A column, and the place to which its value is written."""

    kind: Literal["holding", "coil"] = Field(
        default="holding", json_schema_extra={"x-choices": _WRITABLE}, description="what it is in the device"
    )
    scale: float = Field(default=1.0, description="what the value is divided by: 0.1 makes 21.5 to 215")
    offset: float = Field(default=0.0, description="what is taken from the value before that")


class ModbusOutParams(Params):
    connection: str = connection_field(ModbusConnection)
    first_address: Literal[0, 1] = Field(
        default=0,
        title="First address",
        json_schema_extra={"x-choices": _COUNTINGS},
        description="the number of the first register in the table below",
    )
    registers: tuple[ModbusTarget, ...] = Field(
        min_length=1, max_length=REGISTERS_MAX, description="the columns to write, and where to"
    )
    late_s: float | None = Field(
        default=60.0,
        gt=0,
        title="Too late after, in seconds",
        description="a row whose event time is longer ago is not written any more; empty: each is written",
    )

    @model_validator(mode="after")
    def _within(self) -> ModbusOutParams:
        for each in self.registers:
            _check_within(each, each.column, self.first_address)
        return self


class ModbusOut(ConnectorSink):
    """Writes columns of each row to the registers of a Modbus device by Modbus TCP, **at least once**.

    The element writes each value by one request. A row counts as written when the device has confirmed all
    its values. After a loss of the connection, a move or a restoration, the element writes some of the last
    rows again, in their order. It writes no empty values (null). It subtracts `offset` from a value, and
    divides the result by `scale`.

    A row that is older than `late_s` goes to the dead letters. So a machine does not get a setpoint of an
    hour ago after a pause. A row also goes to the dead letters if a value does not fit into its register, or
    if the device refuses it, for example because of an illegal address. In these cases the device may have
    taken some values of the row.
    """

    type = "modbus-out"
    title = "Modbus out"
    summary = "Writes values to registers of a Modbus TCP device, at least once"
    icon = "cable"
    Params = ModbusOutParams
    connector = "pipeline_runtime.connectors.modbus_out:ModbusDeliverer"
    connection = ModbusConnection
    example = {
        "connection": "press-plc",
        "registers": [
            {"column": "setpoint", "address": 200, "type": "int16", "scale": 0.1},
            {"column": "run", "kind": "coil", "address": 3},
        ],
    }

    ticks = "many"

    params: ModbusOutParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        writable = [each for each in ticked if "/holding/" in each.path or "/coil/" in each.path]
        before, new = entries(params, "registers", "address"), registers(params, writable)
        return {**params, "registers": new_targets(before, new, columns)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for place, each in enumerate(self.params.registers):
                check.column(schema, each.column, f"params.registers.{place}.column", SIGNALS)
        return schema
