"""The control side's threads without their processes: rows in a real database, real Redis, no nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django

django.setup()

import pytest  # noqa: E402
import redis  # noqa: E402
from django.utils import timezone  # noqa: E402

from pipeline_runtime.checkpoint.database import StateDatabase  # noqa: E402
from pipeline_runtime.kafka.clients import KafkaSettings  # noqa: E402
from pipeline_runtime.model.desired import ReplicaStatus, Role  # noqa: E402
from pipeline_runtime.model.ids import Epoch, Seq  # noqa: E402
from pipeline_runtime.model.spec import ElementSpec, Follow, GroupSpec  # noqa: E402
from pipeline_runtime.settings import Settings  # noqa: E402
from pipeline_runtime.wire import tasks  # noqa: E402
from webapp.config.settings import channel_layers  # noqa: E402
from webapp.handovers.models import Handover  # noqa: E402
from webapp.nodes.models import Node  # noqa: E402
from webapp.pipelines.models import Pipeline, PipelineVersion  # noqa: E402
from webapp.placements.models import Deployment, GroupPlacement, Replica  # noqa: E402
from workers import messages  # noqa: E402
from workers.control.context import ControlContext  # noqa: E402


@pytest.fixture(autouse=True)
def real_redis(settings: Any, redis_url: str, transactional_db: None) -> Iterator[redis.Redis]:
    """Redis for reports, commands and the channel layer, emptied before each test."""
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"redis_url": redis_url})
    settings.CHANNEL_LAYERS = channel_layers(redis_url)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


@pytest.fixture
def context(tmp_path: Path, redis_url: str) -> Iterator[ControlContext]:
    made = Settings.from_env({**os.environ, "FOGLINE_DATA": str(tmp_path / "data"), "REDIS_URL": redis_url})
    central = StateDatabase(tmp_path / "central")
    yield ControlContext(
        settings=made,
        kafka=KafkaSettings("none:1"),
        app=messages.celery_app("fogline-tests", redis_url, tasks.CONTROL_QUEUE),
        central=central,
    )
    central.close()


@pytest.fixture
def nodes() -> dict[str, Node]:
    """edge-a, edge-b and edge-c, all up and ready."""
    return {
        name: Node.objects.create(
            name=name,
            up=True,
            ready=True,
            url=f"http://{name}:1",
            run_id=f"run-of-{name}",
            last_seen_at=timezone.now(),
        )
        for name in ("edge-a", "edge-b", "edge-c")
    }


@pytest.fixture
def deployed(nodes: dict[str, Node]) -> Callable[..., GroupPlacement]:
    """deployed("power", "edge-a"): a running pipeline of one group, owned there."""

    def make(group: str, node: str, follow: Follow = "exact") -> GroupPlacement:
        pipeline = Pipeline.objects.create(name=f"p-{group}", draft={})
        version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document={})
        deployment = Deployment.objects.create(
            pipeline=pipeline, version=version, status=Deployment.Status.RUNNING
        )
        spec = GroupSpec(
            deployment=deployment.pk,
            pipeline=pipeline.name,
            group=group,
            elements=(ElementSpec(id=group, type="filter"),),
            follow=follow,
        )
        placement = GroupPlacement.objects.create(
            deployment=deployment,
            group=group,
            spec=spec.model_dump(mode="json"),
            node=nodes[node],
            order_id="first",
        )
        report(placement, order_id="first")
        return placement

    return make


def report(placement: GroupPlacement, role: Role = Role.OWNER, **status: Any) -> Replica:
    """What control writes when the placement's node has reported its replica."""
    known = ReplicaStatus(
        group=f"{placement.deployment_id}.{placement.group}",
        generation=placement.generation,
        role=role,
        phase="owning" if role is Role.OWNER else "following",
        epoch=Epoch(status.pop("epoch", 1)),
        seq=Seq(7),
        **status,
    )
    replica, _ = Replica.objects.update_or_create(
        deployment=placement.deployment,
        group=placement.group,
        node=placement.node,
        defaults={
            "generation": placement.generation,
            "status": known.model_dump(mode="json"),
            "role": role.value,
            "epoch": known.epoch,
            "seq": known.seq,
            "at": timezone.now(),
        },
    )
    return replica


def move_ordered(placement: GroupPlacement, origin: str, target: str, **fields: Any) -> Handover:
    """Writes the order of a live migration, as a user's would be."""
    return Handover.objects.create(
        deployment=placement.deployment,
        group=placement.group,
        element=placement.group,
        kind=Handover.Kind.MIGRATION,
        strategy="standby",
        origin=origin,
        target=target,
        begun={"start": "warm", "bytes": None, "had": False},
        **fields,
    )


def end(group: str, outcome: str = "done", message: str = "") -> None:
    """Ends the move of that group. When it is done, the new owner reports."""
    handover = Handover.objects.get(group=group, outcome__isnull=True)
    handover.outcome, handover.ended_at, handover.message = outcome, timezone.now(), message
    handover.save()
    if outcome == "done":
        placement = GroupPlacement.objects.get(group=group)
        placement.node = Node.objects.get(name=handover.target)
        placement.save()
        report(placement)
