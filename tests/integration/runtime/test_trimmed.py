"""A replica that starts from a checkpoint needs no record that was trimmed because of that checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, read_file, store
from pipeline_runtime.checkpoint.trimming import Kept, TrimGroup, journal_mark, trim_points
from pipeline_runtime.journal.grants import grants_from
from pipeline_runtime.kafka.admin import trim_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from tests.integration.runtime.copying import rename_query
from tests.integration.runtime.documents import Stream, by_key, events, out, running_sums, sums
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    end_clients,
    owning,
    read_all,
    values,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def checkpointed(spec: GroupSpec, node: Node, database: StateDatabase, work: Path) -> tuple[Manifest, Kept]:
    """A checkpoint that knows where to go on reading its journal."""
    replica = node.running[[run.spec.id for run in node.running].index(spec.id)]
    directory = node.replica_directory(spec)
    wait_until((directory / "replica.json").exists, f"{spec.group} has marked its journal")
    marked = replica.status().seq
    wait_for_status(replica, lambda status: status.seq > marked, "to go on")
    with take_snapshot(directory, work, replica.growing) as taken:
        manifest = store(taken, database, group=spec.id, epoch=Epoch(1), version=spec.version, node="a")
    note = read_file(manifest, "replica.json", lambda sha: database.get_chunk(spec.id, sha))
    assert note is not None
    return manifest, Kept(manifest.seq, manifest.ends, journal_mark(note, manifest.seq))


def test_a_replica_from_the_oldest_checkpoint_reads_on_after_trimming(
    kafka: str, node: Node, other_node: Node, tmp_path: Path
) -> None:
    settings = KafkaSettings(kafka)
    source, target = create_topic(kafka), create_topic(kafka)
    deployed = Deployed(
        kafka, [events(source), sums(), out(target)], {"in": ["events"], "rest": ["sums", "out"]}
    )
    stream = Stream(kafka, source)
    stream.start()
    running = deployed.run(node)
    with StateDatabase(tmp_path / "database") as database:
        oldest = {
            group: checkpointed(spec, node, database, tmp_path / "work")
            for group, spec in deployed.specs.items()
        }
        for group, replica in running.items():
            far = oldest[group][0].seq + 15
            wait_for_status(replica, lambda status, far=far: status.seq >= far, f"to reach {far}")
        groups = []
        for group, spec in deployed.specs.items():
            kept = oldest[group][1]
            assert kept.journal_offset
            kept = replace(kept, granted_after=grants_from(settings, spec.journal, kept.journal_offset))
            groups.append(TrimGroup(spec, kept, Seq(running[group].status().seq)))
        points = trim_points(groups)
        between = f"fl.{deployed.id}.events.out"
        assert set(points) == {(spec.journal, 0) for spec in deployed.specs.values()} | {(between, 0)}
        assert set(trim_topics(settings, points)) == set(points)
        end_clients()
        for (topic, _), offset in points.items():
            assert read_all(kafka, topic)[0].offset >= offset, "it is gone indeed"
        # Their node is gone: both start elsewhere, from the oldest checkpoint that there is.
        node.stop_all()
        for group, spec in deployed.specs.items():
            directory = other_node.replica_directory(spec)
            directory.parent.mkdir(parents=True)
            manifest = oldest[group][0]
            materialize(manifest, lambda sha, id=spec.id: database.get_chunk(id, sha), directory)
            rename_query(directory / "spark")
    restored = {group: other_node.own(spec, over=1) for group, spec in deployed.specs.items()}
    for replica in restored.values():
        assert owning(replica).epoch == 2
    expected = running_sums(stream.finish())
    count = sum(len(made) for made in expected.values())
    wait_until(lambda: len(values(kafka, target)) >= count, "all rows")
    assert by_key(values(kafka, target)) == expected

    # And once more from its own disk, whose mark says what the trimmed part of the journal had.
    for replica in restored.values():
        replica.stop(STOP_S)
    again = other_node.own(deployed.specs["rest"], over=2)
    assert owning(again).epoch == 3
    sent = len(stream.rows)
    wait_for_status(again, lambda now: now.rows_in_total == sent, f"its totals to be {sent}")
    assert by_key(values(kafka, target)) == expected
