"""Brings messages of edge nodes (Sparkplug B) to an intake, and lets those wait that need a birth first."""

from __future__ import annotations

import base64
import heapq
import json
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

from paho.mqtt.matcher import MQTTMatcher

from pipeline_runtime.connectors.sdk import Done, Intake, Record
from pipeline_runtime.connectors.sparkplug import (
    NAMESPACE,
    REBIRTH,
    Address,
    Births,
    NotBorn,
    address_of,
    missed_before,
    parsed,
)
from pipeline_runtime.connectors.sparkplug_chosen import ChosenMetrics

WAIT_S = 10.0
"""How long a message waits for a birth that was asked for."""
ASK_EVERY_S, ASK_EVERY_S_MAX = 2.0, 300.0
"""How often an edge node is asked: at first, and after its births were needed again and again."""
CALM_S = 60.0
"""After so long without a need of its births it is asked as often as at first."""
WAITING_MAX = 50
UNACKNOWLEDGED_MAX = 8
"""How many of those that wait may be unacknowledged: many brokers send no more than 10 before the first is,
and the birth has to come through."""
NODES_MAX, METRICS_MAX = 10_000, 1_000_000
"""How many edge nodes, and how many metrics of all their births, are kept in memory."""
_BDSEQ = "bdSeq"
_NAMED = 3

Ask = Callable[[str, str], None]
"""Asks an edge node, by its group and its name, to send its births again."""


@dataclass(frozen=True, eq=False)
class _Message:
    topic: str
    address: Address
    payload: Any
    raw: bytes
    done: Done | None
    since_s: float  # monotonic


@dataclass
class _Node:
    """What is known of an edge node since the connection began."""

    numbered: bool  # whether all of its messages are subscribed to, so that a missing number is a loss
    seq: int | None = None
    omits_zero: bool = False  # whether its messages leave the number 0 out, as some encoders do
    session: int | None = None  # by which number its birth and its death belong together
    births: dict[str, Births] = field(default_factory=dict)  # by device; "" is the edge node itself
    asked_s: float = float("-inf")
    lacks_s: float | None = None  # since when it is born and has given no row
    needed_s: float = float("-inf")  # when its births were needed last
    pause_s: float = ASK_EVERY_S


