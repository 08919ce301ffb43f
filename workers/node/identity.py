"""The identity of this node, and the services that it talks to: from the settings (a local node) or by
enrolment (a machine)."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from pipeline_runtime import __version__
from pipeline_runtime.checkpoint.retention import ON_NODES, Retention
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.settings import Settings

CREDENTIAL_FILE = "credential.json"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class EnrolmentFailed(RuntimeError):
    """The machine was not admitted. The message says why, what is safe and what to do."""


@dataclass(frozen=True)
class Identity:
    name: str
    directory: Path
    kafka: KafkaSettings
    redis_url: str
    cluster_key: str
    central_url: str  # at which this node reaches the central store
    listen_host: str
    port: int  # of this node's chunk service; without `port_fixed`, the first one to try
    url: str  # at which others reach that service
    checkpoint_s: float
    checkpoint_batches: int = 0
    kept: Retention = ON_NODES  # checkpoints on this node
    bytes_per_s: int | None = None  # the limit for sending checkpoints
    reserve_bytes: int = 0  # free disk that checkpoints leave
    unused_bytes: int = 0  # of files that nothing here reads, and that are kept all the same
    batch_s: float = 600.0  # the longest that a batch may take
    leave_s: float = 0.0  # time to hand over what it owns when it is told to stop
    heartbeat_s: float = 1.0  # control's detector relies on this
    port_fixed: bool = True  # somebody chose the port

    def at_port(self, port: int) -> Identity:
        """Returns the same node with that port for its chunk service, and keeps it for the next start."""
        url = urlsplit(self.url)
        url = url._replace(netloc=f"{url.netloc.rpartition(':')[0]}:{port}")
        path = self.directory / CREDENTIAL_FILE
        if path.exists():
            _write_private(path, json.dumps({**json.loads(path.read_text()), "url": url.geturl()}, indent=2))
        return replace(self, port=port, url=url.geturl())


def local_identity(name: str, settings: Settings) -> Identity:
    """Returns the identity of a node on the machine where everything else runs, from the settings."""
    port = settings.local_node_port(name)
    host = "127.0.0.1" if settings.host in LOOPBACK else settings.host
    shown = _own_address("192.0.2.1") if host in ("0.0.0.0", "::") else host
    return Identity(
        name=name,
        directory=settings.node_directory(name),
        kafka=KafkaSettings(settings.kafka, dict(settings.kafka_security)),
        redis_url=settings.redis_url,
        cluster_key=settings.cluster_key,
        central_url=settings.chunk_url,
        listen_host=host,
        port=port,
        url=f"http://{shown}:{port}",
        port_fixed=settings.node_port_named or name in settings.nodes,
        checkpoint_s=settings.checkpoint_s,
        checkpoint_batches=settings.checkpoint_batches,
        kept=Retention(settings.node_checkpoints_kept, settings.node_checkpoints_hours),
        **_limits(settings),
    )


def _limits(settings: Settings) -> dict[str, Any]:
    """Returns what depends on this machine: network, disk, and how it is stopped.

    Its own environment says it, also after the machine has joined.
    """
    return {
        "batch_s": settings.batch_s,
        "leave_s": settings.leave_s,
        "bytes_per_s": int(settings.checkpoint_mb_s * 1_000_000) or None,
        "reserve_bytes": settings.disk_reserve_mb * 1_000_000,
        "unused_bytes": settings.node_files_mb * 1_000_000,
    }


def enrol(server: str, token: str, name: str, settings: Settings) -> None:
    """Asks the dashboard to admit this machine, and keeps the answer in credential.json (0600).

    The token works once. A machine that has joined is started without it afterwards.
    """
    host = urlsplit(server).hostname or ""
    body = {
        "name": name,
        "version": __version__,
        "cores": os.cpu_count() or 1,
        "url": f"http://{_own_address(host)}:{settings.local_node_port(name)}",
    }
    bearer = {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx.post(f"{server.rstrip('/')}/api/v1/nodes/enrol", json=body, headers=bearer, timeout=30)
    except httpx.HTTPError as error:
        raise EnrolmentFailed(
            f"{server} cannot be reached: {error}. The token was not used. Check the address, then try again."
        ) from error
    if not answer.is_success:
        raise EnrolmentFailed(_explained(answer))
    document = {**answer.json(), "url": body["url"], "port_fixed": settings.node_port_named}
    _write_private(settings.node_directory(name) / CREDENTIAL_FILE, json.dumps(document, indent=2))


def enrolled_identity(name: str, settings: Settings) -> Identity | None:
    """Returns what credential.json says.

    Returns None if this machine did not join: the settings say it then.
    """
    path = settings.node_directory(name) / CREDENTIAL_FILE
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    url = str(document["url"])
    identity = Identity(
        name=name,
        directory=settings.node_directory(name),
        kafka=KafkaSettings(document["kafka"]["bootstrap"], dict(document["kafka"]["security"])),
        redis_url=document["redis_url"],
        cluster_key=document["cluster_key"],
        central_url=document["central_url"],
        listen_host="127.0.0.1" if urlsplit(url).hostname in LOOPBACK else "0.0.0.0",
        port=urlsplit(url).port or settings.local_node_port(name),
        url=url,
        port_fixed=bool(document["port_fixed"]),
        checkpoint_s=float(document["checkpoint_s"]),
        checkpoint_batches=int(document["checkpoint_batches"]),
        kept=Retention(int(document["checkpoints_kept"]), int(document["checkpoints_hours"])),
        **_limits(settings),
    )
    if not settings.node_port_named or identity.port == settings.node_port:
        return identity
    return replace(identity.at_port(settings.node_port), port_fixed=True)


def _own_address(peer: str) -> str:
    """Returns the address from which this machine reaches `peer`. Nothing is sent."""
    if peer in LOOPBACK:
        return "127.0.0.1"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((peer, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _explained(answer: httpx.Response) -> str:
    try:
        problem: dict[str, Any] = answer.json()
    except ValueError:
        return f"The dashboard answered {answer.status_code}. Check that the address is Fogline's."
    parts = [problem.get("detail") or problem.get("title"), problem.get("safe"), problem.get("next")]
    return " ".join(str(part) for part in parts if part)


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
