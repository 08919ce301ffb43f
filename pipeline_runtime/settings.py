"""Everything that the environment decides, read once: `Settings.from_env()`.

A setting is the variable FOGLINE_<NAME>, except REDIS_URL and DATABASE_URL.
An empty variable counts as not given.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_SECRET = ("kafka_security", "redis_url", "database_url", "secret_key", "cluster_key", "metrics_token")


class SettingsError(ValueError):
    """The environment cannot be used. `faults` has one line per variable, all of them."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


def _node_name(value: str) -> str:
    if not NODE_NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no node name: up to 40 lower-case letters, digits and inner hyphens")
    return value


def _listed(value: Any) -> Any:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _without_repetition(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError("a name is given twice")
    return names


def _json_object(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"must be a JSON object ({error})") from None
    if not isinstance(parsed, dict):
        raise ValueError("must be a JSON object")
    return parsed


_Port = Annotated[int, Field(ge=1, le=65535)]
_PortOfTwo = Annotated[int, Field(ge=1, le=65534)]
_NodeName = Annotated[str, AfterValidator(_node_name)]
_NodeNames = Annotated[
    tuple[_NodeName, ...], NoDecode, BeforeValidator(_listed), AfterValidator(_without_repetition)
]
_Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
_JsonObject = Annotated[Mapping[str, Any], NoDecode, BeforeValidator(_json_object)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_PositiveAmount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Times end in `_s` and are in seconds; ports are on `host` or on 127.0.0.1.

    A field's docstring is its description in docs/reference/settings.md: run `make reference` after a change.
    """

    model_config = SettingsConfigDict(env_prefix="FOGLINE_", frozen=True, validate_default=True)

    data: Path = Path(".fogline")
    """The directory that holds everything Fogline keeps. Only the Java libraries that it fetches lie
    elsewhere, in `${XDG_CACHE_HOME:-~/.cache}/fogline/jars`."""

    host: str = "127.0.0.1"
    """The address on which the dashboard listens. `0.0.0.0` lets other machines reach it."""
    port: _Port = 8000
    """The port of the dashboard."""
    allowed_hosts: _Names = ()
    """Further host names under which the dashboard is reached, separated by commas. This machine's own names
    are always allowed."""
    https: bool = False
    """Set it to 1 when a proxy in front of the dashboard speaks TLS. Cookies are then sent over HTTPS only,
    and browsers are told to stay with HTTPS. Name a proxy on another machine in uvicorn's
    `FORWARDED_ALLOW_IPS`."""
    public_url: Annotated[str, Field(pattern=r"^(https?://[^\s/?#]+)?$", max_length=200)] = ""
    """The address under which people reach the dashboard, such as `https://fogline.example.org`. Links in
    messages about alarms begin with it. Without one, they lead to this machine."""
    metrics_token: str = Field("", repr=False)
    """The bearer token with which other machines may read `/metrics`. Without one, only this machine may."""
    upload_bytes_max: PositiveInt = 1 << 30
    """The size of the largest data file that may be uploaded, in bytes."""
    secret_key: str = Field("", repr=False)
    """The key that signs sessions. Without one, Fogline makes it once and keeps it in `secrets.json` in
    `FOGLINE_DATA`."""
    cluster_key: str = Field("", repr=False)
    """The key with which the processes of one installation trust each other. Without one, Fogline makes it
    once and keeps it in `secrets.json` in `FOGLINE_DATA`."""
    demo: bool = True
    """Whether the demo pipeline is deployed when there is no pipeline yet."""
    log: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(str.upper)] = (
        "INFO"
    )
    """The least severe messages that are logged: DEBUG, INFO, WARNING, ERROR or CRITICAL."""

    kafka_port: _PortOfTwo = 19092
    """The port of the Kafka that Fogline starts itself. Its controller takes the next port."""
    kafka: str = Field(default_factory=lambda known: f"127.0.0.1:{known.get('kafka_port')}")
    """The bootstrap servers of your own Kafka, separated by commas. Fogline then starts none."""
    kafka_security: _JsonObject = Field({}, repr=False)
    """How to sign in at your own Kafka: a JSON object of kafka-python's arguments, such as
    `security_protocol`, `sasl_mechanism` or `ssl_cafile`."""
    redis_port: _Port = 16379
    """The port of the Redis that Fogline starts itself."""
    redis_url: str = Field(
        default_factory=lambda known: _embedded_redis(known.get("redis_port"), known.get("cluster_key", "")),
        validation_alias=AliasChoices("REDIS_URL"),
        repr=False,
    )
    """The address of your own Redis, such as `redis://:password@host:6379/0`. Fogline then starts none."""
    database_url: str = Field(
        default_factory=lambda known: f"sqlite:///{known.get('data')}/fogline.sqlite3",
        validation_alias=AliasChoices("DATABASE_URL"),
        repr=False,
    )
    """The address of your own PostgreSQL, such as `postgres://user:password@host/name`."""

    nodes: _NodeNames = ("edge-a", "edge-b", "cloud")
    """The nodes that run on this machine, separated by commas. It may be empty: then none does."""
    node: _NodeName | None = None
    """The name of one node's process. `--name` sets it; you need not."""
    chunk_port: _Port = 18100
    """The port of the central checkpoint service."""
    node_port: _Port = 18110
    """The port of the first local node's checkpoint service. The other nodes of this machine take the ports
    after it. A node that joins from another machine takes the first free port behind those, or exactly this
    one where it is set."""
    leave_s: _Amount = 60
    """How many seconds a node that is told to stop may go on, to hand over what it owns. With 0 it ends at
    once, as every node of `make up` does."""

    silence_s: _PositiveAmount = 3
    """A node counts as down after this many seconds without a report. Below 2.6, a short break of Redis may
    be taken for it."""
    restore: Annotated[Literal["auto", "manual"], BeforeValidator(str.lower)] = "auto"
    """What happens to the elements of a node that is down: `auto` restores them on other nodes, `manual`
    leaves that to people."""
    standby_s: _Amount = 600
    """How many seconds the old owner stays a standby after a live migration. With 0 it stops at once."""

    latency_ms: Annotated[int, Field(ge=5, le=600_000)] = 500
    """The latency target of elements that set none, in milliseconds from 5 to 600,000: this soon after a row
    arrives, its results are out."""

    batch_s: Annotated[float, Field(ge=10, le=86_400)] = 600
    """The longest that a batch of an element may take, in seconds from 10 to 86,400. The element then fails,
    and what ran its batch is ended. The time in which Kafka does not answer does not count."""

    checkpoint_s: _PositiveAmount = 5
    """How many seconds lie between two checkpoints that leave the node."""
    checkpoint_batches: NonNegativeInt = 0
    """A checkpoint also leaves the node after this many batches. With 0 only the time counts."""
    checkpoints_kept: PositiveInt = 5
    """How many of the newest checkpoints of each group the central service keeps."""
    checkpoints_hours: NonNegativeInt = 24
    """For how many past hours the central service keeps one checkpoint of each hour as well."""
    node_checkpoints_kept: PositiveInt = 3
    """How many of the newest checkpoints of each group a node keeps."""
    node_checkpoints_hours: NonNegativeInt = 0
    """For how many past hours a node keeps one checkpoint of each hour as well."""
    checkpoint_mb_s: _Amount = 25
    """How many megabytes per second a node may spend on sending checkpoints. With 0 there is no limit."""
    disk_reserve_mb: NonNegativeInt = 256
    """How many megabytes of free disk checkpoints leave to everything else."""
    node_files_mb: NonNegativeInt = 2000
    """How many megabytes of files that none of its elements reads any more a node keeps, so that it need not
    fetch them again. The least recently used are deleted first. With 0 none is kept."""
    trim_s: _Amount = 600
    """How many seconds lie between two trimmings of journals and streams behind the oldest checkpoint. With 0
    they are never trimmed."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Reads the environment; creates `data` and its secrets when they are missing.

        Raises SettingsError with every fault, before anything is created.
        """
        given = dict(os.environ if environ is None else environ)
        read = cls._read(given)
        if read.secret_key and read.cluster_key:
            return read
        kept = _kept_secrets(read.data)
        return cls._read(
            given
            | {
                "FOGLINE_SECRET_KEY": read.secret_key or kept["secret_key"],
                "FOGLINE_CLUSTER_KEY": read.cluster_key or kept["cluster_key"],
            }
        )

    @classmethod
    def _read(cls, environ: Mapping[str, str]) -> Self:
        source = EnvSettingsSource(cls)
        source.env_vars = {name.lower(): value for name, value in environ.items()}
        try:
            return cls(**source())
        except ValidationError as error:
            raise SettingsError(_faults(error)) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Takes what `from_env` has read, and nothing else from the process's environment."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Drops empty variables. FOGLINE_NODES stays: empty, it means that no node runs here."""
        stripped = {name: v.strip() if isinstance(v, str) else v for name, v in values.items()}
        return {name: value for name, value in stripped.items() if value != "" or name == "nodes"}

    @field_validator("data")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("node_port")
    @classmethod
    def _room_for_all(cls, port: int, info: ValidationInfo) -> int:
        last = 65536 - max(1, len(info.data.get("nodes", ())))
        if port > last:
            raise ValueError(f"must be a port from 1 to {last}: each node on this machine has one")
        return port

    @property
    def kafka_embedded(self) -> bool:
        return "kafka" not in self.model_fields_set

    @property
    def redis_embedded(self) -> bool:
        return "redis_url" not in self.model_fields_set

    @property
    def node_port_named(self) -> bool:
        """Whether the environment names it."""
        return "node_port" in self.model_fields_set

    @property
    def chunk_url(self) -> str:
        """The central chunk service's address for processes on this machine."""
        return f"http://{bracketed(self.local_host)}:{self.chunk_port}"

    @property
    def web_url(self) -> str:
        """The dashboard's address for a browser on this machine."""
        return f"http://{bracketed(self.local_host)}:{self.port}"

    @property
    def people_url(self) -> str:
        """The dashboard's address in messages to people."""
        return self.public_url or self.web_url

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
        """The port of a node's chunk service.

        A node that is not in `nodes` gets `node_port` itself if the environment names it.
        Otherwise it gets the port from which it looks for a free one.
        """
        if name in self.nodes:
            return self.node_port + self.nodes.index(name)
        return self.node_port if self.node_port_named else self.node_port + len(self.nodes)


def bracketed(host: str) -> str:
    """The host as a URL writes it: an IPv6 address stands in brackets."""
    return f"[{host}]" if ":" in host else host


def _faults(error: ValidationError) -> list[str]:
    """One line per mistake, `VARIABLE=value: what is wrong`. A value that may be secret is not shown."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False):
        if fault["type"] == "default_factory_not_called":  # another setting is wrong, and has its own line
            continue
        name = str(fault["loc"][0])
        variable = name if name.isupper() else f"FOGLINE_{name.upper()}"
        value = "(not shown)" if name.lower() in _SECRET else repr(fault["input"])
        faults.append(f"{variable}={value}: {fault['msg'].removeprefix('Value error, ')}")
    return faults


def _embedded_redis(port: int | None, cluster_key: str) -> str:
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