class EdgeMessages:
    """Lives as long as one connection to the broker: what was said while it was away is not known.

    `ask` is None if Fogline may not write to the broker. Then a message that needs a birth does not wait.
    """

    def __init__(
        self,
        intake: Intake,
        wanted: MQTTMatcher,
        where: str,
        ask: Ask | None,
        chosen: ChosenMetrics,
    ) -> None:
        """`chosen`: the metrics that are put. A message of data or a birth without any of them gives no
        record."""
        self._intake, self._wanted, self._where, self._ask = intake, wanted, where, ask
        self._chosen = chosen
        self._nodes: dict[tuple[str, str], _Node] = {}
        self._metrics = 0  # of all births that are kept
        self._waiting: list[_Message] = []
        self._owing: dict[tuple[str, str], Address] = {}  # edge nodes whose births may have been missed
        self._unborn: dict[Address, str] = {}  # what cannot be read now, for the words at the element
        self._lock = threading.Lock()

    def take(self, topic: str, raw: bytes, done: Done | None) -> bool:
        """Takes a message as `Intake.put` does. `done` is None if the broker sends it only once."""
        with self._lock:
            try:
                address = address_of(topic)
                if address is None:
                    return self._put([], done)
                return self._take(_Message(topic, address, parsed(raw), raw, done, monotonic()))
            except ValueError as error:
                return self._put_letter(topic, raw, _in_words(error), done)

    def look(self) -> bool:
        """Asks again for births, and gives up what has waited too long. Call it several times a second.
        Returns False if there is no room."""
        with self._lock:
            self._tell()
            for address in (*(each.address for each in self._waiting), *self._owing.values()):
                self._ask_for_births(address)
            until_s = monotonic() - WAIT_S
            late = [each for each in self._waiting if each.since_s < until_s]
            room = [self._give_up(each) for each in late]
            return all(room)

    def close(self) -> None:
        """Gives up what the broker will not send again."""
        with self._lock:
            for each in [each for each in self._waiting if each.done is None]:
                self._give_up(each)

    # -- the caller holds the lock -----------------------------------------------------------------------

    def _take(self, message: _Message) -> bool:
        """Raises ValueError."""
        address = message.address
        node = self._node(address)
        if address.is_death:
            return self._take_death(node, message)
        self._note_number(node, message)
        if address.is_birth:
            self._note_birth(node, message)
        room = [self._put_or_wait(node, message)]
        if address.is_birth:
            room.append(self._retry(node, address))
        return all(room)

    def _node(self, address: Address) -> _Node:
        """Raises ValueError if there are too many."""
        key = _key(address)
        if key not in self._nodes:
            if len(self._nodes) >= NODES_MAX:
                raise ValueError(f"there are more than {NODES_MAX} edge nodes; read fewer topics")
            topics = (
                f"{NAMESPACE}/{address.group}/{kind}/{address.node}{device}"
                for kind, device in (
                    *(("NBIRTH", ""), ("NDATA", "")),
                    *((kind, "/\x7f") for kind in ("DBIRTH", "DDATA", "DDEATH")),
                )
            )
            whole = all(any(self._wanted.iter_match(topic)) for topic in topics)
            self._nodes[key] = _Node(numbered=whole)
        return self._nodes[key]

    def _note_number(self, node: _Node, message: _Message) -> None:
        """Tells of messages that are missing. One of them may have been a birth."""
        seq, has_number = message.payload.seq, message.payload.HasField("seq")
        if message.address.kind == "NBIRTH":
            node.seq, node.omits_zero = seq, not has_number
            self._owing.pop(_key(message.address), None)
            return
        if not node.numbered or not (has_number or node.omits_zero):
            return
        missed = missed_before(node.seq, seq)
        if missed is None:
            return  # it comes again
        node.seq = seq
        if missed:
            self._forget_births(node)
            self._intake.gap(f"Messages of the edge node {message.address.node} did not come", missed)
            # Its births also say the values that the missing messages had changed.
            if self._ask is not None:
                self._owing[_key(message.address)] = message.address
                self._ask_for_births(message.address)

    def _note_birth(self, node: _Node, message: _Message) -> None:
        """Raises ValueError if there are too many metrics."""
        address = message.address
        if address.device:
            self._forget_births(node, address.device)
        else:  # its devices send births of their own now
            self._forget_births(node)
            self._forget_unborn(address, but={_unborn(each.address) for each in self._waiting})
            node.session = _session_of(message.payload)
        self._unborn.pop(_unborn(address), None)
        births = Births()
        births.note(message.payload.metrics)
        if not address.device:  # its own rows, or those of its devices, come soon
            node.lacks_s = message.since_s
        if self._metrics + births.size > METRICS_MAX:
            raise ValueError(f"all births have more than {METRICS_MAX} metrics; read fewer topics")
        node.births[address.device] = births
        self._metrics += births.size

    def _forget_births(self, node: _Node, device: str | None = None) -> None:
        """Forgets the births of one device, or of the edge node and of all its devices."""
        for name in list(node.births) if device is None else [device]:
            if births := node.births.pop(name, None):
                self._metrics -= births.size

    def _forget_unborn(self, address: Address, but: Collection[Address] = ()) -> None:
        self._unborn = {
            each: why for each, why in self._unborn.items() if each in but or not _same(each, address)
        }

    def _take_death(self, node: _Node, message: _Message) -> bool:
        address = message.address
        if address.device:
            self._note_number(node, message)
            self._forget_births(node, address.device)
        else:
            session = _session_of(message.payload)
            if session is not None and node.session is not None and session != node.session:
                # The last will of a connection before the one that has sent the birth.
                return self._put([], message.done)
            self._forget_births(node)
            self._owing.pop(_key(address), None)
            node.seq = None
        # What waits belongs to a life that is over: the next births may give its aliases other meanings.
        over = [each for each in self._waiting if _same(each.address, address)]
        room = [self._give_up(each) for each in over]
        self._forget_unborn(address)
        room.append(self._put([_record(message, {}, _now_ms() * 1000, False)], message.done))
        return all(room)

    def _put_or_wait(self, node: _Node, message: _Message) -> bool:
        births = node.births.get(message.address.device, Births())
        try:
            rows = births.rows(message.payload, _now_ms())
        except ValueError as error:
            return self._put_letter(message.topic, message.raw, _in_words(error), message.done)
        except NotBorn as unknown:
            return self._wait(message, str(unknown))
        if message.address.is_birth:
            self._tell_gone(message.address, {name for row, _ in rows for name in row.values})
        records = [
            _record(message, values, row.time_us, historical)
            for row, historical in rows
            if (values := self._chosen.of(row.values))
        ]
        if records:
            node.lacks_s = None
        return self._put(records, message.done)

    def _tell_gone(self, address: Address, named: Collection[str]) -> None:
        """Tells of metrics that a birth names no longer: they were removed, or have other names now."""
        gone = self._chosen.gone((address.group, address.node, address.device), named)
        if gone:
            who = "device" if address.device else "edge node"
            self._intake.gap(
                f"The {who} {address.words} no longer names {_some(gone)}, so its rows have no value there"
            )

    def _wait(self, message: _Message, unknown: str) -> bool:
        address = message.address
        self._unborn[_unborn(address)] = unknown
        self._waiting.append(message)
        if self._ask is None:
            return self._give_up(message)
        self._ask_for_births(address)
        unacknowledged = sum(each.done is not None for each in self._waiting)
        if len(self._waiting) > WAITING_MAX or unacknowledged > UNACKNOWLEDGED_MAX:
            return self._give_up(self._waiting[0])
        return True

    def _ask_for_births(self, address: Address) -> None:
        node = self._node(address)
        now_s = monotonic()
        if now_s - node.needed_s > CALM_S:
            node.pause_s = ASK_EVERY_S
        node.needed_s = now_s
        if self._ask is not None and now_s - node.asked_s >= node.pause_s:
            # Births may never say what is missing, and many births may be why messages are lost.
            node.pause_s = min(ASK_EVERY_S_MAX, 2 * node.pause_s)
            node.asked_s = now_s
            self._ask(address.group, address.node)

    def _retry(self, node: _Node, address: Address) -> bool:
        """Tries again what has waited for this birth."""
        waited = [each for each in self._waiting if _same(each.address, address, with_devices=False)]
        self._waiting = [each for each in self._waiting if each not in waited]
        room = [self._put_or_wait(node, each) for each in waited]
        return all(room)

    def _give_up(self, message: _Message) -> bool:
        self._waiting.remove(message)
        unknown = self._unborn.get(_unborn(message.address), "its metrics")
        why = f"no birth has come that says {unknown}"
        return self._put_letter(message.topic, message.raw, why, message.done)

    def _put_letter(self, topic: str, raw: bytes, why: str, done: Done | None) -> bool:
        text = f"{topic}: {why}; the payload in base64: {base64.b64encode(raw).decode()}"
        return self._put([Record(text.encode())], done)

    def _put(self, records: list[Record], done: Done | None) -> bool:
        if records:
            return self._intake.put(records, done) or done is None
        if done is not None:
            done()
        return True

    def _tell(self) -> None:
        words = self._words()
        if words:
            self._intake.failing(words)
        else:
            self._intake.connected()

    def _words(self) -> str:
        if not self._unborn:
            return self._lacking()
        address, unknown = next(iter(self._unborn.items()))
        if self._ask is None:
            help = "Let the connection ask for births, or let the edge node send them again."
        else:
            help = f"It is asked to send its births ({REBIRTH})."
        return (
            f"{self._where} has messages of {address.words}, and no birth says {unknown}. {help} Until then "
            "they go to the dead letters."
        )

    def _lacking(self) -> str:
        """Returns words if births have come, and no edge node names a metric that is wanted."""
        born = [each for each in self._nodes.values() if each.births]
        until_s = monotonic() - WAIT_S
        if not self._chosen.names or not born:
            return ""
        if not all(each.lacks_s is not None and each.lacks_s < until_s for each in born):
            return ""
        found = {name for each in born[0].births.values() for name in each.types}
        return (
            f"{self._where} has births, and none of them names a metric that a column holds "
            f"({_some(self._chosen.names)}). The first one names {_some(found)}. Check the columns."
        )


