"""A group that ends Java again and again is held; what runs beside it goes on. Real nodes, real Spark."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from pipeline_runtime.model.desired import (
    ClaimOrder,
    DesiredReplica,
    NodeDesired,
    NodeReport,
    ReplicaStatus,
    Role,
)
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.wire.keys import REPORT_FIELD, REPORTS_STREAM
from pipeline_runtime.wire.reports import json_of
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import Deployed, create_topic, produce
from tests.integration.workers.greedy_operator import installed_in
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full]

PROJECT = Path(__file__).resolve().parents[3]
NAME = "edge-a"
ENDS_MAX = 4
"""One that is certain, and those in which the other group was in a batch as well."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's package with the greedy operator, here and in the node."""
    site = installed_in(tmp_path / "site")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    default_registry.cache_clear()
    yield site
    default_registry.cache_clear()


class RealNode:
    """`python -m workers.node`, which starts from what its disk says is wanted; nobody else tells it."""

    def __init__(self, directory: Path, kafka: str, redis_url: str, package: Path) -> None:
        self._directory = directory
        self._redis = redis.Redis.from_url(redis_url)
        (port,) = free_ports(1)
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(package), str(PROJECT)]),
            "FOGLINE_DATA": str(directory),
            "FOGLINE_KAFKA": kafka,
            "REDIS_URL": redis_url,
            "FOGLINE_NODES": NAME,
            "FOGLINE_NODE_PORT": str(port),
            "FOGLINE_LEAVE_S": "0",
        }
        self._runs = 0

    def is_wanted(self, *specs: GroupSpec) -> None:
        replicas = tuple(
            DesiredReplica(
                spec=spec,
                role=Role.OWNER,
                order=ClaimOrder(id=f"first-of-{spec.group}", over=Epoch(0)),
            )
            for spec in specs
        )
        wanted = NodeDesired(node=NAME, revision=1, replicas=replicas)
        path = self._directory / "nodes" / NAME / "desired.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted.model_dump_json())

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        self._redis.flushdb()
        self._runs += 1
        command = [sys.executable, "-m", "workers.node", "--name", NAME]
        with open(self._directory / f"log-{self._runs}", "wb") as log:
            process = subprocess.Popen(command, cwd=PROJECT, env=self._env, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(60)
                finally:
                    process.kill()

    def report(self) -> NodeReport | None:
        """The last one."""
        newest = self._redis.xrevrange(REPORTS_STREAM, count=1)
        return NodeReport.model_validate_json(json_of(newest[0][1][REPORT_FIELD])) if newest else None

    def is_ready(self) -> bool:
        report = self.report()
        return report is not None and report.ready

    def status(self, spec: GroupSpec) -> ReplicaStatus | None:
        report = self.report()
        return next((one for one in report.replicas if one.group == spec.id), None) if report else None

    def owns(self, spec: GroupSpec) -> bool:
        status = self.status(spec)
        return status is not None and status.role is Role.OWNER

    def holds(self, spec: GroupSpec) -> bool:
        """And Java is there: it says so, too, between Java's end and its own."""
        status = self.status(spec)
        return self.is_ready() and status is not None and status.phase == "held"


def pipeline(kafka: str, topic: str, *elements: dict[str, object]) -> Deployed:
    ids = ["events", *(str(element["id"]) for element in elements)]
    return Deployed(kafka, [events(topic), *elements], {"all": ids})


def rows(deployed: Deployed, element: str) -> list[int]:
    return [row["v"] for row in deployed.records(element)]


@pytest.mark.timeout(900)  # three starts of Spark, one after another
def test_a_group_that_ends_java_twice_is_held_and_the_one_beside_it_goes_on(
    kafka: str, redis_url: str, package: Path, tmp_path: Path
) -> None:
    good, bad = create_topic(kafka), create_topic(kafka)
    kept = {"id": "kept", "type": "filter", "inputs": {"in": "events"}, "params": {"condition": "v > 0"}}
    greedy = {"id": "greedy", "type": "greedy", "inputs": {"in": "events"}, "params": {}}
    one, other = pipeline(kafka, good, kept), pipeline(kafka, bad, greedy)
    innocent, lethal = one.specs["all"], other.specs["all"]
    node = RealNode(tmp_path, kafka, redis_url, package)
    node.is_wanted(innocent, lethal)
    with node.running() as process:
        wait_until(node.is_ready, "Spark")
        wait_until(lambda: node.owns(innocent) and node.owns(lethal), "both groups to own")
        produce(kafka, good, [{"k": "a", "v": 1}])
        produce(kafka, bad, [{"k": "a", "v": 1}])
        wait_until(lambda: rows(one, "kept") == [1] and rows(other, "greedy") == [1], "the first rows")
        produce(kafka, bad, [{"k": "a", "v": 13}])
        wait_until(lambda: process.poll() is not None, "the node to end with Java")
        assert process.returncode == 1
    # Started again by whoever watches it, until the group is held: one end more is enough, unless the
    # innocent one was in a batch as well.
    ends, ended, produced = 1, True, False
    while ended:
        with node.running() as process:
            wait_until(lambda p=process: node.is_ready() or p.poll() is not None, "Spark")
            wait_until(lambda p=process: node.holds(lethal) or p.poll() is not None, "the end, or the hold")
            if process.poll() is None and not produced:
                produce(kafka, good, [{"k": "a", "v": 2}])
                produced = True
            # A node that ends may tell the hold before it is gone.
            wait_until(
                lambda p=process: rows(one, "kept") == [1, 2] or p.poll() is not None,
                "the innocent one to go on",
            )
            ended = process.poll() is not None
            if ended:
                ends += 1
                assert ends <= ENDS_MAX
                continue
            assert ends >= 2
            assert process.poll() is None
            assert not node.holds(innocent)
            held = node.status(lethal)
            assert held is not None
            assert held.error is not None
            assert f"has ended Spark's Java process {ends} times (on {NAME})" in held.error.message
