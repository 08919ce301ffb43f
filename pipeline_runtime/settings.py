"""Everything that the environment decides, read once: `Settings.from_env()`.

| variable | default | |
|---|---|---|
| FOGLINE_DATA | ./.fogline | data directory; everything that Fogline keeps is below it |
| FOGLINE_HOST, FOGLINE_PORT | 127.0.0.1, 8000 | where the web listens |
| FOGLINE_HTTPS | 0 | 1: a proxy in front of the web speaks TLS; cookies become secure, HSTS is sent |
| FOGLINE_UPLOAD_BYTES_MAX | 1073741824 | bytes of the largest data file that may be uploaded |
| FOGLINE_KAFKA | (embedded) | bootstrap servers of an existing Kafka |
| FOGLINE_KAFKA_PORT | 19092 | of the embedded Kafka; its controller takes the next port |
| FOGLINE_KAFKA_SECURITY | {} | JSON object of kafka-python arguments: security_protocol, sasl_*, ssl_* |
| REDIS_URL | (embedded) | an existing Redis |
| FOGLINE_REDIS_PORT | 16379 | of the embedded Redis |
| DATABASE_URL | SQLite in FOGLINE_DATA | e.g. postgres://user:password@host/name |
| FOGLINE_SECRET_KEY, FOGLINE_CLUSTER_KEY | generated once | else kept in FOGLINE_DATA/secrets.json (0600) |
| FOGLINE_NODES | edge-a,edge-b,cloud | nodes that the supervisor starts here; may be empty |
| FOGLINE_CHUNK_PORT | 18100 | the central chunk service |
| FOGLINE_NODE_PORT | 18110 | first local node's chunk service, then the others. Of another node: its own; not
named, the first free one behind those |
| FOGLINE_NODE | | a node process's own name |
| FOGLINE_SILENCE_S | 3 | a node that is silent for so long counts as down |
| FOGLINE_RESTORE | auto | what a silent node ran is restored elsewhere: auto, or manual (by a person) |
| FOGLINE_STANDBY_S | 600 | how long the old owner stays a standby after a live migration; 0: not at all |
| FOGLINE_CHECKPOINT_S | 5 | how often a checkpoint leaves the node |
| FOGLINE_CHECKPOINT_BATCHES | 0 | also after so many batches; 0: by time alone |
| FOGLINE_CHECKPOINTS_KEPT, FOGLINE_CHECKPOINTS_HOURS | 5, 24 | centrally: so many, and one of each hour |
| FOGLINE_NODE_CHECKPOINTS_KEPT, FOGLINE_NODE_CHECKPOINTS_HOURS | 3, 0 | the same on each node |
| FOGLINE_CHECKPOINT_MB_S | 25 | megabytes per second that a node spends on sending them; 0: no limit |
| FOGLINE_DISK_RESERVE_MB | 256 | free disk that checkpoints leave to everything else |
| FOGLINE_TRIM_S | 600 | how often journals and streams are trimmed behind them; 0: never |
| FOGLINE_LOG | INFO | log level |
| FOGLINE_DEMO | 1 | deploy the demo pipeline when there is no pipeline yet |
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

_T = TypeVar("_T")
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_SECRET = ("FOGLINE_KAFKA_SECURITY",)  # what is wrong with it is said without it
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class SettingsError(ValueError):
    """The environment cannot be used. `faults` has one line per variable, all of them."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class Settings:
    """See the module's table. Times end in `_s`, ports are on `host` or on 127.0.0.1."""

    data: Path
    host: str
    port: int
    https: bool
    upload_bytes_max: int
    kafka: str  # bootstrap servers, never empty
    kafka_embedded: bool
    kafka_port: int
    kafka_security: Mapping[str, Any] = field(repr=False)
    redis_url: str = field(repr=False)  # may hold a password
    redis_embedded: bool
    redis_port: int
    database_url: str = field(repr=False)  # may hold a password
    secret_key: str = field(repr=False)
    cluster_key: str = field(repr=False)
    nodes: tuple[str, ...]
    chunk_port: int
    node_port: int
    node_port_named: bool  # by the environment
    node: str | None
    silence_s: float
    restore: str  # "auto" | "manual"
    standby_s: float
    checkpoint_s: float
    checkpoint_batches: int  # 0: by time alone
    checkpoints_kept: int
    checkpoints_hours: int
    node_checkpoints_kept: int
    node_checkpoints_hours: int
    checkpoint_mb_s: float  # 0: no limit
    disk_reserve_mb: int
    trim_s: float  # 0: never
    log: str
    demo: bool

    @property
    def chunk_url(self) -> str:
        """Of the central chunk service, as processes on this machine reach it."""
        return f"http://{bracketed(self.local_host)}:{self.chunk_port}"

    @property
    def web_url(self) -> str:
        """Of the dashboard, as a browser on this machine reaches it."""
        return f"http://{bracketed(self.local_host)}:{self.port}"

    @property
    def local_host(self) -> str:
        """The address by which this machine reaches what listens on `host`."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    def node_directory(self, name: str) -> Path:
        """All that the node `name` keeps on this machine."""
        return self.data / "nodes" / name

    def local_node_port(self, name: str) -> int:
        """Of the chunk service of a node in FOGLINE_NODES. Of any other node: FOGLINE_NODE_PORT itself, or,
        when that is not named, the port from which on a free one is looked for."""
        if name in self.nodes:
            return self.node_port + self.nodes.index(name)
        return self.node_port if self.node_port_named else self.node_port + len(self.nodes)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Reads the environment; creates FOGLINE_DATA and its secrets when they are missing.

        Raises SettingsError with every fault, before anything is created.
        """
        reader = _Reader(os.environ if environ is None else environ)
        data = Path(reader.text("FOGLINE_DATA", ".fogline")).expanduser().absolute()
        kafka_port = reader.port("FOGLINE_KAFKA_PORT", 19092, ports=2)
        redis_port = reader.port("FOGLINE_REDIS_PORT", 16379)
        kafka, redis_url = reader.text("FOGLINE_KAFKA", ""), reader.text("REDIS_URL", "")
        nodes = reader.read("FOGLINE_NODES", "edge-a,edge-b,cloud", _node_names)
        values: dict[str, Any] = {
            "data": data,
            "host": reader.text("FOGLINE_HOST", "127.0.0.1"),
            "port": reader.port("FOGLINE_PORT", 8000),
            "https": reader.read("FOGLINE_HTTPS", "0", _switch),
            "upload_bytes_max": reader.read("FOGLINE_UPLOAD_BYTES_MAX", str(1 << 30), _bytes),
            "kafka": kafka or f"127.0.0.1:{kafka_port}",
            "kafka_embedded": not kafka,
            "kafka_port": kafka_port,
            "kafka_security": reader.read("FOGLINE_KAFKA_SECURITY", "{}", _json_object),
            "redis_embedded": not redis_url,
            "redis_port": redis_port,
            "database_url": reader.text("DATABASE_URL", f"sqlite:///{data / 'fogline.sqlite3'}"),
            "nodes": nodes,
            "chunk_port": reader.port("FOGLINE_CHUNK_PORT", 18100),
            "node_port": reader.port("FOGLINE_NODE_PORT", 18110, ports=max(1, len(nodes or ()))),
            "node_port_named": bool(reader.text("FOGLINE_NODE_PORT", "")),
            "node": reader.read("FOGLINE_NODE", "", _optional_node_name),
            "silence_s": reader.read("FOGLINE_SILENCE_S", "3", _positive_seconds),
            "restore": reader.read("FOGLINE_RESTORE", "auto", _auto_or_manual),
            "standby_s": reader.read("FOGLINE_STANDBY_S", "600", _seconds),
            "checkpoint_s": reader.read("FOGLINE_CHECKPOINT_S", "5", _positive_seconds),
            "checkpoint_batches": reader.read("FOGLINE_CHECKPOINT_BATCHES", "0", _count),
            "checkpoints_kept": reader.read("FOGLINE_CHECKPOINTS_KEPT", "5", _positive_count),
            "checkpoints_hours": reader.read("FOGLINE_CHECKPOINTS_HOURS", "24", _count),
            "node_checkpoints_kept": reader.read("FOGLINE_NODE_CHECKPOINTS_KEPT", "3", _positive_count),
            "node_checkpoints_hours": reader.read("FOGLINE_NODE_CHECKPOINTS_HOURS", "0", _count),
            "checkpoint_mb_s": reader.read("FOGLINE_CHECKPOINT_MB_S", "25", _amount),
            "disk_reserve_mb": reader.read("FOGLINE_DISK_RESERVE_MB", "256", _count),
            "trim_s": reader.read("FOGLINE_TRIM_S", "600", _amount),
            "log": reader.read("FOGLINE_LOG", "INFO", _log_level),
            "demo": reader.read("FOGLINE_DEMO", "1", _switch),
        }
        if reader.faults:
            raise SettingsError(reader.faults)
        given = {name: reader.text(f"FOGLINE_{name.upper()}", "") for name in ("secret_key", "cluster_key")}
        kept = {} if all(given.values()) else _kept_secrets(data)
        values |= {name: value or kept[name] for name, value in given.items()}
        values["redis_url"] = redis_url or _embedded_redis(redis_port, values["cluster_key"])
        return cls(**values)