def _some(names: Collection[str]) -> str:
    first = [each[:100] for each in heapq.nsmallest(_NAMED, names)]
    return ", ".join(first) + (", ..." if len(names) > _NAMED else "")


def _key(address: Address) -> tuple[str, str]:
    return address.group, address.node


def _unborn(address: Address) -> Address:
    """Returns whose birth is needed."""
    return Address(address.group, "BIRTH", address.node, address.device)


def _same(one: Address, other: Address, *, with_devices: bool = True) -> bool:
    """Returns whether the first is the other, or a device of it."""
    if (one.group, one.node) != (other.group, other.node):
        return False
    return one.device == other.device or (with_devices and not other.device)


def _in_words(error: ValueError) -> str:
    return "it holds a text that is no UTF-8" if isinstance(error, UnicodeError) else str(error)


def _session_of(payload: Any) -> int | None:
    found = (each for each in payload.metrics if each.name == _BDSEQ)
    return next((each.long_value or each.int_value for each in found), None)


def _record(message: _Message, values: dict[str, Any], time_us: int, historical: bool) -> Record:
    """Returns the record that MqttIn.reading reads."""
    topic = message.topic
    whole = {"topic": topic, "levels": topic.split("/"), "time": time_us, "historical": historical}
    return Record(json.dumps({**whole, "value": values}, ensure_ascii=False).encode())


def _now_ms() -> int:
    return int(time() * 1000)
