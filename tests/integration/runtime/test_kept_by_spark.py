"""A keyed processor's state from before the replica kept it itself is read once, and gone on with.

`data/kept-by-spark.tar.gz` is the directory of a replica as Fogline left it at commit eea5232, after three
waves of the rows below.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.replica.local_state import keyed_path, open_state, spark_directory
from pipeline_runtime.replica.replica import Replica
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    owning,
    produce,
    wait_for_status,
)

pytestmark = pytest.mark.integration

FORMER = Path(__file__).parent / "data" / "kept-by-spark.tar.gz"
WAVES = 3
ROWS = [{"k": f"k{n % 5}", "v": n} for n in range(20)]
PARAMS = {"column": "v", "every_s": 3}


def send(kafka: str, topic: str, replica: Replica) -> None:
    before = owning(replica).seq
    produce(kafka, topic, ROWS, time_ms=lambda row: 1_700_000_000_000 + row["v"] * 100)
    wait_for_status(replica, lambda status: status.seq > before, "to process a wave")


def kept(directory: Path) -> dict[str, Any]:
    state = KeyedState(keyed_path(directory), read_only=True)
    try:
        return {key: json.loads(text) for key, text in state.items()}
    finally:
        state.close()


def test_a_state_that_spark_kept_is_gone_on_with(kafka: str, node: Node) -> None:
    topic = create_topic(kafka)
    stats = {"id": "stats", "type": "running-statistics", "inputs": {"in": "events"}, "params": PARAMS}
    deployed = Deployed(kafka, [events(topic), stats])
    replica = deployed.run(node)["stats"]
    for _ in range(WAVES):
        send(kafka, topic, replica)
    replica.stop(STOP_S)
    spec = deployed.specs["stats"]
    directory = node.replica_directory(spec)
    expected, stood = kept(directory), open_state(directory)

    shutil.rmtree(directory)
    with tarfile.open(FORMER) as archive:
        archive.extractall(directory.parent, filter="data")
    (directory.parent / "replica").rename(directory)
    # Of another journal: this one says where its batch has ended.
    (directory / "replica.json").unlink()
    shutil.rmtree(directory / "definitions")
    newest = max((spark_directory(directory) / "ends").iterdir(), key=lambda path: int(path.name))
    newest.write_text(json.dumps(stood.to_json()))

    again = node.own(spec, over=1)
    owning(again)
    assert kept(directory) == expected
    assert not list(spark_directory(directory).glob("state")), "nobody needs what Spark has kept"
    send(kafka, topic, again)
    assert {key: each["state"]["count"] for key, each in kept(directory).items()} == {
        f"k{n}": 4 * (WAVES + 1) for n in range(5)
    }
    assert again.status().state_keys == 5
    deployed.assert_journal_lawful("stats")
