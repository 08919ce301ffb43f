"""Tests that no other user of the machine can use the ports and sockets of a running node."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError

from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.spark.session import java_process
from tests.integration.runtime.documents import events, out, sums
from tests.integration.runtime.engine import Deployed, Node, create_topic, produce, values
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Called:
    """A Python object that Java can call, as it calls a query's sink."""

    class Java:
        implements = ["java.lang.Runnable"]

    def __init__(self) -> None:
        self.times = 0

    def run(self) -> None:
        self.times += 1


def test_nobody_calls_into_the_node_without_the_token(host: ReplicaHost) -> None:
    gateway: Any = host.engine.session.sparkContext._gateway
    called = Called()
    name = gateway.gateway_property.pool.put(called)
    address = gateway._callback_server.server_socket.getsockname()
    for said in (f"c\n{name}\nrun\ne\n", f"A\nguessed\ne\nc\n{name}\nrun\ne\n"):
        # it may hang up before all is said
        with socket.create_connection(address, timeout=60) as stranger, suppress(ConnectionError):
            stranger.sendall(said.encode())
            while stranger.recv(1024):
                pass  # until it hangs up
    assert called.times == 0

    java = gateway.jvm.java.util.concurrent.CompletableFuture
    java.runAsync(called).get()  # in a thread of Java's own, which has to connect first
    assert called.times == 1


def test_sparks_own_port_takes_nobody_without_the_secret(host: ReplicaHost) -> None:
    """It takes Java objects, which may be code."""
    context: Any = host.engine.session.sparkContext
    jvm = context._jvm
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.rpc.askTimeout", "60s")
    packages = jvm.java.lang.Class.forName("org.apache.spark.internal.config.package$")
    secret_file = packages.getField("MODULE$").get(None).AUTH_SECRET_FILE()
    manager = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), secret_file)
    stranger = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, manager, True)
    try:
        port = context.getConf().get("spark.driver.port")
        with pytest.raises(Py4JJavaError, match="SparkException"):
            stranger.setupEndpointRefByURI(f"spark://HeartbeatReceiver@127.0.0.1:{port}")
    finally:
        stranger.shutdown()


def test_what_java_and_python_say_to_each_other_passes_through_sockets_that_nobody_else_can_enter(
    kafka: str, host: ReplicaHost, node: Node
) -> None:
    topic, outside = create_topic(kafka), create_topic(kafka)
    elements = [events(topic), sums(), out(outside)]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    produce(kafka, topic, [{"k": "a", "v": 1}])
    wait_until(lambda: values(kafka, outside), "the first sum")

    java = java_process()
    assert java is not None
    family = [psutil.Process(), psutil.Process(java.pid), *psutil.Process(java.pid).children(recursive=True)]
    paths = [Path(path) for path in _listening(family)]
    assert len(paths) >= 3, paths  # the gate, the workers' daemon, the state's server
    for path in paths:
        directory = path.parent.stat()
        assert (directory.st_uid, stat.S_IMODE(directory.st_mode)) == (os.getuid(), 0o700), path

    context: Any = host.engine.session.sparkContext
    _, _, blocks_port = context._jsc.sc().getExecutorMemoryStatus().head()._1().rpartition(":")
    known = {
        context._gateway.gateway_parameters.port,
        int(context.getConf().get("spark.driver.port")),
        int(blocks_port),
    }
    ports = set()
    for process in family[1:]:
        with suppress(psutil.NoSuchProcess):  # a worker of a test before this one may just have ended
            ports |= {
                one.laddr.port for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN
            }
    assert ports == known, "each of them asks for a secret; who adds one has to see to that"


def _opened(process: psutil.Process) -> list[str]:
    """What it has open, or nothing any more: it may just have ended."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(os.readlink(link))
    return found


def _listening(family: list[psutil.Process]) -> set[str]:
    """The Unix sockets on which these processes take connections."""
    inodes = set()
    for process in family:
        for target in _opened(process):
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        parts = line.split()
        # __SO_ACCEPTCON: it listens
        if len(parts) == 8 and parts[6] in inodes and int(parts[3], 16) & 0x10000:
            found.add(parts[7])
    return found
