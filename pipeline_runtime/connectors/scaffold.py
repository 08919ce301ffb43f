"""Makes the files of a new package with a connector: `python -m pipeline_runtime.new_operator --source`.

They read lines from a TCP server, or write lines to one. Their tests start such a server.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["source", "sink"]

_OPERATOR = '''\
"""{Direction}: {title}. The connector is {module}_connector.py; only its own process imports it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

{imports}
from pipeline_runtime.operators.connected import {base}
from pipeline_runtime.operators.connections import ConnectionFields, Host, connection_field
from pipeline_runtime.operators.sdk import Params


class {name}Connection(ConnectionFields):
    """What the form of such a connection asks for. Mark what must stay secret with the type Secret."""

    kind = "{type}"
    title = "{title} server"
    probe = "{module}_connector:probe"

    host: Host
    port: int = Field(ge=1, le=65_535)

    @property
    def where(self) -> str:
        return f"the {title} server {{self.host}}, port {{self.port}}"


class {name}Params(Params):
    connection: str = connection_field({name}Connection)


class {name}({base}):
    """{docs} **At least once.**

    (This docstring is the operator's help, in Markdown.)
    """

    type = "{type}"
    title = "{title}"
    summary = "{docs}"
    icon = "cable"
    Params = {name}Params
    connector = "{module}_connector:{name}Connector"
    connection = {name}Connection
    example = {{"connection": "my-server"}}

    params: {name}Params

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return {schema}
'''

_READING = '''
    def reading(self) -> RecordReading:
        """Where the column lies in the records that the connector puts."""
        return RecordReading(columns=(ColumnReading(path=("line",)),))
'''

_CONNECTOR_HEAD = '''\
"""The connector of {title}: lines of a TCP server."""

from __future__ import annotations

import json
import socket
{libraries}

from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.sdk import CONNECT_S, {sdk}
from {module} import {name}Connection, {name}Params


def connected(connection: {name}Connection) -> socket.socket:
    """Raises ConnectorError, whose words are shown at the element."""
    try:
        return socket.create_connection((connection.host, connection.port), CONNECT_S)
    except OSError as error:
        raise in_words(error, connection.where) from error


def probe(connection: {name}Connection, path: str) -> Probed:
    """What the button Test connection does."""
    connected(connection).close()
    return Probed("Connected.")


'''

_INGESTER = """\
class {name}Connector(Ingester[{name}Params, {name}Connection]):
    def run(self, intake: Intake, stop: threading.Event) -> None:
        where = self.place.connection.where
        with connected(self.place.connection) as server:
            server.settimeout(0.2)  # so that `stop` is seen
            intake.connected()
            left = b""
            while not stop.is_set():
                try:
                    data = server.recv(65_536)
                except TimeoutError:
                    continue
                except OSError as error:
                    raise in_words(error, where) from error
                if not data:
                    # Nobody knows what this server sends meanwhile, so a gap is told.
                    intake.gap(f"{{where}} has closed the connection")
                    raise ConnectorError(f"{{where}} has closed the connection.")
                *lines, left = (left + data).split(b"\\n")
                # Without a function to call when they are durable: this server cannot wait.
                intake.put([Record(json.dumps({{"line": line.decode()}}).encode()) for line in lines])
"""

_DELIVERER = """\
class {name}Connector(Deliverer[{name}Params, {name}Connection]):
    _server: socket.socket | None = None

    def open(self, epoch: int) -> None:
        self._server = connected(self.place.connection)

    def deliver(self, batch: Batch) -> Sequence[Refused]:
        assert self._server is not None
        try:
            for row in batch.rows:
                self._server.sendall(json.dumps(dict(row)).encode() + b"\\n")
        except OSError as error:
            raise in_words(error, self.place.connection.where) from error
        return []  # the places of rows that the server will never take, with the reason

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
"""

_TEST_HEAD = '''\
"""{title} beside a real server. Run it with Fogline's Python: python -m pytest"""

from __future__ import annotations

import socket
{test_imports}from pathlib import Path

