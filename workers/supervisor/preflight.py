"""Checks before a start whether it would fail, and says why."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipeline_runtime.settings import Settings
from pipeline_runtime.spark.jars import JarsUnavailable, java_executable

_DISK_NEEDED_BYTES = 1 << 30
_MEMORY_ADVISED_BYTES = 6 << 30
_JAVA_MIN = 17
_CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Port:
    number: int
    host: str
    what: str
    setting: str  # the variable that changes it


def ports_of(settings: Settings) -> list[Port]:
    """Returns all ports on which a start with these settings listens."""
    local = "127.0.0.1"
    ports = [Port(settings.port, settings.host, "the web", "FOGLINE_PORT")]
    if settings.kafka_embedded:
        ports.append(Port(settings.kafka_port, local, "Kafka", "FOGLINE_KAFKA_PORT"))
        ports.append(Port(settings.kafka_port + 1, local, "Kafka's controller", "FOGLINE_KAFKA_PORT"))
    if settings.redis_embedded:
        ports.append(Port(settings.redis_port, local, "Redis", "FOGLINE_REDIS_PORT"))
    ports.append(Port(settings.chunk_port, settings.host, "the checkpoint service", "FOGLINE_CHUNK_PORT"))
    ports += [
        Port(settings.local_node_port(name), settings.host, f"node {name}", "FOGLINE_NODE_PORT")
        for name in settings.nodes
    ]
    return ports


def faults(settings: Settings) -> list[str]:
    """Returns every reason why a start cannot work, as a line for the user. It is empty if there is none."""
    found = [
        *java_faults(),
        *disk_faults(settings.data, _DISK_NEEDED_BYTES),
        *port_faults(ports_of(settings)),
    ]
    if not settings.kafka_embedded:
        found += kafka_faults(settings.kafka)
    return found


def told(code: str, text: str) -> str:
    """Returns the line for the user, with the page that says more."""
    return f"{text} See docs/errors/{code}.md."


def warnings(settings: Settings) -> list[str]:
    total = psutil.virtual_memory().total
    if settings.nodes and total < _MEMORY_ADVISED_BYTES:
        return [
            f"This machine has {total / 2**30:.1f} GiB of memory. {len(settings.nodes)} nodes with Kafka"
            f" should have {_MEMORY_ADVISED_BYTES >> 30} GiB. To start fewer nodes, set FOGLINE_NODES=edge-a."
        ]
    return []


def port_faults(ports: Iterable[Port]) -> list[str]:
    found, seen = [], dict[int, Port]()
    for port in ports:
        twin = seen.setdefault(port.number, port)
        if twin is not port:
            found.append(
                told(
                    "port-taken",
                    f"Port {port.number} is given twice:"
                    f" to {twin.what} ({twin.setting}) and to {port.what} ({port.setting}).",
                )
            )
        elif (error := _bind_error(port)) is not None:
            holder = _holder(port.number)
            found.append(
                told(
                    "port-taken",
                    f"Port {port.number} for {port.what} {error}{f': {holder} has it' if holder else ''}."
                    f" Stop that, or choose another port with {port.setting}.",
                )
            )
    return found


def disk_faults(data: Path, needed_bytes: int) -> list[str]:
    free = shutil.disk_usage(data).free
    if free >= needed_bytes:
        return []
    return [
        told(
            "disk-full",
            f"The disk of {data} has {free / 2**20:.0f} MiB free, and {needed_bytes / 2**20:.0f} MiB are "
            "needed. Free some, or set FOGLINE_DATA to another disk.",
        )
    ]


def _bind_error(port: Port) -> str | None:
    family = socket.AF_INET6 if ":" in port.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((port.host, port.number))
            probe.listen()
        except PermissionError:
            return "needs more rights than this user has"
        except OSError as error:
            return "is taken" if error.errno == 98 else f"on {port.host} cannot be used ({error.strerror})"
    return None


def _holder(port: int) -> str | None:
    """Returns which process listens on the port, if this user may know."""
    try:
        for connection in psutil.net_connections("inet"):
            if connection.status != psutil.CONN_LISTEN or connection.pid is None or not connection.laddr:
                continue
            if connection.laddr.port == port:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass
    return None


def java_faults() -> list[str]:
    advice = f"Install Java {_JAVA_MIN} or newer (Debian: apt-get install openjdk-17-jre-headless)."
    try:
        java = java_executable()
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (JarsUnavailable, OSError, subprocess.TimeoutExpired):
        return [told("java-missing", f"Java is missing. {advice}")]
    version = re.search(r'version "(\d+)', done.stderr)
    if version is None or int(version[1]) < _JAVA_MIN:
        version_line = done.stderr.splitlines()[0] if done.stderr else "unknown"
        return [told("java-missing", f"{java} is too old ({version_line}). {advice}")]
    return []


def kafka_faults(bootstrap: str) -> list[str]:
    reasons = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT_S):
                return []
        except (OSError, ValueError) as error:
            reasons.append(f"{address.strip()} ({error})")
    return [told("kafka-away", f"No broker of FOGLINE_KAFKA answers: {', '.join(reasons)}.")]
