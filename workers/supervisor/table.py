"""The table of processes: what `make up` runs, in which order, and how each process is known to be ready."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import redis

from pipeline_runtime.settings import Settings
from pipeline_runtime.wire.keys import REPORT_FIELD, REPORTS_STREAM
from pipeline_runtime.wire.reports import json_of
from workers.supervisor.processes import ProcessSpec
from workers.supervisor.services import Kafka, Redis, Service

PROJECT = Path(__file__).resolve().parents[2]
_REPORTS_LOOKED_AT = 200
_NODES, _CONTROL, _WEB, _REDIS, _KAFKA = range(5)  # the order of stopping


def stages(settings: Settings, login: Callable[[str], None]) -> list[list[ProcessSpec]]:
    """Returns the stages: services and database, then our own processes, then the demo.

    `login` gets what `manage.py ensure_admin` prints: JSON {username, password | null, created}.
    """
    environment = _environment(settings)
    manage = partial(_manage, environment)
    foundation = [manage("migrate", "Database", "migrate", "--noinput", "--verbosity", "0")]
    if settings.kafka_embedded:
        foundation.append(_service(Kafka(settings.data / "kafka", settings.kafka_port), "Kafka", _KAFKA))
    if settings.redis_embedded:
        foundation.append(_service(_redis(settings), "Redis", _REDIS))
    ours = [
        manage("admin", "Accounts", "ensure_admin", capture=login),
        _web(settings, environment),
        _control(settings, environment),
        *(_node(settings, environment, name) for name in settings.nodes),
    ]
    demo = [manage("demo", "Demo pipeline", "demo", essential=False)] if settings.demo else []
    return [stage for stage in (foundation, ours, demo) if stage]


def names(table: list[list[ProcessSpec]]) -> tuple[str, ...]:
    return tuple(spec.name for stage in table for spec in stage)


def _environment(settings: Settings) -> dict[str, str]:
    # Absolute, so that it does not matter in which directory a child works.
    return {"FOGLINE_DATA": str(settings.data), "DJANGO_SETTINGS_MODULE": "webapp.config.settings"}


def _python(*arguments: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, *arguments]


def _manage(
    environment: dict[str, str],
    name: str,
    title: str,
    *arguments: str,
    capture: Callable[[str], None] | None = None,
    essential: bool = True,
) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        title=title,
        # Django's checks are for developers. Tests run them, and they import all of the web.
        command=_python("manage.py", *arguments, "--skip-checks"),
        environment=environment,
        once=True,
        capture=capture,
        essential=essential,
    )


def _redis(settings: Settings) -> Redis:
    password = urlsplit(settings.redis_url).password or ""
    return Redis(settings.data / "redis", settings.redis_port, password)


def _service(service: Service, title: str, stop_rank: int) -> ProcessSpec:
    return ProcessSpec(
        name=service.name,
        title=title,
        prepare=service.prepare,
        command=service.command,
        ready=lambda _: service.ready(),
        stop_rank=stop_rank,
        stop_timeout_s=service.stop_timeout_s,
    )


def _web(settings: Settings, environment: dict[str, str]) -> ProcessSpec:
    command = ["-m", "uvicorn", "webapp.config.asgi:application"]
    command += ["--host", settings.host, "--port", str(settings.port), "--lifespan", "off"]
    command += ["--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "5"]
    if not settings.https:
        # Without a proxy, a caller could set X-Forwarded-For, and so get around the lock of sign-in.
        command.append("--no-proxy-headers")
    return ProcessSpec(
        name="web",
        title="Web",
        command=_python(*command),
        environment=environment,
        ready=lambda _: answers(settings.local_host, settings.port, "/readyz"),
        stop_rank=_WEB,
    )


def _control(settings: Settings, environment: dict[str, str]) -> ProcessSpec:
    return ProcessSpec(
        name="control",
        title="Control",
        command=_python("-m", "workers.control"),
        environment=environment,
        ready=lambda _: answers(settings.local_host, settings.chunk_port, "/health"),
        stop_rank=_CONTROL,
    )


def _node(settings: Settings, environment: dict[str, str], name: str) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        title=f"Node {name}",
        command=_python("-m", "workers.node", "--name", name),
        # All nodes of this machine stop together, so none of them can take over from another.
        environment={**environment, "FOGLINE_NODE": name, "FOGLINE_LEAVE_S": "0"},
        ready=lambda started_at_s: reported_ready(settings.redis_url, name, started_at_s),
        essential=False,  # a node that does not come up leaves the others usable
        stop_rank=_NODES,
    )


def answers(host: str, port: int, path: str) -> bool:
    """Returns whether a GET is answered with 200."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def reported_ready(redis_url: str, node: str, since_s: float) -> bool:
    """Returns whether the node has reported since then that its Spark session is up."""
    try:
        with redis.Redis.from_url(redis_url, socket_timeout=5, socket_connect_timeout=5) as client:
            entries = client.xrevrange(REPORTS_STREAM, count=_REPORTS_LOOKED_AT)
    except redis.RedisError:
        return False
    reports = (json.loads(json_of(fields[REPORT_FIELD])) for _, fields in entries)
    return any(
        report["node"] == node and report["ready"] and report["at_ms"] >= since_s * 1000 for report in reports
    )
