"""Connects to a Kafka cluster that is not Fogline's own, and explains failures in words."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.payloads import found_by
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError, Probed
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.formats.schema_registry import has_prefix
from pipeline_runtime.kafka.clients import (
    KafkaConnectionError,
    KafkaError,
    KafkaSettings,
    KafkaTimeoutError,
    close_spent,
    open_consumer,
    within,
)
from pipeline_runtime.kafka.knock import (
    AuthorizationError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    knock,
)
from pipeline_runtime.kafka.peek import Newest, peek, peek_each
from pipeline_runtime.model.connectors import ROWS_SHOWN, Found
from pipeline_runtime.operators.other_kafka import KafkaConnection
from pipeline_runtime.operators.ticked import AVRO

ASK_S = 8.0
KNOCK_S = 3.0
_FOUND_MAX = 500
_LOOKED_INTO_MAX = 100
"""How many topics are looked into for their newest record."""
_LOOKED_AT_BYTES = 1 << 20
_LOOK_S = 2.0
"""How long records are read. Where they end may take a second more to find."""
_QUOTED = 200


def reached(connection: KafkaConnection) -> KafkaSettings:
    """Returns how clients reach the cluster, after one of its servers has let Fogline in. Raises
    ConnectorError."""
    context = tls_context(connection) if connection.tls else None
    server = _that_answers(connection, context)
    with asking(connection):
        within(2 * KNOCK_S, lambda: knock(_settings(connection, context, server), KNOCK_S))
    return _settings(connection, context, connection.servers.replace(" ", ""))


def _settings(connection: KafkaConnection, context: ssl.SSLContext | None, servers: str) -> KafkaSettings:
    has_login = connection.login != "none"
    security: dict[str, Any] = {
        "security_protocol": ("SASL_" if has_login else "") + ("PLAINTEXT" if context is None else "SSL"),
        "bootstrap_timeout_ms": int(ASK_S * 1000),
    }
    if context is not None:
        security["ssl_context"] = context
    if has_login:
        security |= {
            "sasl_mechanism": connection.login,
            "sasl_plain_username": connection.user,
            "sasl_plain_password": connection.password,
        }
    return KafkaSettings(servers, security)


def _that_answers(connection: KafkaConnection, context: ssl.SSLContext | None) -> str:
    """Returns the first server that opens a connection, encrypted if that is wanted. Raises ConnectorError
    with what is wrong at the first one."""
    servers = [server.strip() for server in connection.servers.split(",")]
    first: BaseException | None = None
    for server in servers:
        host, _, port = server.rpartition(":")
        host = host.strip("[]")
        try:
            with socket.create_connection((host, int(port)), CONNECT_S / len(servers)) as plain:
                if context is not None:
                    with context.wrap_socket(plain, server_hostname=host):
                        return server
                return server
        except (OSError, OverflowError) as error:
            first = first or error
    assert first is not None
    raise in_words(first, connection.where) from first


@contextmanager
def asking(connection: KafkaConnection) -> Iterator[None]:
    """Raises ConnectorError for what a client of the cluster raises."""
    try:
        yield
    except (KafkaError, OSError) as error:
        raise failed(error, connection) from error


def failed(error: BaseException, connection: KafkaConnection) -> ConnectorError:
    """Returns what an error of a client means, in words."""
    where = connection.where
    match error:
        case SaslAuthenticationFailedError():
            return ConnectorError(
                f"{where} refuses the user name or the password of the connection ({connection.login}).",
                lasting=True,
            )
        case UnsupportedSaslMechanismError():
            return ConnectorError(
                f"{where} does not have the login {connection.login}. Choose another one in the connection.",
                lasting=True,
            )
        case AuthorizationError():
            return ConnectorError(
                f"{where} does not allow this to the user of the connection ({type(error).__name__}). Its"
                " administrator has to grant it.",
                lasting=True,
            )
        case KafkaTimeoutError() | RequestTimedOutError() | TimeoutError():
            return ConnectorError(f"{where} does not answer.")
        case KafkaConnectionError():
            meant = "encrypted by TLS" if connection.tls else "without TLS"
            return ConnectorError(
                f"{where} closes the connection {meant}. Check the port, TLS, the login, and whether it asks"
                " for an own certificate."
            )
        case OSError():
            return in_words(error, where)
        case _:
            return ConnectorError(f"{where} says: {type(error).__name__}: {error}"[:_QUOTED])


def partitions_of(consumer: Any, connection: KafkaConnection, topic: str) -> list[int]:
    """Returns the partitions of a topic. Raises ConnectorError, also if the topic is not there."""
    with asking(connection):
        found = within(ASK_S, lambda: consumer.topics() and consumer.partitions_for_topic(topic))
    if not found:
        raise ConnectorError(
            f'{connection.where} has no topic "{topic}", or the user of the connection does not see it. Its'
            " administrator makes it; Fogline makes no topics there.",
            lasting=True,
        )
    return sorted(found)


def probe(connection: KafkaConnection, path: str) -> Probed:
    """Lists the topics with what their newest records tell, or shows those of the topic `path`."""
    if not path:
        return _topics(connection, "")
    kafka = reached(connection)
    with asking(connection):
        records = peek(kafka, path, ROWS_SHOWN)
    rows = tuple({"key": each.key, "value": each.value[:_QUOTED]} for each in records)
    return Probed(f"Connected. The newest records of {path}.", rows)


def search(connection: KafkaConnection, find: str) -> Probed:
    """Lists the topics that have `find` in their names."""
    return _topics(connection, find)


def _topics(connection: KafkaConnection, find: str) -> Probed:
    kafka = reached(connection)
    with asking(connection):
        consumer = within(ASK_S, lambda: open_consumer(kafka))
    try:
        with asking(connection):
            there = sorted(within(ASK_S, consumer.topics))
    finally:
        close_spent(consumer)
    topics = [each for each in there if not each.startswith("__") and find.casefold() in each.casefold()]
    shown = topics[:_FOUND_MAX]
    newest = _newest(kafka, shown[:_LOOKED_INTO_MAX])
    return Probed(_seen(len(topics), find), found=tuple(_found(each, newest.get(each)) for each in shown))


def _seen(topics: int, find: str) -> str:
    """Returns the words for so many topics that the user sees, whose names have `find` in them."""
    which = f", whose name has “{find}” in it" if find else ""
    words = f"Connected. The user sees {topics} {'topic' if topics == 1 else 'topics'}{which}."
    if topics > _FOUND_MAX:
        words += f" The first {_FOUND_MAX} are shown: search for the others."
    if topics > _LOOKED_INTO_MAX:
        words += f" What the newest record holds is shown for the first {_LOOKED_INTO_MAX}."
    return words


def _newest(kafka: KafkaSettings, topics: Sequence[str]) -> dict[str, Newest]:
    """Returns the newest record of each topic, as far as the cluster gives it soon. A user may see a topic
    that he may not read."""

    def looked() -> dict[str, Newest]:
        limits = dict.fromkeys(topics, 1)
        return peek_each(kafka, limits, _LOOK_S, _LOOKED_AT_BYTES, passes_refused=True)

    try:
        return within(_LOOK_S + 1, looked)
    except (KafkaError, OSError):
        return {}


def _found(topic: str, newest: Newest | None) -> Found:
    plain = Found(path=topic, title=topic, usable=True)
    if newest is None:
        return plain
    if newest.refused:
        return plain.model_copy(update={"type": "this user may not read it"})
    if not newest.records:
        return plain if newest.late else plain.model_copy(update={"type": "no record"})
    record = newest.records[-1]
    if not record.value.strip():  # a deletion tells nothing of what the others hold
        return plain
    if has_prefix(record.value.encode()):
        return plain.model_copy(update={"type": AVRO})
    if not record.is_text:
        return plain
    try:
        return found_by(topic, record.value.encode()).model_copy(update={"usable": True})
    except ValidationError:  # one topic spoils no others
        return plain
