"""Backup nodes as real processes hold them, and trimming as the control side decides it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone

from pipeline_runtime.checkpoint import chunks
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.manifest import FileEntry, Manifest
from pipeline_runtime.journal.records import Boundary, Claim, Commit, encode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec, InputStream, OutputStream
from pipeline_runtime.settings import Settings
from tests.integration.workers.cluster import Cluster, owned
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.control.checkpoints.trimming import Trimmer
from workers.control.context import ControlContext

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


EVERYWHERE = {"edge-a", "central", "edge-b"}


def test_the_other_node_holds_each_checkpoint_beside_the_central_store(
    cluster_without_periodic_checkpoints: Cluster,
) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = owned(cluster)
    for number in (1, 2):
        cluster.checkpoint(deployment, "power", "edge-a")
        wait_until(
            lambda: cluster.places(deployment, "power", "edge-a") == EVERYWHERE,
            f"both others have checkpoint {number}",
        )


def test_when_the_backup_node_is_gone_the_central_store_still_gets_them(
    cluster_without_periodic_checkpoints: Cluster,
) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = owned(cluster)
    cluster.checkpoint(deployment, "power", "edge-a")
    wait_until(lambda: cluster.places(deployment, "power", "edge-a") == EVERYWHERE, "edge-b has it")
    cluster.end_node("edge-b")
    cluster.checkpoint(deployment, "power", "edge-a")
    without = {"edge-a", "central"}
    wait_until(lambda: cluster.places(deployment, "power", "edge-a") == without, "without edge-b")
    cluster.start_node("edge-b")
    wait_until(lambda: cluster.places(deployment, "power", "edge-a") == EVERYWHERE, "edge-b has it again")


def test_a_node_whose_checkpoints_fail_says_so_and_its_elements_go_on(
    cluster_without_periodic_checkpoints: Cluster,
) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = owned(cluster)
    in_the_way = cluster.directory / "nodes" / "edge-a" / "snapshots"
    in_the_way.write_text("where a directory must be")
    cluster.order_checkpoint(deployment, "power")
    told = Event.objects.filter(kind="node.alert", node="edge-a")
    wait_until(told.exists, "the failure is an event")
    assert f"No checkpoint of {deployment.pipeline.name}/power: " in told.get().message
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed)
    in_the_way.unlink()
    cluster.checkpoint(deployment, "power", "edge-a")
    wait_until(lambda: "central" in cluster.places(deployment, "power", "edge-a"))


# trimming

SCHEMA = StreamSchema(fields=())


class Deployed:
    """Two groups of one deployment, `made` writes what `read` reads, with real topics and checkpoints."""

    def __init__(self, kafka: str, directory: Path) -> None:
        self.kafka = KafkaSettings(kafka)
        self.central = StateDatabase(directory / "central")
        environ = {**os.environ, "FOGLINE_DATA": str(directory / "data"), "FOGLINE_KAFKA": kafka}
        self.context = ControlContext(
            settings=Settings.from_env(environ),
            kafka=self.kafka,
            app=messages.celery_app("trimming", "redis://127.0.0.1:9/0"),
            central=self.central,
        )
        pipeline = Pipeline.objects.create(name=f"p-{uuid4().hex[:6]}", draft={})
        version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document={})
        self.deployment = Deployment.objects.create(
            pipeline=pipeline, version=version, status=Deployment.Status.RUNNING
        )
        self.node = Node.objects.create(name="edge-a", up=True, last_seen_at=timezone.now())
        self.other = Node.objects.create(name="edge-b", up=True, last_seen_at=timezone.now())
        self.stream = f"fl.{self.deployment.pk}.made.out"
        out = OutputStream(source="made.out", topic=self.stream, data_schema=SCHEMA)
        into = InputStream(source="made.out", topic=self.stream, data_schema=SCHEMA, consumer="read")
        self.made, self.read = self._group("made", outputs=(out,)), self._group("read", inputs=(into,))
        journals = [Topic(spec.journal, "journal") for spec in (self.made, self.read)]
        ensure_topics(self.kafka, [Topic(self.stream), *journals])

    def _group(self, name: str, **streams: object) -> GroupSpec:
        spec = GroupSpec.model_validate(
            {"deployment": self.deployment.pk, "pipeline": "p", "group": name, "elements": (), **streams}
        )
        GroupPlacement.objects.create(
            deployment=self.deployment, group=name, spec=spec.model_dump(mode="json"), node=self.node
        )
        return spec

    def commit(self, spec: GroupSpec, count: int) -> None:
        """A claim, then batches, each with a record of the stream."""
        transactions = Transactions(self.kafka, spec.transactional_id(Epoch(1)))
        transactions.initialise()
        transactions.commit([OutgoingRecord(spec.journal, encode(Claim(Epoch(1), "o", "edge-a")))])
        for number in range(1, count + 1):
            commit = Commit(Epoch(1), Boundary(Seq(number), {}, 0))
            outputs = [OutgoingRecord(output.topic, b"{}") for output in spec.outputs]
            transactions.commit([*outputs, OutgoingRecord(spec.journal, encode(commit))])
        transactions.close()

    def checkpoint(self, spec: GroupSpec, seq: int, ends: dict[str, int], mark: int) -> None:
        raw = json.dumps({"journal_offset": mark, "view": {"last_seq": seq}}).encode()
        self.central.put_chunk(spec.id, raw)
        file = FileEntry(path="replica.json", size=len(raw), chunks=(chunks.address(raw),))
        self.central.put_manifest(
            Manifest(
                group=spec.id, seq=Seq(seq), epoch=Epoch(1), version="1", node="edge-a",
                created_at_ms=int(time.time() * 1000), ends=ends, bytes_total=len(raw), bytes_new=0,
                files=(file,),
            )
        )  # fmt: skip

    def report(self, spec: GroupSpec, node: Node, seq: int) -> None:
        Replica.objects.update_or_create(
            deployment=self.deployment,
            group=spec.group,
            node=node,
            defaults={"role": "owner", "seq": seq, "at": timezone.now(), "generation": 1},
        )

    def trimmed(self) -> dict[str, int]:
        return {topic: count for (topic, _), count in Trimmer(self.context, 0).trim().items()}


@pytest.fixture
def deployed(kafka: str, transactional_db: None, tmp_path: Path) -> Iterator[Deployed]:
    made = Deployed(kafka, tmp_path)
    made.commit(made.made, 6)
    made.commit(made.read, 6)
    for spec in (made.made, made.read):
        made.report(spec, made.node, 6)
        made.checkpoint(spec, 5, {f"{made.stream}-0": 8}, mark=9)
        made.checkpoint(spec, 3, {f"{made.stream}-0": 4}, mark=6)
    yield made
    made.central.close()


def test_what_the_oldest_checkpoint_does_not_need_goes(deployed: Deployed) -> None:
    assert deployed.trimmed() == {deployed.stream: 4, deployed.made.journal: 6, deployed.read.journal: 6}
    assert deployed.trimmed() == {}
    for spec in (deployed.made, deployed.read):
        deployed.central.prune(spec.id, {Seq(5)})
    assert deployed.trimmed() == {deployed.stream: 4, deployed.made.journal: 3, deployed.read.journal: 3}


def test_a_replica_that_is_wanted_holds_back_what_it_still_needs(deployed: Deployed) -> None:
    """From the moment it is wanted, before its node has said a word, until it is past the checkpoint."""
    spec = deployed.read
    ExtraReplica.objects.create(
        deployment=deployed.deployment, group="read", node=deployed.other, role="standby"
    )
    assert deployed.trimmed() == {deployed.made.journal: 6}
    deployed.report(spec, deployed.other, 2)
    assert deployed.trimmed() == {}
    deployed.report(spec, deployed.other, 3)
    assert deployed.trimmed() == {deployed.stream: 4, spec.journal: 6}


def test_a_node_that_is_away_for_long_holds_nothing_back(deployed: Deployed) -> None:
    ExtraReplica.objects.create(
        deployment=deployed.deployment, group="read", node=deployed.other, role="standby"
    )
    Node.objects.filter(pk=deployed.other.pk).update(up=False)
    assert deployed.stream not in deployed.trimmed()
    Node.objects.filter(pk=deployed.other.pk).update(last_seen_at=timezone.now() - timedelta(hours=2))
    assert deployed.trimmed()[deployed.stream] == 4


def test_a_consumer_without_a_checkpoint_keeps_its_stream_whole(deployed: Deployed) -> None:
    deployed.central.drop_group(deployed.read.id)
    assert deployed.trimmed() == {deployed.made.journal: 6}


def test_a_standby_that_failed_long_ago_holds_nothing_back(deployed: Deployed) -> None:
    spec = deployed.read
    ExtraReplica.objects.create(
        deployment=deployed.deployment, group="read", node=deployed.other, role="standby"
    )
    deployed.report(spec, deployed.other, 2)
    replica = Replica.objects.filter(node=deployed.other)
    now_ms = int(time.time() * 1000)
    replica.update(status={"error": {"message": "it gave up", "at_ms": now_ms}})
    assert deployed.stream not in deployed.trimmed(), "it may be started again"
    replica.update(status={"error": {"message": "it gave up", "at_ms": now_ms - 2 * 3600 * 1000}})
    assert deployed.trimmed()[deployed.stream] == 4