def bracketed(host: str) -> str:
    """As it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


class _Reader:
    """Reads variables and collects the faults, so that the user sees all of them at once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[str] = []

    def text(self, name: str, default: str) -> str:
        return self._environ.get(name, "").strip() or default

    def read(self, name: str, default: str, parse: Callable[[str], _T]) -> _T | None:
        # An empty FOGLINE_NODES means "none here"; for all others, empty means the default.
        raw = self._environ.get(name)
        value = default if raw is None or (not raw.strip() and name != "FOGLINE_NODES") else raw.strip()
        try:
            return parse(value)
        except ValueError as error:
            shown = "(not shown)" if name in _SECRET else repr(value)
            self.faults.append(f"{name}={shown}: {error}")
            return None

    def port(self, name: str, default: int, ports: int = 1) -> int:
        def parse(value: str) -> int:
            if not value.isdecimal() or not 1 <= int(value) <= 65536 - ports:
                raise ValueError(f"must be a port from 1 to {65536 - ports}")
            return int(value)

        return self.read(name, str(default), parse) or default


def _node_name(value: str) -> str:
    if not NODE_NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no node name: up to 40 lower-case letters, digits and inner hyphens")
    return value


def _optional_node_name(value: str) -> str | None:
    return _node_name(value) if value else None


