"""OPC UA: writes values to nodes of a server (asyncua)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from time import time
from typing import Any, TypeVar

from asyncua import ua

from pipeline_runtime.connectors.late import late
from pipeline_runtime.connectors.opcua_session import Session, status_name
from pipeline_runtime.connectors.opcua_values import fitting
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Deliverer, Place, Refused
from pipeline_runtime.connectors.sent import Sent
from pipeline_runtime.operators.opcua import OpcUaConnection, OpcUaOutParams

_NEVER = (
    ua.StatusCodes.BadTypeMismatch,
    ua.StatusCodes.BadOutOfRange,
    ua.StatusCodes.BadNotWritable,
    ua.StatusCodes.BadWriteNotSupported,
    ua.StatusCodes.BadUserAccessDenied,
)
"""The statuses that no repetition ends."""

T = TypeVar("T")


class OpcUaDeliverer(Deliverer[OpcUaOutParams, OpcUaConnection]):
    """A row counts as delivered when the server has confirmed each of its values."""

    batch_rows = 50  # a batch is confirmed as a whole, and each row takes an answer of the server

    def __init__(self, place: Place[OpcUaOutParams, OpcUaConnection]) -> None:
        super().__init__(place)
        self._runner: asyncio.Runner | None = None
        self._session: Session | None = None
        self._types: list[ua.VariantType] = []
        self._sent = Sent()

    def open(self, epoch: int) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._connect())

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        self._run(self._deliver(batch))
        return self._sent.refused(batch)

    def settle(self) -> None:
        self._sent.settle()

    def idle(self) -> None:
        self._run(self._look())

    def close(self) -> None:
        runner, session = self._runner, self._session
        self._runner = self._session = None
        if runner is not None:
            if session is not None:
                runner.run(session.close())
            runner.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._runner is not None
        assert self._session is not None
        try:
            return self._runner.run(work)
        except (ua.UaError, ConnectionError, TimeoutError) as error:
            raise self._session.lost_error() from error

    async def _connect(self) -> None:
        self._session = Session(self.place.connection, self.place.name)
        await self._session.connect()
        self._types = [await self._type(each.node, each.column) for each in self.place.params.nodes]

    async def _type(self, node: str, column: str) -> ua.VariantType:
        """Returns the type of a node's values. Raises ConnectorError."""
        assert self._session is not None
        self.goes_on()
        where = self.place.connection.where
        try:
            return await self._session.client.get_node(node).read_data_type_as_variant_type()
        except ua.UaStatusCodeError as error:
            raise ConnectorError(
                f"{where} does not give {node} ({column}): {status_name(error.code)}. Check the node id.",
                lasting=True,
            ) from error
        except (ua.UaError, ConnectionError, TimeoutError) as error:
            raise self._session.lost_error() from error

    async def _look(self) -> None:
        assert self._session is not None
        if self._session.lost.is_set():
            raise self._session.lost_error()
        await self._session.client.nodes.server_state.read_value()

    async def _deliver(self, batch: Batch) -> None:
        for place in self._sent.missing(batch):
            self.goes_on()
            why = late(batch.times_ms[place], self.place.params.late_s, time())
            self._sent.note(batch.offsets[place], why or await self._written(batch.rows[place]))

    async def _written(self, row: Mapping[str, Any]) -> str | None:
        """Writes a row. Returns why the server does not take it, if it does not."""
        assert self._session is not None
        nodes, values = [], []
        for target, type_ in zip(self.place.params.nodes, self._types, strict=True):
            value = row.get(target.column)
            if value is None:
                continue
            try:
                fits = fitting(value, type_.name)
            except ValueError as error:
                return f"its {target.column} cannot be written: {error}"
            if type_ is ua.VariantType.LocalizedText:
                fits = ua.LocalizedText(fits)
            nodes.append(target)
            # Without a status and a time: many servers refuse to have them written.
            values.append(ua.DataValue(ua.Variant(fits, type_), StatusCode_=None))
        if not nodes:
            return None
        ids = [ua.NodeId.from_string(each.node) for each in nodes]
        statuses = await self._session.client.uaclient.write_attributes(ids, values)
        for target, status in zip(nodes, statuses, strict=True):
            if status.is_good():
                continue
            what = f"the server refuses {target.node} ({target.column}): {status_name(status.value)}"
            if status.value in _NEVER:
                return what
            raise ConnectorError(f"{self.place.connection.where}: {what}.")
        return None
