"""The input of a connector's process: one line of JSON, then orders. See __main__.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from pipeline_runtime.connectors.sdk import ConnectorError, Place
from pipeline_runtime.connectors.simulated import LOOPBACK, started
from pipeline_runtime.model.connectors import SPOOL_BYTES_MAX
from pipeline_runtime.model.faults import pydantic_faults
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.simulated import SIMULATED
from pipeline_runtime.model.spec import Frozen
from pipeline_runtime.operators.connections import ConnectionFields


class ConnectorConfig(Frozen):
    """`connector` and `operator` are "module:class". `missing` says, in words, why there is no
    connection."""

    kind: Literal["in", "out", "drain"]  # "drain" only empties a spool
    deployment: str
    element: str
    topic: str
    dead_letters: str = ""
    connector: str = ""
    operator: str = ""
    params: dict[str, Any] = {}
    connections: dict[str, dict[str, Any]] = {}  # their fields, by the parameter that names them
    group: str = ""
    rows: StreamSchema | None = None
    missing: str = ""
    kafka_bootstrap: str
    kafka_security: dict[str, Any] = {}
    spool: str  # a directory
    spool_bytes_max: int = SPOOL_BYTES_MAX


class Order(Frozen):
    """`run`: begin. `stop`: end in order; with `forever` the element has gone for good."""

    do: Literal["run", "stop"]
    epoch: int = 0
    forever: bool = False


def named(target: str) -> Any:
    """Returns the object behind "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def name_of(found: type) -> str:
    return f"{found.__module__}:{found.__qualname__}"


def made(config: ConnectorConfig) -> Any:
    """Returns the Ingester or Deliverer. Raises ConnectorError."""
    if config.missing:
        raise ConnectorError(config.missing, lasting=True)
    with fitting("element"):
        operator, connector = named(config.operator), named(config.connector)
        params = operator.Params.model_validate(config.params)
    kinds = operator.given()
    with fitting("connection"):
        found = {
            name: reached(kinds[name].model_validate(fields)) for name, fields in config.connections.items()
        }
    connection = found.pop("connection", None)
    return connector(
        Place(config.deployment, config.element, params, connection, config.group, config.rows, found)
    )


C = TypeVar("C", bound=ConnectionFields)


def reached(connection: C) -> C:
    """Returns the connection, or of a simulated machine, one that leads to its server, which runs then.
    Raises ConnectorError."""
    machine = SIMULATED.get(getattr(connection, "host", ""))
    if machine is None or machine.kind != connection.kind:
        return connection
    return connection.model_copy(update={"host": LOOPBACK, "port": started(named(machine.server))})


def secrets_of(config: ConnectorConfig) -> tuple[str, ...]:
    """Returns the values of the secret fields of its connections."""
    kinds = named(config.operator).given()
    found = (secrets_in(kinds.get(name), fields) for name, fields in config.connections.items())
    return tuple(secret for secrets in found for secret in secrets)


def secrets_in(kind: type[ConnectionFields] | None, fields: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Returns the values of the secret fields."""
    if kind is None or not fields:
        return ()
    return tuple(str(fields[name]) for name in kind.secrets() if fields.get(name))


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Raises ConnectorError for what another version of Fogline has made."""
    try:
        yield
    except ValidationError as error:
        faults = "; ".join(f"{path}: {message}" for path, message, _, _ in pydantic_faults(error))
        raise ConnectorError(
            f"The {what} does not fit the Fogline of this node: {faults}", lasting=True
        ) from None
    except (ImportError, AttributeError) as error:
        raise ConnectorError(
            f"The Fogline of this node does not have the connector of this {what}: {error}", lasting=True
        ) from error
