"""A whole Fogline under its real supervisor, as `make up` starts it, in a directory of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx
import psutil

from tests.ports import free_block
from tests.waiting import wait_until
from workers.supervisor.tether import tethered

PROJECT = Path(__file__).resolve().parents[1]
_START_S = 420.0  # beside all the other lanes
_STOP_S = 90.0
_SAID_LAST = 200  # characters, of the 300 that a build's summary shows of a failure
_UNDEPLOYED_S = 180.0


class RunningFogline:
    """Started with `start()` or `with`; may be started again over the same data.

    >>> with RunningFogline(tmp_path, nodes=("edge-a",)) as fogline:
    ...     with fogline.client() as client:
    ...         client.get("/api/v1/nodes")
    """

    def __init__(self, data: Path, nodes: tuple[str, ...] = (), demo: bool = False, **environ: str) -> None:
        self.data = data
        first = free_block(5 + len(nodes))
        self.port, redis_port, chunk_port, kafka_port = first, first + 1, first + 2, first + 3
        self.environ = {
            **os.environ,
            "FOGLINE_DATA": str(data),
            "FOGLINE_PORT": str(self.port),
            "FOGLINE_REDIS_PORT": str(redis_port),
            "FOGLINE_KAFKA_PORT": str(kafka_port),
            "FOGLINE_CHUNK_PORT": str(chunk_port),
            "FOGLINE_NODE_PORT": str(first + 5),
            "FOGLINE_NODES": ",".join(nodes),
            "FOGLINE_DEMO": str(int(demo)),
            # Sooner would take CPU from all else; where the target is the point, it is set.
            "FOGLINE_LATENCY_MS": "200",
            # A busy build machine stands still for seconds; where silence is the point, it is set.
            "FOGLINE_SILENCE_S": "20",
            **environ,
        }
        self.url = f"http://127.0.0.1:{self.port}"
        self.bootstrap = f"127.0.0.1:{kafka_port}"
        self.process: psutil.Popen | None = None
        self._cookies: httpx.Cookies | None = None

    @property
    def output_path(self) -> Path:
        return self.data / "output.txt"

    @property
    def output(self) -> str:
        return self.output_path.read_text() if self.output_path.exists() else ""

    def launch(self) -> psutil.Popen:
        """The supervisor's process, just started; its output goes to `output_path`."""
        self.data.mkdir(parents=True, exist_ok=True)
        with self.output_path.open("w") as output:
            self.process = psutil.Popen(
                # A test process that is killed leaves none behind.
                tethered([sys.executable, "-m", "workers.supervisor"]),
                cwd=PROJECT,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self.process

    def start(self) -> None:
        """Returns when the address and the login have been printed."""
        process = self.launch()
        wait_until(
            lambda: "Stop: Ctrl-C" in self.output or process.poll() is not None,
            lambda: f"Fogline's start, which has said {self.output[-_SAID_LAST:]!r}",
            _START_S,
        )
        assert process.poll() is None, self.output

    def stop(self) -> int:
        """SIGTERM, and what it ended with; all its processes are gone then."""
        process, self.process = self.process, None
        if process is None:
            return 0
        family = [process, *process.children(recursive=True)] if process.poll() is None else []
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = int(process.wait(_STOP_S))
        finally:
            alive = [one for one in family if alive_still(one)]
            for one in alive:
                one.kill()
        assert not alive, f"left behind: {alive}\n{self.output}"
        return code

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def login(self) -> tuple[str, str]:
        """User name and password of the generated account."""
        account = json.loads((self.data / "admin.json").read_text())
        return account["username"], account["password"]

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Signed in as the generated account, by the login page (once: a password takes a while to check);
        the token for changes is set."""
        with httpx.Client(
            base_url=self.url, timeout=30, headers={"Referer": self.url}, cookies=self._cookies
        ) as client:
            if self._cookies is None:
                self._sign_in(client)
                self._cookies = client.cookies
            (token,) = [cookie.value for cookie in client.cookies.jar if "csrf" in cookie.name]
            client.headers["X-CSRFToken"] = token or ""
            yield client

    def _sign_in(self, client: httpx.Client) -> None:
        username, password = self.login()
        page = client.get("/accounts/login/").raise_for_status().text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert found is not None, page
        form = {"csrfmiddlewaretoken": found[1], "username": username, "password": password}
        answer = client.post("/accounts/login/", data=form)
        assert answer.status_code == 302, f"signing in failed: {answer.text}"

    def pipelines(self) -> set[str]:
        """The names of all."""
        with self.client() as client:
            return {each["name"] for each in client.get("/api/v1/pipelines").raise_for_status().json()}

    def remove(self, pipelines: set[str]) -> None:
        """Undeploys what runs of them, and deletes them."""
        with self.client() as client:
            paths = [f"/api/v1/pipelines/{name}" for name in sorted(pipelines)]

            ordered = set[str]()

            def over() -> bool:
                deployed = [path for path in paths if client.get(path).json()["deployment"] is not None]
                for path in deployed:
                    if path in ordered:
                        continue
                    # It is refused while something else is being done with the pipeline.
                    answer = client.post(f"{path}/undeploy")
                    if answer.is_success:
                        ordered.add(path)
                        # The systems to which it delivers have ended with the test.
                        client.post(f"/api/v1/operations/{answer.json()['id']}/hurry")
                return not deployed

            wait_until(over, "the end of what was deployed", _UNDEPLOYED_S)
            for path in paths:
                client.delete(path).raise_for_status()

    @contextmanager
    def kept_down(self, node: str) -> Iterator[None]:
        """Kills a node's process. The supervisor, which would start it again before anybody misses it, stands
        still meanwhile."""
        assert self.process is not None
        self.process.suspend()
        try:
            os.kill(self.pid(node), signal.SIGKILL)
            yield
        finally:
            self.process.resume()

    def pid(self, name: str) -> int:
        """Process id of `web`, `control`, `kafka`, `redis` or a node."""
        marks = {
            "web": "webapp.config.asgi:application",
            "control": "workers.control",
            "kafka": "kafka.Kafka",
            "redis": "redis-server",
        }
        assert self.process is not None
        for one in self.process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has just ended
                command = " ".join(one.cmdline())
                if marks.get(name, f"workers.node --name {name}") in command:
                    return int(one.pid)
        raise AssertionError(f"{name} does not run:\n{self.output}")


def alive_still(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
