"""One connection to PostgreSQL, with a bound on every wait, and errors in words (psycopg)."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pipeline_runtime.connectors.in_words import in_words, is_about_own
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError
from pipeline_runtime.connectors.tls import tls_context
from pipeline_runtime.operators.postgresql import PostgresqlConnection

ANSWER_S = 20.0
"""A database that has not answered a batch by then counts as hung."""
ALIVE_S = 5.0
LOCK_S = 5
"""How long a statement waits for rows and tables that others have locked."""
IDLE_S = 30
"""The server ends a transaction in which nothing has happened for so long: its owner hangs or is cut off."""
_QUOTED = 300
_ASK_FOR_TLS = struct.pack("!ii", 8, 80_877_103)
"""The first message of a client of PostgreSQL that wants TLS. The answer is S, or N."""

_BY_A_TRIGGER = "P0"
"""How the states of errors begin that PL/pgSQL raises, such as a trigger for a row."""
_TOO_LARGE = psycopg.errors.ProgramLimitExceeded | psycopg.errors.StatementTooComplex
"""Errors of a value that is too long for an index, or nested too deep."""

Row = tuple[Any, ...]


class Session:
    """A connection. It is not used again after an error."""

    def __init__(self, connection: PostgresqlConnection, name: str, *, autocommit: bool = False) -> None:
        """`name`: how an administrator of the database sees it. Raises ConnectorError."""
        self._connection = connection
        self._hung = False
        with tempfile.TemporaryDirectory() as directory:  # libpq reads certificates from files alone
            try:
                self.raw = psycopg.connect(
                    **options_of(connection, name, Path(directory)),
                    autocommit=True,
                    prepare_threshold=None,  # behind a pooler, another session may lack what was prepared
                )
            except psycopg.Error as error:
                raise _not_connected(error, connection) from error
        with self.asking(ALIVE_S):
            # As statements, not as options of the connection: a pooler takes no options.
            self.raw.execute("SET TimeZone = 'UTC'")
            # As people of the database may have set them, values as text would be read wrong, or cut.
            self.raw.execute("SET DateStyle = 'ISO, YMD'")
            self.raw.execute("SET IntervalStyle = 'postgres'")
            self.raw.execute("SET extra_float_digits = 1")
            self.raw.execute("SET bytea_output = 'hex'")
            self.raw.execute(f"SET lock_timeout = '{LOCK_S}s'")
            self.raw.execute(f"SET statement_timeout = '{ANSWER_S:.0f}s'")
            self.raw.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_S}s'")
            self.raw.execute("SET standard_conforming_strings = on")
        self.raw.autocommit = autocommit

    @contextmanager
    def asking(self, seconds: float = ANSWER_S) -> Iterator[psycopg.Connection[Row]]:
        """Ends the connection if what is asked within takes longer, and turns errors into ConnectorError."""
        watch = threading.Timer(seconds, self._give_up)
        watch.daemon = True
        watch.start()
        try:
            yield self.raw
        except psycopg.Error as error:
            if self._hung:
                where = self._connection.where
                raise ConnectorError(f"{where} does not answer within {seconds:.0f} s.") from error
            raise failed(error, self._connection) from error
        finally:
            watch.cancel()

    def close(self) -> None:
        # A server that hangs is not said goodbye to: shutting the socket first makes that return at once.
        with suppress(Exception):
            self.raw.close()

    def _give_up(self) -> None:
        self._hung = True
        # psycopg waits for the socket in another thread; only the end of the stream wakes it.
        with suppress(Exception), socket.socket(fileno=os.dup(self.raw.fileno())) as other:
            other.shutdown(socket.SHUT_RDWR)


def options_of(connection: PostgresqlConnection, name: str, directory: Path) -> dict[str, Any]:
    """Returns libpq's options. `directory`: where the certificates are written to."""
    options: dict[str, Any] = {
        "host": connection.host,
        "port": connection.port,
        "dbname": connection.database,
        "user": connection.user,
        "password": connection.password or "",
        "passfile": os.devnull,  # not those of who runs the node
        "application_name": name[:63],
        "connect_timeout": int(CONNECT_S),
        "client_encoding": "utf8",
        "gssencmode": "disable",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        "sslmode": "disable",
    }
    if not connection.tls:
        return options
    tls_context(connection)  # says in words what is wrong with the certificates
    options |= {"sslmode": "verify-full", "sslrootcert": "system"}
    _use_authorities_of_system()
    if connection.ca:
        options["sslrootcert"] = _file(directory / "ca.pem", connection.ca)
    if connection.certificate and connection.private_key:
        options["sslcert"] = _file(directory / "own.pem", connection.certificate)
        options["sslkey"] = _file(directory / "own.key", connection.private_key)
    return options


