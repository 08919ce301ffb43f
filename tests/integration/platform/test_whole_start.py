"""Laws of `python -m workers.supervisor`, which is what `make up` runs: the real processes, without nodes."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.running import PROJECT, RunningFogline, alive_still
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def fogline(tmp_path: Path) -> Iterator[RunningFogline]:
    one = RunningFogline(tmp_path / "data")
    yield one
    one.stop()


def refused(fogline: RunningFogline) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "workers.supervisor"],
        cwd=PROJECT,
        env=fogline.environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    return done.stderr


def open_to_others(data: Path) -> list[Path]:
    """What another user of this machine could read or write. `output.txt` is of the test itself."""
    found = []
    for directory, folders, files in os.walk(data):
        for name in (*folders, *files):
            path = Path(directory, name)
            # What runs renames and removes its files meanwhile.
            with suppress(FileNotFoundError):
                mode = path.lstat().st_mode
                if name != "output.txt" and not stat.S_ISLNK(mode) and mode & 0o077:
                    found.append(path)
    return found


def test_what_make_up_starts_works_continues_with_its_data_and_leaves_nothing_behind(
    fogline: RunningFogline,
) -> None:
    """One life, since each start costs as much as some hundred other tests."""
    fogline.start()
    username, password = fogline.login()
    assert f"Fogline runs at {fogline.url}" in fogline.output
    assert f"Sign in as {username} with {password}" in fogline.output
    assert password not in "".join(path.read_text() for path in (fogline.data / "logs").glob("*.log"))
    with fogline.client() as client:
        assert client.get("/api/v1/me").json()["username"] == username
        document = {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "kept"},
            "spec": {"elements": []},
        }
        client.post("/api/v1/pipelines", json={"name": "kept", "document": document}).raise_for_status()
    assert "is already running" in refused(fogline)
    assert open_to_others(fogline.data) == []
    assert fogline.stop() == 0

    fogline.start()
    assert password not in fogline.output
    assert str(fogline.data / "admin.json") in fogline.output
    with fogline.client() as client:
        assert [row["name"] for row in client.get("/api/v1/pipelines").json()] == ["kept"]

    # A crashed web is started again.
    first = fogline.pid("web")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: fogline.output.count("Web ready") == 2, "the web's restart")
    assert fogline.pid("web") != first
    with fogline.client() as client:
        assert client.get("/readyz").status_code == 200

    # A killed guard leaves nothing behind.
    assert fogline.process is not None
    guard, family = fogline.process, fogline.process.children(recursive=True)
    guard.send_signal(signal.SIGKILL)
    guard.wait()
    wait_until(lambda: not any(alive_still(one) for one in family), "the end of all processes")


# Python runs it at its start. The module is one that Celery loads only when it begins to take commands.
_MISSING_ONCE = """
import pathlib, sys

mark = pathlib.Path({mark!r})

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "celery.concurrency.thread" and "workers.control" in sys.orig_argv and not mark.exists():
            mark.touch()
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.full
def test_control_ends_with_its_commands_and_is_started_again(fogline: RunningFogline, tmp_path: Path) -> None:
    """As with a lock in which a module is missing, but this one is missing once only."""
    hook = tmp_path / "hook" / "sitecustomize.py"
    hook.parent.mkdir()
    hook.write_text(_MISSING_ONCE.format(mark=str(tmp_path / "was missing")))
    fogline.environ["PYTHONPATH"] = f"{hook.parent}{os.pathsep}{PROJECT}"
    fogline.start()
    again = "Control ended with code 1; starting it again"
    wait_until(lambda: "Control ready" in fogline.output.partition(again)[2], "control to be started again")
    said = fogline.output
    assert "The thread 'commands' cannot go on: ModuleNotFoundError: No module named 'celery.con" in said
    assert said.count(again) == 1


def test_a_taken_port_starts_nothing_and_names_the_setting(fogline: RunningFogline) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", fogline.port))
        taken.listen()
        message = refused(fogline)
    assert f"Port {fogline.port} for the web is taken" in message
    assert "FOGLINE_PORT" in message
    assert not (fogline.data / "kafka").exists()


def test_settings_that_cannot_be_used_are_all_told(fogline: RunningFogline) -> None:
    fogline.environ.update({"FOGLINE_LOG": "loud", "FOGLINE_NODES": "Edge"})
    message = refused(fogline)
    assert "FOGLINE_LOG" in message
    assert "FOGLINE_NODES" in message
