"""The checkpoints of a group: those in the central store, and those that its nodes report."""

from __future__ import annotations

from pipeline_runtime.kafka.reach import Gone, gone
from pipeline_runtime.model.ids import position_key
from pipeline_runtime.model.spec import GroupSpec
from webapp.backends.chunk_store import checkpoint_summaries
from webapp.backends.kafka import kafka_settings
from webapp.moments import iso_of_ms
from webapp.placements.models import GroupPlacement, Replica
from webapp.placements.schemas import Checkpoint
from webapp.problems import BackendAway, Missing


def checkpoints_of(deployment: str, group: str) -> list[Checkpoint]:
    """Returns the checkpoints, newest first."""
    try:
        stored = checkpoint_summaries(f"{deployment}.{group}")
    except Missing:
        stored = []
    found: dict[int, Checkpoint] = {
        item["seq"]: {
            "seq": item["seq"],
            "epoch": item.get("epoch"),
            "at": iso_of_ms(item.get("created_at_ms")),
            "bytes": item.get("bytes_total"),
            "bytes_new": item.get("bytes_new"),
            "node": item.get("node"),
            "where": ["central"],
        }
        for item in stored
    }
    for replica in Replica.objects.filter(deployment=deployment, group=group).select_related("node"):
        # A checkpoint that only its node has cannot be restored from when that node is gone. So it is listed
        # only if the central store has it as well.
        entry = found.get(replica.status.get("checkpoint_seq"))
        if entry is not None:
            # A node knows where else its newest checkpoint lies: on the backup node.
            places = (replica.node.name, *(replica.status.get("checkpoint_where") or ()))
            entry["where"] += [place for place in dict.fromkeys(places) if place not in entry["where"]]
    return [found[seq] for seq in sorted(found, reverse=True)]


def missing_inputs(deployment: str, group: str, seq: int) -> list[Gone]:
    """Returns partitions that have lost records which a replica that starts from checkpoint `seq` reads
    first."""
    placement = GroupPlacement.objects.filter(deployment=deployment, group=group).first()
    summary = next(
        (item for item in checkpoint_summaries(f"{deployment}.{group}") if item["seq"] == seq), None
    )
    if placement is None or summary is None:
        return []
    inputs = GroupSpec.model_validate(placement.spec).inputs
    points = ((item.topic, partition) for item in inputs for partition in range(item.partitions))
    ends = summary.get("ends") or {}
    needed = {(topic, p): ends[key] for topic, p in points if (key := position_key(topic, p)) in ends}
    if not needed:
        return []
    try:
        return gone(kafka_settings(), needed)
    except Exception as error:
        # Any error of the Kafka client, which only pipeline_runtime.kafka may import.
        raise BackendAway(
            f"Kafka does not answer: {type(error).__name__}.",
            safe="The element keeps running.",
            next="Check that the broker runs, then try again.",
        ) from error