def _node_names(value: str) -> tuple[str, ...]:
    names = tuple(_node_name(name.strip()) for name in value.split(",") if name.strip())
    if len(set(names)) != len(names):
        raise ValueError("a name is given twice")
    return names


def _json_object(value: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"must be a JSON object ({error})") from None
    if not isinstance(parsed, dict):
        raise ValueError("must be a JSON object")
    return parsed


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        raise ValueError("must be a number of seconds") from None
    if not 0 <= seconds < float("inf"):
        raise ValueError("must be a number of seconds, 0 or more")
    return seconds


def _positive_seconds(value: str) -> float:
    seconds = _seconds(value)
    if seconds == 0:
        raise ValueError("must be a positive number of seconds")
    return seconds


def _auto_or_manual(value: str) -> str:
    if value.lower() not in ("auto", "manual"):
        raise ValueError("must be auto or manual")
    return value.lower()


def _amount(value: str) -> float:
    try:
        amount = float(value)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= amount < float("inf"):
        raise ValueError("must be 0 or more")
    return amount


def _count(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("must be a whole number, 0 or more")
    return int(value)


def _positive_count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError("must be a whole number, 1 or more: the newest one is always kept")
    return int(value)


def _bytes(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError("must be a whole number of bytes, such as 1073741824")
    return int(value)


def _log_level(value: str) -> str:
    if value.upper() not in _LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(_LOG_LEVELS)}")
    return value.upper()


def _switch(value: str) -> bool:
    if value.lower() not in ("0", "1", "false", "true", "no", "yes"):
        raise ValueError("must be 0 or 1")
    return value.lower() in ("1", "true", "yes")


def _embedded_redis(port: int, cluster_key: str) -> str:
    password = hmac.new(cluster_key.encode(), b"embedded redis", "sha256").hexdigest()
    return f"redis://:{password}@127.0.0.1:{port}/0"


def _kept_secrets(data: Path) -> dict[str, str]:
    """The secrets of this data directory, made at the first call.

    Several processes may call this at the same time: link() lets exactly one of their files in.
    """
    path = data / "secrets.json"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        draft = data / f".secrets-{os.getpid()}-{secrets.token_hex(4)}"
        fresh = {name: secrets.token_urlsafe(48) for name in ("secret_key", "cluster_key")}
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(fresh, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first: its secrets are the ones
        finally:
            draft.unlink()
    try:
        kept = json.loads(path.read_text())
        return {name: str(kept[name]) for name in ("secret_key", "cluster_key")}
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            [
                f"{path} is damaged: restore it from a backup, or delete it"
                " (then sessions and the nodes' tokens become invalid)"
            ]
        ) from None
