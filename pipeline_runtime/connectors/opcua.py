"""OPC UA: subscribes to values of a server (asyncua)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from asyncua import ua

from pipeline_runtime.connectors.opcua_rows import (
    Change,
    Image,
    has_dropped,
    missed_before,
    record,
    rows_of,
    time_us_of,
)
from pipeline_runtime.connectors.opcua_session import Session, connected, status_name
from pipeline_runtime.connectors.sdk import ConnectorError, Ingester, Intake, Place, Record
from pipeline_runtime.operators.opcua import OpcUaConnection, OpcUaInParams

log = logging.getLogger(__name__)

KEEPALIVE_MS = 2000
"""How often the server tells that the subscription lives, if nothing changes."""
SILENT_S = 10.0
"""A subscription that neither sends nor tells that it lives for so long, and for twice as long as the server
may be silent by its promise, is lost."""
AT_ONCE = 100
"""How many nodes are subscribed to by one request: many servers take no more."""
LIFETIME_MS = 60_000
"""After so long without the client the server forgets the subscription."""
AGAIN_S = 60.0
"""How often nodes that were refused are tried again."""
TOLD_EVERY_S = 10.0
_LOOK_S = 0.2
_NAMED_MAX = 5


class OpcUaIngester(Ingester[OpcUaInParams, OpcUaConnection]):
    """Each message of the server becomes records, one for each source timestamp in it."""

    patience_s = 20.0  # many columns take several answers while it connects

    def __init__(self, place: Place[OpcUaInParams, OpcUaConnection]) -> None:
        super().__init__(place)
        self._away_since_s: float | None = None
        self._has_worked = False
        self._dropped_told_s: float | None = None

    def run(self, intake: Intake, stop: threading.Event) -> None:
        asyncio.run(self._run(intake, stop))

    async def _run(self, intake: Intake, stop: threading.Event) -> None:
        async with connected(self.place.connection, self.place.name) as session:
            subscription = _Subscription(self, session, intake)
            await subscription.create()
            try:
                await self._watch(subscription, session, intake, stop)
            finally:
                self._away_since_s = monotonic()

    async def _watch(
        self, subscription: _Subscription, session: Session, intake: Intake, stop: threading.Event
    ) -> None:
        again_s = monotonic()
        silent_s = max(SILENT_S, 2 * subscription.alive_s)
        while not stop.is_set():
            if session.lost.is_set():
                raise session.lost_error()
            if monotonic() - subscription.heard_s > silent_s:
                raise ConnectorError(f"{self.place.connection.where} has sent nothing for {silent_s:.0f} s.")
            if subscription.missing and monotonic() >= again_s:
                await subscription.add(subscription.missing)
                again_s = monotonic() + AGAIN_S
                self._tell_state(subscription, intake)
            await asyncio.sleep(_LOOK_S)

    def _tell_state(self, subscription: _Subscription, intake: Intake) -> None:
        refused = subscription.refused
        if not refused:
            intake.connected()
        else:
            columns = self.place.params.columns
            named = "; ".join(
                f"{columns[place].node} ({columns[place].name}): {said}"
                for place, said in list(refused.items())[:_NAMED_MAX]
            )
            more = f"; and {len(refused) - _NAMED_MAX} more" if len(refused) > _NAMED_MAX else ""
            words = f"{self.place.connection.where} does not give {named}{more}."
            if len(refused) == len(columns):
                raise ConnectorError(
                    f"{words} Check the node ids, and what the user may read.",
                    lasting=not self._has_worked,  # a server that starts may not have all of its nodes yet
                )
            intake.failing(f"{words} These columns are empty.")
        self._has_worked = True
        if self._away_since_s is not None:
            away_s = monotonic() - self._away_since_s
            self._away_since_s = None
            intake.gap(
                f"The subscription was away for {away_s:.1f} s, and the server keeps nothing meanwhile"
            )

    def tell_dropped(self, intake: Intake, columns: Sequence[str]) -> None:
        """Tells that the server had to drop values, at most every 10 s."""
        now_s = monotonic()
        if self._dropped_told_s is None or now_s - self._dropped_told_s >= TOLD_EVERY_S:
            self._dropped_told_s = now_s
            named = ", ".join(sorted(set(columns))[:_NAMED_MAX])
            intake.gap(
                f"The server has dropped values of {named}, which change more often than it keeps. Let it"
                " publish more often, or sample less often"
            )


class _Subscription:
    """A subscription of one session. `missing`: the places of the columns that are not subscribed to."""

    def __init__(self, ingester: OpcUaIngester, session: Session, intake: Intake) -> None:
        self._ingester, self._session, self._intake = ingester, session, intake
        self._params = ingester.place.params
        self._image = Image(self._params.unchanged)
        self._id = 0
        self._number: int | None = None  # of the newest message with data
        self.alive_s = 0.0
        """How often the server tells that the subscription lives, as it promises."""
        self.heard_s = monotonic()
        self.missing: list[int] = list(range(len(self._params.columns)))
        self.refused: dict[int, str] = {}

    async def create(self) -> None:
        wanted = ua.CreateSubscriptionParameters()
        wanted.RequestedPublishingInterval = self._params.publish_ms
        wanted.RequestedMaxKeepAliveCount = max(1, KEEPALIVE_MS // self._params.publish_ms)
        wanted.RequestedLifetimeCount = max(
            LIFETIME_MS // self._params.publish_ms, 3 * wanted.RequestedMaxKeepAliveCount, 10
        )
        wanted.MaxNotificationsPerPublish = 10_000
        wanted.PublishingEnabled = True
        made = await self._asked(self._session.client.uaclient.create_subscription(wanted, self._take))
        self._id = made.SubscriptionId
        self.alive_s = made.RevisedPublishingInterval * made.RevisedMaxKeepAliveCount / 1000

    async def add(self, places: Sequence[int]) -> None:
        """Subscribes to the nodes of these columns. `refused` says why some are not."""
        for first in range(0, len(places), AT_ONCE):
            await self._add(places[first : first + AT_ONCE])
        self.missing = sorted(self.refused)

    async def _add(self, places: Sequence[int]) -> None:
        asked = ua.CreateMonitoredItemsParameters()
        asked.SubscriptionId = self._id
        asked.TimestampsToReturn = ua.TimestampsToReturn.Both
        asked.ItemsToCreate = [self._item(place) for place in places]
        results = await self._asked(self._session.client.uaclient.create_monitored_items(asked))
        for place, result in zip(places, results, strict=True):
            if result.StatusCode.is_good():
                self.refused.pop(place, None)
            else:
                self.refused[place] = status_name(result.StatusCode.value)

    def _item(self, place: int) -> ua.MonitoredItemCreateRequest:
        params = self._params
        item = ua.MonitoredItemCreateRequest()
        item.ItemToMonitor.NodeId = ua.NodeId.from_string(params.columns[place].node)
        item.ItemToMonitor.AttributeId = ua.AttributeIds.Value
        item.MonitoringMode = ua.MonitoringMode.Reporting
        item.RequestedParameters.ClientHandle = place
        item.RequestedParameters.SamplingInterval = float(params.sample_ms or params.publish_ms)
        item.RequestedParameters.QueueSize = params.queue
        item.RequestedParameters.DiscardOldest = True
        return item

    async def _asked(self, request: Any) -> Any:
        """Returns the answer. Raises ConnectorError."""
        try:
            return await request
        except (ua.UaError, ConnectionError, TimeoutError) as error:
            if self._session.lost.is_set() or isinstance(error, ConnectionError):
                raise self._session.lost_error() from error
            where = self._ingester.place.connection.where
            raise ConnectorError(f"{where} does not make a subscription: {error}.") from error

    def _take(self, result: ua.PublishResult) -> None:
        try:
            self._put(result)
        except Exception as error:
            # The library would go on without these values.
            log.exception("a message could not be taken")
            self._session.why = f"a message could not be taken: {type(error).__name__}"
            self._session.lost.set()

    def _put(self, result: ua.PublishResult) -> None:
        self.heard_s = monotonic()
        message = result.NotificationMessage
        if message.NotificationData:
            # Without data it says the next number. The library leaves out what it cannot read.
            missed = missed_before(self._number, message.SequenceNumber)
            self._number = message.SequenceNumber
            if missed:
                self._intake.gap(f"{missed} messages of the server did not come, or could not be read")
        changes: list[Change] = []
        for part in message.NotificationData or ():
            if isinstance(part, ua.DataChangeNotification):
                changes += [self._change(each) for each in part.MonitoredItems]
            elif isinstance(part, ua.StatusChangeNotification):
                self._session.why = status_name(part.Status.value)
                self._session.lost.set()
        rows = [self._image.completed(row) for row in rows_of(changes)]
        if rows:
            self._intake.put([Record(record(row, status_name(row.status))) for row in rows])
        dropped = [each.column for each in changes if has_dropped(each.status)]
        if dropped:
            self._ingester.tell_dropped(self._intake, dropped)

    def _change(self, item: ua.MonitoredItemNotification) -> Change:
        data = item.Value
        status = data.StatusCode.value if data.StatusCode is not None else 0
        time_us = time_us_of((data.SourceTimestamp, data.ServerTimestamp, datetime.now(UTC)))
        assert time_us is not None
        value = None if data.Value is None else data.Value.Value
        return Change(self._params.columns[item.ClientHandle].name, value, status, time_us)
