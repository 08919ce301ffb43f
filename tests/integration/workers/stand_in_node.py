"""A real node process whose replicas only count: all of the agent, none of Spark. See zygote.py.

The ledger takes the journal's place: one file per group, changed under a lock, with the same rules
of ownership, by claim and by release. A replica commits a batch every 50 ms and leaves the files that
Spark would leave, so that cuts, fetches and restarts work on real directories.

Files in the ledger's directory make it fail: `<group>.broken-on-<node>` does not start there,
`<group>.never-arms-on-<node>` does not arm, `<group>.never-releases` does not release. Others hold
what it tells: `<group>.state-bytes` how large its state is, `<group>.latency-ms` how long its batches take,
`<node>.battery` how full the battery that the node runs on (0..1), `<node>.cpu` how busy it is (0..1; without
that, as it is).
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder, Directive, ReplicaError, ReplicaStatus, Role, Takeover
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from tests.told_load import said, told_by
from workers.node.identity import Identity
from workers.node.process import NodeProcess

BATCH_S = 0.05
EMPTY = {
    "granted": 0,
    "orders": {},
    "commits": [],
    "retired": False,
    "armed": None,  # [order, epoch, token]
    "released": None,  # [order, token]
    "takeover": None,
    "last_commit_at_ms": None,
}


class Ledger:
    def __init__(self, directory: Path, group: str) -> None:
        self.directory = directory
        self._path = directory / f"{group}.json"

    @contextmanager
    def locked(self) -> Iterator[dict[str, Any]]:
        """Changes are kept whole or not at all: its node may be killed at any moment."""
        with open(self._path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._path.read_text() if self._path.exists() else json.dumps(EMPTY)
            entry = json.loads(before)
            yield entry
            after = json.dumps(entry)
            if after != before:
                draft = self._path.with_suffix(".new")
                draft.write_text(after)
                os.replace(draft, self._path)


class CountingReplica:
    def __init__(
        self, spec: GroupSpec, directory: Path, ledger: Ledger, node: str, changed: Callable[[], None]
    ):
        self.spec, self.directory, self.ledger, self.node, self.changed = (
            spec,
            directory,
            ledger,
            node,
            changed,
        )
        self.growing = GrowingFiles()
        self._role, self._phase = Role.STANDBY, "following"
        self._epoch, self._granted = 0, 0
        # Whoever is killed while it writes one leaves a draft of it.
        numbers = (int(p.name) for p in (directory / "spark/commits").glob("*") if p.name.isdigit())
        self._seq = max(numbers, default=-1) + 1
        self._order: ClaimOrder | None = None
        self._order_done: str | None = None
        self._succeed: str | None = None
        self._token: str | None = None  # armed with
        self._armed_epoch = 0
        self._release: str | None = None
        self._released: str | None = None
        self._takeover: dict[str, Any] | None = None
        self._behind = 0
        self._refused: str | None = None
        self._paused = self._retire = self._retired = False
        self._rows = 0
        self._first_ms: int | None = None
        self._last_ms: int | None = None
        self._error: ReplicaError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def direct(self, directive: Directive) -> None:
        self._order = directive.order or self._order
        self._succeed, self._release = directive.succeed, directive.release
        self._paused = directive.paused_since_ms is not None
        self._retire |= directive.retire

    def stop(self, timeout_s: float) -> None:
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def kill(self) -> None:
        self._stopping.set()

    def status(self) -> ReplicaStatus:
        return ReplicaStatus(
            group=self.spec.id,
            role=self._role,
            phase=self._phase,
            epoch=Epoch(self._epoch or self._granted),
            seq=Seq(self._seq),
            order_id=self._order_done,
            order_refused=self._refused,
            armed=self._succeed if self._token is not None else None,
            state_bytes=int(self._said("state-bytes") or 0),
            latency_ms_p95=float(latency) if (latency := self._said("latency-ms")) else None,
            released=self._released,
            behind=self._behind,
            takeover=Takeover(**self._takeover) if self._takeover else None,
            rows_in_total=self._rows,
            rows_out_total=self._rows,
            paused=self._paused,
            retired=self._retired,
            first_output_at_ms=self._first_ms,
            last_output_at_ms=self._last_ms,
            error=self._error,
        )

    def _run(self) -> None:
        while not self._stopping.wait(BATCH_S):
            with self.ledger.locked() as entry:
                self._granted = entry["granted"]
                self._step(entry)
            if self._role is Role.STOPPED:
                break
        else:
            self._role, self._phase = Role.STOPPED, "stopped"
        self.changed()

    def _step(self, entry: dict[str, Any]) -> None:
        if self._rewinds(entry):
            self._claim(entry, self._order)
            return
        self._behind = len(entry["commits"]) - self._seq
        while self._seq < len(entry["commits"]):
            self._keep_batch()
        self._takeover = entry["takeover"]
        if self._order is not None and self._order.id != self._order_done and not self._epoch:
            self._claim(entry, self._order)
        elif self._epoch and self._epoch != entry["granted"]:
            self._role, self._phase = Role.STOPPED, "fenced"
            self._error = ReplicaError(
                message="fenced", safe="nothing twice", next="nothing", at_ms=_now_ms()
            )
        elif self._epoch and self._retire:
            entry["retired"] = self._retired = True
            self._role, self._phase = Role.STOPPED, "retired"
        elif self._epoch and self._may_release(entry):
            self._release_to_successor(entry)
        elif self._epoch and not self._paused:
            self._commit(entry)
        elif not self._epoch:
            self._follow(entry)

    def _commit(self, entry: dict[str, Any]) -> None:
        entry["commits"].append([self._epoch, self.node])
        self._keep_batch()
        self._rows += 10
        entry["last_commit_at_ms"] = self._last_ms = _now_ms()
        self._first_ms = self._first_ms or self._last_ms
        if entry["takeover"] and entry["takeover"]["first_commit_at_ms"] is None:
            wait_ms = int(BATCH_S * 1000)
            entry["takeover"] |= {
                "first_commit_at_ms": self._last_ms,
                "first_wait_ms": wait_ms,
                "round_trips": 3,
            }

    def _follow(self, entry: dict[str, Any]) -> None:
        """As a standby: arm when told so, own when that is released to it."""
        released = self._token is not None and entry["released"] == [self._succeed, self._token]
        if released and entry["granted"] == self._armed_epoch:
            self._epoch, self._order_done, self._token = self._armed_epoch, self._succeed, None
            self._role, self._phase, self._first_ms = Role.OWNER, "owning", None
            self.changed()
            return
        epoch = entry["granted"] + 1
        if self._token is not None and entry["armed"] != [self._succeed, epoch, self._token]:
            self._token = None  # somebody else was granted, or has armed since
        if self._succeed is None:
            self._token, self._phase = None, "following"
        elif self._token is None and not self._is_marked(f"never-arms-on-{self.node}"):
            self._token = f"{self._succeed}/{uuid.uuid4().hex}"
            self._armed_epoch = epoch
            entry["armed"] = [self._succeed, epoch, self._token]
            self._phase = "armed"
            self.changed()

    def _may_release(self, entry: dict[str, Any]) -> bool:
        armed = entry["armed"]
        ready = self._release is not None and armed is not None
        return (
            ready and armed[:2] == [self._release, self._epoch + 1] and not self._is_marked("never-releases")
        )

    def _release_to_successor(self, entry: dict[str, Any]) -> None:
        order, epoch, token = entry["armed"]
        self._grant(entry, epoch, "release", order)
        entry["released"] = [order, token]
        self._granted, self._epoch, self._released = epoch, 0, order
        self._role, self._phase = Role.STANDBY, "following"
        self.changed()

    def _grant(self, entry: dict[str, Any], epoch: int, by: str, order: str) -> None:
        entry["granted"] = entry["orders"][order] = epoch
        entry["takeover"] = {
            "epoch": epoch,
            "by": by,
            "order": order,
            "node": self.node,
            "at_ms": _now_ms(),
            "last_commit_at_ms": entry["last_commit_at_ms"],
            "first_commit_at_ms": None,
            "usual_wait_ms": int(BATCH_S * 1000),
        }

    def _said(self, what: str) -> str:
        return said(self.ledger.directory / f"{self.spec.group}.{what}")

    def _is_marked(self, mark: str) -> bool:
        return (self.ledger.directory / f"{self.spec.group}.{mark}").exists()

    def _rewinds(self, entry: dict[str, Any]) -> bool:
        """Whether its order is one that it must not follow the ledger's end for."""
        order = self._order
        return order is not None and order.rewind is not None and order.id not in entry["orders"]

    def _claim(self, entry: dict[str, Any], order: ClaimOrder) -> None:
        self._order_done = order.id
        mine = entry["orders"].get(order.id)
        if entry["retired"] or entry["granted"] not in (order.over, mine):
            self._refused = f"epoch {entry['granted']} was granted" if not entry["retired"] else "retired"
            self._retired = entry["retired"]
            self._role, self._phase = Role.STOPPED, "refused"
            return
        if order.rewind is not None and mine is None:
            assert self._seq == order.rewind, "a rewind starts at exactly its checkpoint"
            entry.setdefault("voided", []).extend(entry["commits"][order.rewind :])
            del entry["commits"][order.rewind :]
        self._epoch = entry["granted"] + 1
        self._grant(entry, self._epoch, "claim", order.id)
        self._token, self._refused = None, None
        self._role, self._phase, self._first_ms = Role.OWNER, "owning", None
        self.changed()

    def _keep_batch(self) -> None:
        batch, self._seq = self._seq, self._seq + 1
        end = json.dumps({"seq": self._seq, "ends": {"in-0": self._seq}, "batch_time": 1000})
        for path, text in (
            ("metadata", '{"id":"q"}'),
            (f"offsets/{batch}", "v1\n{}\n{}"),
            (f"ends/{batch}", end),
            (f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}'),
        ):
            target = self.directory / "spark" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.tmp")
            draft.write_text(text)
            draft.replace(target)
        for log in ("offsets", "ends", "commits"):
            (self.directory / "spark" / log / str(batch - 3)).unlink(missing_ok=True)


class CountingEngine:
    def __init__(self, ledger: Path, identity: Identity, changed: Callable[[], None]) -> None:
        self._ledger, self._identity, self._changed = ledger, identity, changed

    def start(self) -> None:
        self._ledger.mkdir(parents=True, exist_ok=True)

    def open_replica(self, spec: GroupSpec, directory: Path) -> CountingReplica:
        if (self._ledger / f"{spec.group}.broken-on-{self._identity.name}").exists():
            raise RuntimeError("this operator does not start")
        ledger = Ledger(self._ledger, spec.id)
        return CountingReplica(spec, directory, ledger, self._identity.name, self._changed)

    def close(self) -> None:
        pass


def _now_ms() -> int:
    return int(time.time() * 1000)


def run(identity: dict[str, Any], ledger: Path) -> int:
    """Until it is ended; the exit code. `identity`: the fields of an Identity, without Kafka."""
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    made = Identity(
        **{**identity, "directory": Path(identity["directory"]), "kafka": KafkaSettings("none:1")}
    )

    def engine(identity: Identity, changed: Callable[[], None], *_: object) -> CountingEngine:
        return CountingEngine(ledger, identity, changed)

    told_by(ledger, made.name)
    return NodeProcess(made, engine).run()