def _use_authorities_of_system() -> None:
    """Lets libpq find what `sslrootcert=system` means. The OpenSSL that psycopg brings would look into a
    directory that no machine has."""
    known = ssl.get_default_verify_paths()
    for name, path in ((known.openssl_cafile_env, known.cafile), (known.openssl_capath_env, known.capath)):
        if path is not None:
            os.environ.setdefault(name, path)


def _file(path: Path, text: str) -> str:
    path.touch(0o600)
    path.write_text(text.strip() + "\n")
    return str(path)


# -- errors in words -------------------------------------------------------------------------------------


def _not_connected(error: psycopg.Error, connection: PostgresqlConnection) -> ConnectorError:
    where = connection.where
    # libpq tells these in the language of the system, and as one text: the socket itself says it better.
    try:
        socket.create_connection((connection.host, connection.port), CONNECT_S / 2).close()
    except OSError as unreachable:
        return in_words(unreachable, where)
    said = _said(error)
    if "client certificate" in said or is_about_own(said):
        return ConnectorError(
            f"{where} does not accept the own certificate of the connection, or wants one and there is none. "
            f"(It says: {said}.)",
            lasting=True,
        )
    if "certificate" in said:
        return _of_certificate(connection) or ConnectorError(
            f"The certificate of {where} is not accepted: {said}.", lasting=True
        )
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return ConnectorError(f"{where} takes the connection and does not answer. Is it PostgreSQL there?")
    if "password" in said and "authentication" in said:
        return ConnectorError(
            f"{where} does not let the user {connection.user} in. Check the user name and the password. "
            f"(It says: {said}.)",
            lasting=True,
        )
    if "SSL" in said or "encryption" in said:
        meant = "encrypted by TLS" if connection.tls else "without TLS"
        return ConnectorError(
            f"{where} refuses a connection {meant}. Check TLS in the connection. (It says: {said}.)",
            lasting=True,
        )
    return ConnectorError(f"{where} refuses the connection. It says: {said}.")


def _of_certificate(connection: PostgresqlConnection) -> ConnectorError | None:
    """Returns what is wrong with the server's certificate: libpq tells only that it is not accepted."""
    try:
        with socket.create_connection((connection.host, connection.port), CONNECT_S / 2) as raw:
            raw.sendall(_ASK_FOR_TLS)
            if raw.recv(1) == b"S":
                tls_context(connection).wrap_socket(raw, server_hostname=connection.host).close()
    except OSError as error:
        return in_words(error, connection.where)
    return None


def failed(error: psycopg.Error, connection: PostgresqlConnection) -> ConnectorError:
    """Returns what a statement's error means for the element."""
    where, said = connection.where, _said(error)
    match error:
        case psycopg.errors.InsufficientPrivilege():
            return ConnectorError(
                f"{where} does not allow this to the user {connection.user}: {said}. Its administrator has "
                "to grant it.",
                lasting=True,
            )
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn():
            return ConnectorError(f"{where} has changed: {said}.")
        case psycopg.errors.LockNotAvailable():
            return ConnectorError(f"Rows or a table of {where} are locked by others for {LOCK_S} s.")
        case psycopg.errors.QueryCanceled():
            return ConnectorError(f"{where} has not done it within {ANSWER_S:.0f} s.")
        case psycopg.OperationalError() if error.sqlstate is None:
            return ConnectorError(f"The connection to {where} was lost.")
        case _:
            return ConnectorError(f"{where} says: {said}.")


def _said(error: psycopg.Error) -> str:
    """Returns the database's words without its details, which may hold values of rows."""
    text = error.diag.message_primary or str(error).strip()
    # The addresses that were tried, and what was tried after the first error.
    line = next((part for part in text.splitlines() if "FATAL" in part or "error" in part.lower()), text)
    return line.split("FATAL:")[-1].strip().rstrip(".")[:_QUOTED]


def refusal(error: psycopg.Error | UnicodeError) -> str | None:
    """Returns why the database takes no such row, or None if the error is not about the row."""
    if isinstance(error, UnicodeError):
        return "it holds a character that no text can have"
    about_row = isinstance(error, psycopg.DataError | psycopg.IntegrityError | _TOO_LARGE)
    if about_row or (error.sqlstate or "").startswith(_BY_A_TRIGGER):
        return f"the database refuses it: {_said(error)}"
    return None


def table_name(namespace: str, table: str) -> sql.Identifier:
    """Returns the name, to be put into a statement."""
    return sql.Identifier(namespace, table)