from pipeline_runtime.connectors.sdk import Place
from pipeline_runtime.connectors.trial import {trial}
from {module} import {name}, {name}Connection, {name}Params
from {module}_connector import {name}Connector


def place(port: int) -> Place[{name}Params, {name}Connection]:
    connection = {name}Connection(host="127.0.0.1", port=port)
    return Place("deployment", "element", {name}Params(connection="my-server"), connection)


def listening() -> tuple[socket.socket, int]:
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)
    return server, server.getsockname()[1]


def test_it_is_found_by_its_entry_point_under_its_type() -> None:
    text = (Path(__file__).parent / "pyproject.toml").read_text()
    assert f'{{{name}.type}} = "{module}:{name}"' in text


'''

_TEST_SOURCE = """\
def test_lines_become_rows_and_an_end_of_the_server_is_told_as_a_gap() -> None:
    server, port = listening()
    running = RunningTrial({name}Connector(place(port)), rows=2)
    client, _ = server.accept()
    client.sendall(b"one\\ntwo\\nth")
    assert running.intake.enough.wait(10)
    client.close()
    again, _ = server.accept()  # it connects again by itself
    again.close()
    server.close()
    taken = running.stop()
    assert taken.rows == [{{"line": "one"}}, {{"line": "two"}}]
    assert taken.notes


def test_a_server_that_is_not_there_is_told_in_words() -> None:
    server, port = listening()
    server.close()
    running = RunningTrial({name}Connector(place(port)))
    until_s = time.monotonic() + 10
    while running.status.state != "failing" and time.monotonic() < until_s:
        time.sleep(0.01)
    assert "Nobody listens at the {title} server 127.0.0.1" in running.stop().why
"""

_TEST_SINK = """\
def test_each_row_arrives_as_a_line() -> None:
    server, port = listening()
    taken = trial_deliverer({name}Connector(place(port)), [{{"value": 1}}, {{"value": 2}}, {{"value": 3}}])
    client, _ = server.accept()
    assert client.recv(1000) == b'{{"value": 1}}\\n{{"value": 2}}\\n{{"value": 3}}\\n'
    assert taken.refused == []
    client.close()
    server.close()


def test_a_server_that_is_not_there_is_told_in_words() -> None:
    server, port = listening()
    server.close()
    taken = trial_deliverer({name}Connector(place(port)), [{{"value": 1}}], timeout_s=1.0)
    assert "Nobody listens at the {title} server 127.0.0.1" in taken.why
"""

_KINDS: dict[Kind, dict[str, str]] = {
    "source": {
        "Direction": "Source",
        "base": "ConnectorSource",
        "docs": "Reads the lines of a TCP server.",
        "imports": "from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema\n"
        "from pipeline_runtime.model.spec import ColumnReading, RecordReading",
        "libraries": "import threading",
        "sdk": "ConnectorError, Ingester, Intake, Probed, Record",
        "test_imports": "import time\n",
        "trial": "RunningTrial",
        "schema": 'StreamSchema(fields=(SchemaField(name="line", type=FieldType.STRING),))',
    },
    "sink": {
        "Direction": "Sink",
        "base": "ConnectorSink",
        "docs": "Writes each row as a line of JSON to a TCP server.",
        "imports": "from pipeline_runtime.model.schema import StreamSchema",
        "libraries": "from collections.abc import Sequence",
        "sdk": "Batch, Deliverer, Probed, Refused",
        "test_imports": "",
        "trial": "trial_deliverer",
        "schema": 'inputs["in"]',
    },
}


def connector_files(kind: Kind, words: dict[str, str]) -> dict[str, str]:
    """Returns the files' texts by name. `words`: type, title, name, module."""
    words = {**words, **_KINDS[kind]}
    module = words["module"]
    operator = _OPERATOR + (_READING if kind == "source" else "")
    connector = _CONNECTOR_HEAD + (_INGESTER if kind == "source" else _DELIVERER)
    test = _TEST_HEAD + (_TEST_SOURCE if kind == "source" else _TEST_SINK)
    return {
        f"{module}.py": operator.format(**words),
        f"{module}_connector.py": connector.format(**words),
        f"test_{module}.py": test.format(**words),
    }
