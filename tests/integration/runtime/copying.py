"""A checkpoint of one node's replica, copied to the other node."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from tests.integration.runtime.engine import Node


def copy_state(spec: GroupSpec, origin: Node, target: Node, tmp_path: Path) -> int:
    """As a node does it: snapshot, chunks and manifest, and files again; the seq that was taken."""
    database = StateDatabase(tmp_path / "database")
    try:
        growing = next((run.growing for run in origin.running if run.spec.id == spec.id), None)
        with take_snapshot(origin.replica_directory(spec), tmp_path / "work", growing) as taken:
            manifest = store(
                taken, database, group=spec.id, epoch=Epoch(1), version=spec.version, node="a", now_ms=0
            )
        directory = target.replica_directory(spec)
        directory.parent.mkdir(parents=True)
        materialize(manifest, lambda sha: database.get_chunk(spec.id, sha), directory)
        rename_query(directory / "spark")
        return manifest.seq
    finally:
        database.close()


def rename_query(spark: Path) -> None:
    """Both nodes of this test share one Spark session, and a session runs a query of one id only once. Of a
    group with a keyed state no checkpoint has one."""
    if not spark.is_dir():
        return
    (spark / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    (spark / ".metadata.crc").unlink(missing_ok=True)
