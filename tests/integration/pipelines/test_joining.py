"""A machine joins as docs/how-to/add-a-machine.md says, in a fresh copy, with what a node's lock installs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from pipeline_runtime.model.ids import stream_topic
from tests.integration.pipelines.conftest import Steady
from tests.integration.pipelines.driving import (
    API,
    CommittedReader,
    create_topic,
    deploy,
    hand_over,
    undeploy,
)
from tests.integration.pipelines.statistics import (
    RECOVERY_S,
    assert_agrees_with_oracle,
    keyed_event,
    node,
    owner_again,
    statistics_document,
)
from tests.running import PROJECT, RunningFogline
from tests.waiting import wait_until

INSTALL_S = 900.0  # 200 MB from a package index that may be slow
NOT_IN_A_CLONE = (".git", ".venv", ".fogline", "node_modules", "dist", "build", "__pycache__", ".*_cache")


class Machine:
    """A clone of Fogline in which nothing is installed, and `make node` there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "fogline"
        shutil.copytree(PROJECT, self.directory, ignore=shutil.ignore_patterns(*NOT_IN_A_CLONE))
        self._make: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        path = self.directory / "said.txt"
        return path.read_text() if path.exists() else ""

    def make_node(self, arguments: str, **environ: str) -> None:
        """As typed in a shell of its own, in which nothing of this test's settings is set."""
        ours = ("FOGLINE_", "MAKE", "MFLAGS", "DJANGO_", "PYTHONPATH", "VIRTUAL_ENV")
        plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        jars = {name: value for name, value in os.environ.items() if name == "FOGLINE_IVY_SETTINGS"}
        with (self.directory / "said.txt").open("ab") as said:
            self._make = subprocess.Popen(
                ["make", "node", f"ARGS={arguments}"],
                cwd=self.directory,
                env={**plain, **jars, **environ},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        return self._make is not None and self._make.poll() is None

    def stop(self) -> None:
        """As Ctrl-C does: the signal goes to all that run in the foreground."""
        make, self._make = self._make, None
        if make is None or make.poll() is not None:
            return
        family = psutil.Process(make.pid).children(recursive=True)
        os.killpg(make.pid, signal.SIGINT)
        # Where it runs something, it hands that over first.
        _, alive = psutil.wait_procs(family, timeout=RECOVERY_S + 60)
        for one in alive:
            one.kill()
        make.wait(60)
        assert not alive, f"{alive}\n{self.said}"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    one = Machine(tmp_path)
    yield one
    one.stop()


@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_a_machine_joins_takes_a_running_element_and_is_restarted(
    fogline: RunningFogline, client: httpx.Client, machine: Machine, steady: Steady
) -> None:
    answer = client.post(f"{API}/nodes", json={"name": "barn"})
    assert answer.status_code == 201, answer.text
    command = f'FOGLINE_TOKEN={answer.json()["token"]} make node ARGS="--join {fogline.url} --name barn"'
    assert answer.json()["command"] == command
    machine.make_node(
        f"--join {fogline.url} --name barn",
        FOGLINE_TOKEN=answer.json()["token"],
        FOGLINE_LEAVE_S=str(RECOVERY_S),  # a busy machine needs longer than the usual minute
    )
    wait_until(lambda: ready(client) or not machine.runs, "barn to be ready", INSTALL_S)
    assert machine.runs, machine.said
    assert (machine.directory / ".venv/.installed-node").exists()
    assert not (machine.directory / ".venv/.installed").exists(), "the whole was installed, not a node"

    pipeline, topic = "joining", "joining-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, statistics_document(pipeline, topic))
    producer = steady(fogline.bootstrap, topic, keyed_event, 50)
    seq = owner_again(client, pipeline, 5, "edge-a")["seq"]

    handover = hand_over(client, pipeline, "stats", "migrate", "barn")
    assert handover["outcome"] == "done", f"{handover}\n{machine.said}"
    seq = owner_again(client, pipeline, seq, "barn")["seq"]

    url = node(client, "barn")["url"]
    machine.stop()
    wait_until(lambda: not node(client, "barn")["up"], "barn to be down")
    assert "1 element is being handed over" in machine.said
    assert "nothing is left here to hand over" in machine.said
    seq = owner_again(client, pipeline, seq, "edge-a")["seq"]
    machine.make_node("--name barn")
    wait_until(lambda: ready(client) or not machine.runs, "barn to be ready again", RECOVERY_S)
    assert machine.runs, machine.said
    assert node(client, "barn")["url"] == url
    handover = hand_over(client, pipeline, "stats", "migrate", "barn")
    assert handover["outcome"] == "done", f"it takes elements again: {handover}\n{machine.said}"
    seq = owner_again(client, pipeline, seq, "barn")["seq"]

    events = producer.finish(1_000)
    reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
    assert_agrees_with_oracle(reader.read(len(events), RECOVERY_S), events)
    reader.close()
    undeploy(client, pipeline)
    machine.stop()
    wait_until(lambda: not node(client, "barn")["up"], "barn to be down")
    wait_until(lambda: client.delete(f"{API}/nodes/barn").status_code == 204, "barn to be removed")


def ready(client: httpx.Client) -> bool:
    answer = client.get(f"{API}/nodes/barn")
    return answer.status_code == 200 and answer.json()["up"] and answer.json()["ready"]
