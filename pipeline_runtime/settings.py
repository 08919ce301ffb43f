"""Everything that the environment decides, read once: `Settings.from_env()`.

A setting is the variable FOGLINE_<NAME>, but for REDIS_URL and DATABASE_URL. What is empty is not given.
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
_SECRET = ("kafka_security", "redis_url", "database_url", "secret_key", "cluster_key")


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
_JsonObject = Annotated[Mapping[str, Any], NoDecode, BeforeValidator(_json_object)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_PositiveAmount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Times end in `_s` and are in seconds; ports are on `host` or on 127.0.0.1."""

    model_config = SettingsConfigDict(env_prefix="FOGLINE_", frozen=True, validate_default=True)

    data: Path = Path(".fogline")
    """All that Fogline keeps is below it."""

    host: str = "127.0.0.1"
    port: _Port = 8000
    """`host`, `port`: where the web listens."""
    https: bool = False
    """A proxy in front of the web speaks TLS: cookies become secure, HSTS is sent."""
    upload_bytes_max: PositiveInt = 1 << 30
    """Of the largest data file that may be uploaded."""

    secret_key: str = Field("", repr=False)
    cluster_key: str = Field("", repr=False)
    """Both are generated once, and kept in `data`/secrets.json (0600), where they are not given."""

    kafka_port: _PortOfTwo = 19092
    """Of the embedded Kafka; its controller takes the next port."""
    kafka: str = Field(default_factory=lambda known: f"127.0.0.1:{known.get('kafka_port')}")
    """Bootstrap servers; not given, Fogline brings its own Kafka."""
    kafka_security: _JsonObject = Field({}, repr=False)
    """JSON object of kafka-python arguments: security_protocol, sasl_*, ssl_*."""
    redis_port: _Port = 16379
    redis_url: str = Field(
        default_factory=lambda known: _embedded_redis(known.get("redis_port"), known.get("cluster_key", "")),
        validation_alias=AliasChoices("REDIS_URL"),
        repr=False,
    )
    """May hold a password; not given, Fogline brings its own Redis, on `redis_port`."""
    database_url: str = Field(
        default_factory=lambda known: f"sqlite:///{known.get('data')}/fogline.sqlite3",
        validation_alias=AliasChoices("DATABASE_URL"),
        repr=False,
    )
    """May hold a password, e.g. postgres://user:password@host/name."""

    nodes: _NodeNames = ("edge-a", "edge-b", "cloud")
    """That the supervisor starts on this machine; may be empty."""
    node: _NodeName | None = None
    """A node process's own name."""
    chunk_port: _Port = 18100
    """Of the central chunk service."""
    node_port: _Port = 18110
    """Of the first local node's chunk service, then the others. Of another node: its own; not given, the
    first free one behind those."""

    silence_s: _PositiveAmount = 3
    """A node that is silent for so long counts as down."""
    restore: Annotated[Literal["auto", "manual"], BeforeValidator(str.lower)] = "auto"
    """What a silent node ran is restored elsewhere: by itself, or by a person."""
    standby_s: _Amount = 600
    """How long the old owner stays a standby after a live migration; 0: not at all."""
    leave_s: _Amount = 60
    """How long a node that is told to stop goes on at most, to hand over what it owns; 0: not at all."""

    latency_ms: Annotated[int, Field(ge=20, le=600_000)] = 500
    """The latency target of elements of which nobody has said one, when they are deployed."""

    checkpoint_s: _PositiveAmount = 5
    """How often a checkpoint leaves the node."""
    checkpoint_batches: NonNegativeInt = 0
    """Also after so many batches; 0: by time alone."""
    checkpoints_kept: PositiveInt = 5
    checkpoints_hours: NonNegativeInt = 24
    """Centrally: so many, and one of each hour."""
    node_checkpoints_kept: PositiveInt = 3
    node_checkpoints_hours: NonNegativeInt = 0
    """The same on each node."""
    checkpoint_mb_s: _Amount = 25
    """Megabytes per second that a node spends on sending them; 0: no limit."""
    disk_reserve_mb: NonNegativeInt = 256
    """Free disk that checkpoints leave to everything else."""
    trim_s: _Amount = 600
    """How often journals and streams are trimmed behind the checkpoints; 0: never."""

    log: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(str.upper)] = (
        "INFO"
    )
    demo: bool = True
    """The demo pipeline is deployed when there is no pipeline yet."""

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
        """What `from_env` has read, and nothing of the process's environment beside it."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Empty is not given; but FOGLINE_NODES may be empty, for none here."""
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
        """By the environment."""
        return "node_port" in self.model_fields_set

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
        """Of the chunk service of a node in `nodes`. Of any other node: `node_port` itself, or, when that is
        not given, the port from which on a free one is looked for."""
        if name in self.nodes:
            return self.node_port + self.nodes.index(name)
        return self.node_port if self.node_port_named else self.node_port + len(self.nodes)


def bracketed(host: str) -> str:
    """As it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _faults(error: ValidationError) -> list[str]:
    """VARIABLE=value: what is wrong with it. Of what may hold a secret, the value is not shown."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False):
        if fault["type"] == "default_factory_not_called":  # for what is wrong with another one
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
