"""Brings the state that came with a pipeline to where its first deployment finds it.

For each group that had committed: a checkpoint in the central store, and in its new journal a COMMIT of the
batch at whose end that stands. A replica then starts as it does from any checkpoint. The COMMIT is of epoch
0, so it grants nothing. It is written last, so a journal that has a record needs nothing more.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from pipeline_runtime.checkpoint import portable
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.files import FileStore
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import store
from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import LEFT_OUT, TOPIC_IDS, Boundary, Commit, Ends, encode
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq, position_key
from pipeline_runtime.model.spec import GroupSpec
from webapp.operations.models import CarriedState
from webapp.operations.state_import import commit_of
from webapp.placements.models import Deployment


def bring(
    deployment: Deployment,
    specs: tuple[GroupSpec, ...],
    data: Path,
    central: StateDatabase,
    kafka: KafkaSettings,
) -> None:
    """Its topics are there already. Doing it twice changes nothing more."""
    carried = CarriedState.objects.filter(deployment=deployment.pk).first()
    if carried is None:
        return
    text = FileStore(data / "central" / "files").path(carried.sha256)
    for spec in specs:
        commit = commit_of(carried.groups[spec.group])
        if commit is None or any(True for _ in read_once(kafka, spec.journal, hidden=True)):
            continue
        here = _here(commit, spec)
        _put_checkpoint(spec, here, text, central, data)
        transactions = Transactions(kafka, spec.transactional_id(Epoch(0)))
        try:
            transactions.initialise()
            transactions.warm([spec.journal])
            transactions.commit([OutgoingRecord(spec.journal, encode(here))])
        finally:
            transactions.close()


def _here(commit: Commit, spec: GroupSpec) -> Commit:
    """Returns the commit as it stands in the new journal."""
    # A journal whose first COMMIT is a later one shows that a replica needs a checkpoint.
    seq = Seq(max(commit.seq, 2))
    boundary = Boundary(seq, positions(commit.boundary.ends, spec), commit.boundary.batch_time_ms)
    return replace(
        commit, epoch=Epoch(0), boundary=boundary, node="", definition=spec.version, rows_in=0, rows_out=0
    )


def positions(ends: Ends, spec: GroupSpec) -> Ends:
    """Returns where the group goes on: in its sources and in topics of the users' own where it stood, in new
    streams at their beginning. Pure."""
    outside = {each.topic for each in spec.inputs if each.external and not each.intake}
    elements = {element.id for element in spec.elements}

    def stays(key: str) -> bool:
        return key in elements or key in (TOPIC_IDS, LEFT_OUT) or key.rpartition("-")[0] in outside

    fresh = {
        position_key(each.topic, partition): 0
        for each in spec.inputs
        if not each.external or each.intake
        for partition in range(each.partitions)
    }
    return {**{key: at for key, at in ends.items() if stays(key)}, **fresh}


def _put_checkpoint(spec: GroupSpec, here: Commit, text: Path, central: StateDatabase, data: Path) -> None:
    with tempfile.TemporaryDirectory(dir=data, prefix="carried-") as work:
        directory = Path(work) / "state"
        with open(text, "rb") as stream:
            portable.unpack(stream, spec.group, here.boundary.to_json(), directory)
        with take_snapshot(directory, Path(work)) as snapshot:
            store(snapshot, central, group=spec.id, epoch=Epoch(0), version=spec.version, node="imported")
