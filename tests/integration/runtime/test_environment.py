"""Tests the environment that Spark's processes inherit from a real node: it has no key and no password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pipeline_runtime.model.desired import ClaimOrder, DesiredReplica, NodeDesired, Role
from pipeline_runtime.model.ids import Epoch
from tests.integration.runtime.documents import events, out
from tests.integration.runtime.engine import Deployed, create_topic, produce, values
from tests.ports import free_ports
from tests.running import PROJECT
from tests.waiting import wait_until
from workers.node.desired_store import DesiredStore
from workers.supervisor.tether import tethered

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PASSWORD = "known-to-nobody"
SECRETS = {
    "FOGLINE_CLUSTER_KEY": f"{PASSWORD}-cluster-key-of-many-characters",
    "FOGLINE_SECRET_KEY": f"{PASSWORD}-secret-key-of-many-characters",
    "FOGLINE_METRICS_TOKEN": f"{PASSWORD}-metrics",
    "FOGLINE_TOKEN": f"{PASSWORD}-token",
    "FOGLINE_KAFKA_SECURITY": json.dumps({"security_protocol": "PLAINTEXT", "sasl_plain_password": PASSWORD}),
    "DATABASE_URL": f"postgres://fogline:{PASSWORD}@127.0.0.1/fogline",
    "SOMEBODYS_PASSWORD": PASSWORD,
}


def environments(processes: list[psutil.Process]) -> dict[str, str]:
    """Returns the environments of the running ones, as the user's other programs see them, by id and
    command."""
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            text = Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
            if text:
                found[f"{process.pid} {' '.join(process.cmdline())}"] = text
    return found


def test_no_process_of_spark_is_given_a_key_or_a_password(kafka: str, redis_url: str, tmp_path: Path) -> None:
    topic, outside = create_topic(kafka), create_topic(kafka)
    stats = {
        "id": "stats",
        "type": "running-statistics",
        "inputs": {"in": "events"},
        "params": {"column": "v"},
    }
    elements = [events(topic), stats, out(outside, "stats")]
    spec = Deployed(kafka, elements, {"all": [element["id"] for element in elements]}).specs["all"]
    order = ClaimOrder(id="first", over=Epoch(0))
    directory = tmp_path / "nodes" / "edge-a"
    directory.mkdir(parents=True)
    wanted = DesiredReplica(spec=spec, role=Role.OWNER, order=order)
    DesiredStore(directory / "desired.json").save(NodeDesired(node="edge-a", revision=1, replicas=(wanted,)))
    places = {
        "FOGLINE_DATA": str(tmp_path),
        "FOGLINE_NODE_PORT": str(free_ports(1)[0]),
        "FOGLINE_KAFKA": kafka,
        "REDIS_URL": redis_url,
    }
    log = tmp_path / "log"
    with log.open("w") as file:
        node = psutil.Popen(
            tethered([sys.executable, "-m", "workers.node", "--name", "edge-a"]),
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **places, **SECRETS},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        produce(kafka, topic, [{"k": "a", "v": 1}])
        wait_until(lambda: values(kafka, outside) or node.poll() is not None, "the first row", 300)
        assert node.poll() is None, log.read_text()
        (of_node,) = environments([node]).values()
        assert PASSWORD in of_node, "it was given them"
        handed_on = environments(node.children(recursive=True))
        java = [one for one in handed_on if "/java " in one]
        assert len(java) == 1, list(handed_on)
        assert len(handed_on) > 4, list(
            handed_on
        )  # a source's runner, the daemon, a reader, a keyed element's
        for process, text in handed_on.items():
            assert "PATH=" in text, process
            assert PASSWORD not in text, process
            assert not any(f"{name}=" in text for name in (*SECRETS, "REDIS_URL")), process
        assert PASSWORD not in log.read_text()
    finally:
        node.terminate()
        node.wait(60)
