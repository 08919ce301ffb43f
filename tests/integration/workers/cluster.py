"""A control side in this process, and stand-in nodes in real processes of their own."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.utils import timezone

from pipeline_runtime.model.desired import ReplicaStatus
from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, Follow, GroupSpec, InputStream
from pipeline_runtime.settings import Settings
from pipeline_runtime.wire import tasks
from tests.integration.workers.stand_in_node import Ledger
from tests.integration.workers.zygote import ForkedNode, Zygote
from tests.told_load import tell
from tests.waiting import PATIENCE_S, wait_until
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.control.context import Tuning
from workers.control.process import ControlProcess

SILENCE_S = 2.0
HEARTBEAT_S = 0.25


class SilenceClock:
    """By which control measures how long nodes say nothing. It stands still, so that none counts as down
    because the machine is slow; a test lets it go on, see `Cluster.falls_silent`."""

    def __init__(self) -> None:
        self.now_ms = int(time.time() * 1000)

    def __call__(self, redis_ms: int) -> int:
        return self.now_ms


def owned(cluster: Cluster, node: str = "edge-a") -> Deployment:
    deployment = cluster.deployed("power", node)
    wait_until(lambda: cluster.owns(deployment, "power", node), f"{node} owns")
    return deployment


def ordered(deployment: Deployment, strategy: str, origin: str, target: str, **fields: Any) -> Handover:
    """A handover of the group `power`, as the web would have ordered it."""
    restores = strategy in ("checkpoint", "hot-standby", "rewind")
    return Handover.objects.create(
        deployment=deployment,
        group="power",
        element="power",
        kind="restoration" if restores else "migration",
        strategy=strategy,
        origin=origin,
        target=target,
        begun={"start": "warm", "bytes": None, "had": False},
        **fields,
    )


def reaches(handover: Handover, phase: str) -> None:
    def there() -> bool:
        handover.refresh_from_db()
        assert handover.outcome is None, handover.message
        return handover.phase == phase

    wait_until(there, phase)


def ended(handover: Handover) -> str | None:
    handover.refresh_from_db()
    return handover.outcome


def phases(handover: Handover) -> list[str]:
    assert all(entry["end_ms"] >= entry["start_ms"] for entry in handover.timeline)
    return [entry["phase"] for entry in handover.timeline]


def each_seq_was_committed_in_epoch_order(cluster: Cluster, deployment: Deployment) -> list[tuple[int, str]]:
    """The epoch and node of each, once the newest owner has committed: it says that it owns before that."""

    def newest_owner_has_committed() -> bool:
        statuses = [cluster.status(deployment, "power", node) for node in cluster.nodes]
        owners = [status.epoch for status in statuses if status is not None and status.role == "owner"]
        return cluster.commits(deployment, "power")[-1][0] == max(owners, default=None)

    wait_until(newest_owner_has_committed, "the newest owner commits")
    commits = cluster.commits(deployment, "power")
    assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
    return commits


def stream(deployment: str, origin: str, reader: str) -> InputStream:
    """By which a group of one element reads another one."""
    topic = stream_topic(deployment, origin, "out")
    return InputStream(
        source=f"{origin}.out", topic=topic, data_schema=StreamSchema(fields=()), consumer=reader
    )


@dataclass
class Cluster:
    directory: Path
    settings: Settings
    ports: dict[str, int]
    zygote: Zygote
    leave_s: float = 0.0  # of its nodes
    clock: SilenceClock = field(default_factory=SilenceClock)
    control: ControlProcess | None = None
    nodes: dict[str, ForkedNode] = field(default_factory=dict)

    @property
    def ledger(self) -> Path:
        return self.directory / "ledger"

    def start_control(self) -> None:
        # At once instead of each 2 s; and a busy machine has backup nodes as well.
        tuning = Tuning(
            sweep_s=0.2,
            resend_s=0.0,
            sample_s=0.5,
            policies_s=0.2,
            backup_cpu_ratio_max=1.0,
            silence_ms=self.clock,
        )
        self.control = ControlProcess(self.settings, tuning)
        self.control.start()

    def stop_control(self) -> None:
        control, self.control = self.control, None
        if control is not None:
            control.close()

    def start_node(self, name: str) -> None:
        identity = {
            "name": name,
            "directory": str(self.directory / "nodes" / name),
            "redis_url": self.settings.redis_url,
            "cluster_key": self.settings.cluster_key,
            "central_url": self.settings.chunk_url,
            "listen_host": "127.0.0.1",
            "port": self.ports[name],
            "url": f"http://127.0.0.1:{self.ports[name]}",
            "checkpoint_s": self.settings.checkpoint_s,
            "heartbeat_s": HEARTBEAT_S,
            "leave_s": self.leave_s,
        }
        self.nodes[name] = self.zygote.start(identity, self.ledger, self.directory / f"{name}.log")

    def signal_node(self, name: str, number: int) -> None:
        # A process that is stopped while it holds a ledger's lock would stop all the others with it,
        # which no broker does.
        with ExitStack() as held:
            for path in self.ledger.glob("*.json"):
                held.enter_context(Ledger(self.ledger, path.stem).locked())
            self.nodes[name].send_signal(number)
            if number == signal.SIGSTOP:
                # Not before: it may be given a lock for which it waits on its way to the stop.
                wait_until(self.nodes[name].is_stopped, f"all threads of {name} are stopped")

    def end_node(self, name: str, number: int = signal.SIGTERM) -> int:
        process = self.nodes.pop(name)
        process.send_signal(number)
        return process.wait()

    def close(self) -> None:
        for process in self.nodes.values():
            process.send_signal(signal.SIGKILL)
        for process in self.nodes.values():
            process.wait()
        self.stop_control()

    # -- what passes

    def falls_silent(self, name: str) -> None:
        """A node that does not run: so much time passes that control counts it as down."""
        others = [other for other in self.nodes if other != name]
        deadline_s = time.monotonic() + PATIENCE_S
        while self.up(name):
            assert time.monotonic() < deadline_s, f"{name} does not count as down"
            self.clock.now_ms += int(SILENCE_S * 600)
            for other in others:
                self.is_heard(other)

    def is_heard(self, name: str) -> None:
        """A report comes that was not taken in yet when this was called."""
        for _ in range(2):  # the first may have been read already, by the time of before
            number = Node.objects.get(name=name).report_number
            wait_until(lambda n=number: Node.objects.get(name=name).report_number != n, f"{name} is heard")

    def has_swept(self, deployment: Deployment) -> None:
        """Control has gone through all that is left to do, from its beginning, since this was called: a copy
        whose time is over, of which it thinks last, is gone twice."""
        for _ in range(2):
            over = ExtraReplica.objects.create(
                deployment=deployment,
                group="power",
                node=Node.objects.get(name="edge-b"),
                role="stopped",
                until=timezone.now(),
                generation=1,
            )
            wait_until(lambda pk=over.pk: not ExtraReplica.objects.filter(pk=pk).exists(), "a sweep")

    # -- what is there

    def up(self, *names: str) -> bool:
        return Node.objects.filter(name__in=names, up=True, ready=True).count() == len(names)

    def mark(self, name: str) -> Path:
        """A file that makes stand-in replicas fail, see stand_in_node."""
        self.ledger.mkdir(exist_ok=True)
        (self.ledger / name).touch()
        return self.ledger / name

    def says(self, name: str, text: str) -> None:
        """What stand-in nodes tell, see stand_in_node. Whole or not at all: they read it at any moment."""
        tell(self.ledger, name, text)

    def deployed(self, group: str, node: str, follow: Follow = "exact") -> Deployment:
        """A running deployment of one group; what the deploy operation would have written."""
        return self.deployed_chain((group,), node, follow)

    def deployed_chain(self, groups: tuple[str, ...], node: str, follow: Follow = "exact") -> Deployment:
        """The same of several, each of which reads the one before it."""
        document = {"spec": {"elements": [{"id": group, "type": "filter"} for group in groups]}}
        pipeline = Pipeline.objects.create(name=f"p-{groups[0]}", draft=document)
        version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=document)
        deployment = Deployment.objects.create(
            pipeline=pipeline, version=version, status=Deployment.Status.RUNNING
        )
        for before, group in pairwise(("", *groups)):
            spec = GroupSpec(
                deployment=deployment.pk,
                pipeline=pipeline.name,
                group=group,
                elements=(ElementSpec(id=group, type="filter"),),
                inputs=(stream(deployment.pk, before, group),) if before else (),
                follow=follow,
            )
            GroupPlacement.objects.create(
                deployment=deployment,
                group=group,
                spec=spec.model_dump(mode="json"),
                node=Node.objects.get(name=node),
                order_id="first",
            )
        assert self.control is not None
        self.control.context.desired.notify()
        return deployment

    def status(self, deployment: Deployment, group: str, node: str) -> ReplicaStatus | None:
        row = Replica.objects.filter(deployment=deployment, group=group, node__name=node).first()
        return ReplicaStatus.model_validate(row.status) if row else None

    def owns(self, deployment: Deployment, group: str, node: str) -> bool:
        status = self.status(deployment, group, node)
        return status is not None and status.role == "owner" and status.seq > 0

    def order_checkpoint(self, deployment: Deployment, group: str) -> None:
        """As the web does."""
        web = messages.celery_app("web", self.settings.redis_url)
        messages.send(web, tasks.CHECKPOINT, [deployment.pk, group], tasks.CONTROL_QUEUE)

    def checkpoint(self, deployment: Deployment, group: str, owner: str) -> None:
        """Another one than those before."""

        def newest() -> int:
            status = self.status(deployment, group, owner)
            return (status.checkpoint_seq if status is not None else None) or 0

        before = newest()
        committed = len(self.commits(deployment, group))
        wait_until(lambda: len(self.commits(deployment, group)) > committed, "there is something new")
        self.order_checkpoint(deployment, group)
        wait_until(lambda: newest() > before, "a checkpoint")

    def places(self, deployment: Deployment, group: str, owner: str) -> set[str]:
        """That have the owner's newest checkpoint; with periodic ones it may be at home alone each time."""
        status = self.status(deployment, group, owner)
        return set(status.checkpoint_where) if status is not None else set()

    def replicated(self, deployment: Deployment, group: str, node: str) -> bool:
        assert self.control is not None
        manifests = self.control.context.central.manifests(f"{deployment.pk}.{group}")
        return any(manifest.node == node for manifest in manifests)

    def without_checkpoint(self, deployment: Deployment, group: str, owner: str) -> str:
        """The node, of three, that is neither the owner nor its backup node, once both have a checkpoint, and
        so has the central store. Only where none are taken periodically."""
        self.checkpoint(deployment, group, owner)
        wait_until(lambda: len(self.places(deployment, group, owner)) == 3, "a backup node has a checkpoint")
        [without] = set(self.nodes) - self.places(deployment, group, owner)
        return without

    def commits(self, deployment: Deployment, group: str) -> list[tuple[int, str]]:
        with Ledger(self.ledger, f"{deployment.pk}.{group}").locked() as entry:
            return [(epoch, node) for epoch, node in entry["commits"]]
