"""A real PostgreSQL for the tests of its connector, that can be killed, hung and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from pipeline_runtime.operators.postgresql import PostgresqlConnection
from tests.ports import free_ports
from tests.waiting import wait_until

PASSWORD = "right-7hX2kQ9"
"""No other text holds it, so a test can look for it in all that people see."""


class Database:
    """Belongs to the user "ann". What is committed is there after a restart."""

    def __init__(self) -> None:
        [self.port] = free_ports(1)
        # It does not run as root, and nobody else may read what pytest makes.
        self._user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        self._directory = Path(tempfile.mkdtemp(prefix="fogline-db-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Database:
        password = self._directory / "password"
        password.write_text(PASSWORD)
        for path in (self._directory, password):
            shutil.chown(path, self._user)
        command = [_program("initdb"), "-D", str(self._data), "-U", "ann", "-A", "scram-sha-256"]
        command += ["-E", "UTF8", "--locale=C", "--no-sync", f"--pwfile={password}"]
        subprocess.run(command, check=True, capture_output=True, user=self._owner, cwd="/")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._directory)

    def start(self) -> None:
        command = [_program("postgres"), "-D", str(self._data), "-p", str(self.port)]
        command += ["-k", str(self._directory), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        command += ["-c", "max_prepared_transactions=5"]
        with open(self._directory / "log.txt", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, user=self._owner, cwd="/"
            )
        wait_until(self._answers, "PostgreSQL to answer")

    def kill(self) -> None:
        """Ends it as a crash does: all that is open is lost."""
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def hang(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def connection(self, **fields: Any) -> PostgresqlConnection:
        given = {"host": "127.0.0.1", "port": self.port, "database": "postgres", "user": "ann"}
        return PostgresqlConnection.model_validate({**given, "password": PASSWORD, **fields})

    def client(self, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname="postgres",
            user="ann",
            password=PASSWORD,
            autocommit=autocommit,
        )

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Returns the rows, or none if the statement has none."""
        with self.client() as client:
            found = client.execute(query.encode())
            return found.fetchall() if found.description is not None else []

    def speak_tls(self, certificate: str, key: str, authority: str = "") -> None:
        """Lets it speak TLS too, from the next connection on. `authority`: a client that does needs a
        certificate that is signed by it."""
        given = {"ssl_cert_file": certificate, "ssl_key_file": key}
        if authority:
            given["ssl_ca_file"] = authority
            access = self._data / "pg_hba.conf"
            access.write_text(f"hostssl all all all scram-sha-256 clientcert=verify-ca\n{access.read_text()}")
        for name, text in given.items():
            path = self._directory / name
            path.touch(0o600)
            path.write_text(text)
            shutil.chown(path, self._user)
            self.ask(f"ALTER SYSTEM SET {name} = '{path}'")
        self.ask("ALTER SYSTEM SET ssl = on")
        self.ask("SELECT pg_reload_conf()")
        wait_until(lambda: self.ask("SHOW ssl") == [("on",)], "PostgreSQL to speak TLS")

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _owner(self) -> str | None:
        return self._user if os.getuid() == 0 else None

    def _signal(self, number: int) -> None:
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in [server, *server.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):  # that of a connection ends by itself
                process.send_signal(number)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "log.txt").read_text()
        try:
            self.client().close()
        except psycopg.OperationalError:
            return False
        return True


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))  # Debian's place, outside of PATH
    return str(found[-1]) if found else (shutil.which(name) or name)
