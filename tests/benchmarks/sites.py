"""A Fogline whose nodes stand at sites: each site's node reaches the rest by lines that delay and count.

The centre (broker, Redis, control, web, the central checkpoints) and the node `cloud` stand together. A
hall's node has one way out, whose round trip to the centre is `Site.rtt_ms`. All that crosses it crosses one
of four lines, each a TCP proxy:

    kafka     node -> broker
    redis     node -> Redis: heartbeats, desired state, commands
    central   node -> the central checkpoint service; uploaded files are fetched here, too
    node      others -> the node's own checkpoint service

What goes from one hall to another crosses the line `node` of the one that is asked, delayed by that alone.
The node in the centre has such a line, too, for what halls send to it, delayed as that of the nearest hall.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

import pipeline_runtime
from tests.benchmarks.harness import Used
from tests.handover.proxy import Counts, Proxies
from tests.ports import free_block
from tests.running import PROJECT, RunningFogline
from tests.told_load import tell
from tests.waiting import wait_until
from workers.supervisor.services import Kafka
from workers.supervisor.tether import tethered

KINDS = ("kafka", "redis", "central", "node")
READY_S = 300.0
_GONE_S = 30.0
TARGET_MS = int(os.environ.get("TARGET_MS", "500"))  # the latency target; the product's default
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Site:
    """`rtt_ms`: to the centre and back; 0: it stands there, and has no line of its own."""

    name: str
    rtt_ms: float = 0.0


class SiteNode:
    """The one node of a site, a process of its own that may be killed and started again."""

    def __init__(self, site: Site, identity: Path, log: Path) -> None:
        self.site = site
        self._identity = identity
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None
        self._used = Used()

    def launch(self) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.site_node", str(self._identity)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                tethered(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to all that it runs, as when a machine loses its power."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, sign: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        family = self._family(process.pid)
        if sign is signal.SIGKILL:
            for one in family:
                _kill(one)
        else:
            process.send_signal(sign)
        _, alive = psutil.wait_procs(family[1:], timeout=_GONE_S)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GONE_S)
        for one in [*alive, *family[:1]]:
            _kill(one)
        process.wait(_GONE_S)

    def cpu_s(self) -> float:
        """CPU time of its Python, Java and Python workers so far."""
        return self._used.cpu_s([] if self.process is None else self._family(self.process.pid))

    @staticmethod
    def _family(pid: int) -> list[psutil.Process]:
        try:
            root = psutil.Process(pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class Sites:
    """All of it, below one directory. `close` ends everything that it has started, by its process id."""

    def __init__(self, directory: Path, sites: Iterable[Site]) -> None:
        """`sites`: all that may join; none has until `join`."""
        self.directory = directory
        self.sites = {site.name: site for site in sites}
        self.nodes: dict[str, SiteNode] = {}
        self._broker_used, self._centre_used = Used(), Used()
        halls = [site for site in self.sites.values() if site.rtt_ms]
        self._lay(halls)
        nearest_ms = min(site.rtt_ms for site in halls)
        for name, line in self.proxies.lines.items():
            line.delay(self.sites[name.split()[0]].rtt_ms or nearest_ms)

    def _lay(self, halls: list[Site]) -> None:
        """Ports for all, none twice: they are found free one after another, and listened on later."""
        ways = [(site.name, kind) for site in halls for kind in KINDS]
        ways += [(site.name, "node") for site in self.sites.values() if not site.rtt_ms]
        names = tuple(" ".join(way) for way in ways)
        while True:
            first = free_block(2 + len(halls) + len(self.sites))
            kafka_ports = dict(
                zip((site.name for site in halls), range(first + 2, first + 100), strict=False)
            )
            behind = range(first + 2 + len(halls), first + 200)
            self._node_ports = dict(zip(self.sites, behind, strict=False))
            environ = {"FOGLINE_TRIM_S": "0", "FOGLINE_RESTORE": "manual", "FOGLINE_SILENCE_S": "20"}
            environ["FOGLINE_LATENCY_MS"] = str(TARGET_MS)
            environ["FOGLINE_KAFKA"] = f"{_HOST}:{first}"
            fogline = RunningFogline(self.directory / "fogline", **environ)
            redis, central = (int(fogline.environ[f"FOGLINE_{name}_PORT"]) for name in ("REDIS", "CHUNK"))
            targets = tuple(
                {"kafka": kafka_ports.get(site, 0), "redis": redis, "central": central}.get(
                    kind, self._node_ports[site]
                )
                for site, kind in ways
            )
            self.proxies = Proxies(names, targets)
            taken = {*range(first, first + 2 + len(halls) + len(self.sites))}
            taken |= set(range(fogline.port, fogline.port + 5))
            expected = 2 + len(halls) + len(self.sites) + 5
            if len(taken) == expected and taken.isdisjoint(line.port for line in self.proxies.lines.values()):
                break
            self.proxies.close()
        told = {kafka_ports[site.name]: self.line(site.name, "kafka").port for site in halls}
        self.broker = Kafka(self.directory / "kafka", first, first + 1, advertised=told)
        self.fogline = fogline

    def line(self, site: str, kind: str) -> Any:
        return self.proxies.lines[f"{site} {kind}"]

    def start(self) -> None:
        self.broker.start()
        self.fogline.start()

    def close(self) -> None:
        for node in self.nodes.values():
            node.stop()
        self.fogline.stop()
        self.broker.stop()
        self.proxies.close()

    # -- nodes come and go ---------------------------------------------------------------------------

    def join(self, client: httpx.Client, *names: str) -> None:
        """Their nodes enrol by REST, as a machine does, start, and are ready."""
        for name in names:
            path = self._enrol(client, self.sites[name])
            self.nodes[name] = SiteNode(self.sites[name], path, self.directory / f"{name}.log")
            self.nodes[name].launch()
        for name in names:
            self.wait_ready(client, name)

    def wait_ready(self, client: httpx.Client, name: str) -> None:
        def ready() -> bool:
            process = self.nodes[name].process
            ended = process is None or process.poll() is not None
            assert not ended, f"{name} has ended, see {self.directory}"
            node = client.get(f"/api/v1/nodes/{name}").json()
            return bool(node["up"] and node["ready"])

        wait_until(ready, f"{name} to be ready", READY_S, look_every_s=1.0)

    def _enrol(self, client: httpx.Client, site: Site) -> Path:
        """Where its Identity lies, with the ports of its lines instead of those behind them."""
        invited = client.post("/api/v1/nodes", json={"name": site.name}).raise_for_status().json()
        port = self._node_ports[site.name]
        url = f"http://{_HOST}:{self.line(site.name, 'node').port}"
        body = {"name": site.name, "version": pipeline_runtime.__version__, "cores": 1, "url": url}
        body |= {"token": invited["token"]}
        admitted = client.post("/api/v1/nodes/enrol", json=body).raise_for_status().json()
        kafka, redis_url, central = self.broker.bootstrap, admitted["redis_url"], admitted["central_url"]
        if site.rtt_ms:
            kafka, redis_url, central = (
                kafka.replace(str(self.broker.port), str(self.line(site.name, "kafka").port)),
                _at_port(redis_url, self.line(site.name, "redis").port),
                _at_port(central, self.line(site.name, "central").port),
            )
        path = self.directory / f"{site.name}.json"
        identity = {
            "name": site.name,
            "directory": str(self.directory / site.name),
            "kafka": kafka,
            "redis_url": redis_url,
            "cluster_key": admitted["cluster_key"],
            "central_url": central,
            "listen_host": _HOST,
            "port": port,
            "url": url,
            "checkpoint_s": admitted["checkpoint_s"],
            "bytes_per_s": 25_000_000,  # FOGLINE_CHECKPOINT_MB_S, as it is unless it is set
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(identity))
        return path

    def tell(self, name: str, text: str) -> None:
        """What a node takes for its battery or CPU from now on, as `hall-1.battery`; see
        tests/told_load.py."""
        tell(self.directory / "told", name, text)

    # -- what is measured ----------------------------------------------------------------------------

    def counts(self) -> dict[str, Counts]:
        """Line ("hall-1 kafka") -> bytes so far. Up: towards the broker and the centre; of the line `node`:
        towards the node."""
        return {name: line.counts() for name, line in self.proxies.lines.items()}

    def cpu_s(self) -> dict[str, float]:
        """CPU time so far of each site's node, of the broker, and of all else of Fogline."""
        found = {name: node.cpu_s() for name, node in self.nodes.items()}
        assert self.broker.pid is not None
        found["broker"] = self._broker_used.cpu_s([psutil.Process(self.broker.pid)])
        supervisor = self.fogline.process
        assert supervisor is not None
        found["centre"] = self._centre_used.cpu_s([supervisor, *supervisor.children(recursive=True)])
        return found


@contextmanager
def running_sites(sites: Iterable[Site]) -> Iterator[Sites]:
    """The centre, up; its directory is gone afterwards unless something failed."""
    directory = Path(tempfile.mkdtemp(prefix="fogline-sites-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = Sites(directory, sites)
    try:
        try:
            found.start()
            yield found
        finally:
            found.close()
    except BaseException:
        print(f"logs are left in {directory}", file=sys.stderr)
        raise
    shutil.rmtree(directory, ignore_errors=True)


def _at_port(url: str, port: int) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
