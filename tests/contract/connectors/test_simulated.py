"""Simulated machines: a real server for each, on this machine alone, read by the connectors that read any."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import psutil
import pytest
from asyncua import Client, ua
from pymodbus.client import ModbusTcpClient

from pipeline_runtime.connectors import simulated_press, simulated_pump
from pipeline_runtime.connectors.config import name_of
from pipeline_runtime.connectors.simulated import started
from pipeline_runtime.model.connectors import TestAnswer
from pipeline_runtime.model.simulated import PRESS, PUMP, Simulated
from pipeline_runtime.operators.connections import kinds
from tests.running import PROJECT
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration


def answered(machine: Simulated, path: str = "", find: str = "") -> TestAnswer:
    """What the test of its connection says when it works: a busy machine may take longer than a test has."""
    tries: list[TestAnswer] = []

    def works() -> bool:
        tries.append(asked(machine, path, find))
        return tries[-1].works

    wait_until(works, lambda: f"{machine.name} to answer: {tries[-1].words}")
    return tries[-1]


def asked(machine: Simulated, path: str, find: str) -> TestAnswer:
    """What one test says, in a process of its own, as a node runs it."""
    question = {"kind": name_of(kinds()[machine.kind]), "fields": machine.fields, "path": path, "find": find}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_runtime.connectors.questions"],
        input=json.dumps({"probe": question}).encode() + b"\n",
        capture_output=True,
        cwd=PROJECT,
        timeout=120,
    )
    if done.returncode:
        return TestAnswer(works=False, words="it took too long, so it has ended itself")
    return TestAnswer.model_validate_json(done.stdout)


def test_the_press_has_its_values_with_their_units() -> None:
    answer = answered(PRESS, find="press")
    assert [(each.path, each.holds, each.unit) for each in answer.found] == [
        ("ns=2;s=Press.Temperature", "number", "°C"),
        ("ns=2;s=Press.Pressure", "number", "bar"),
        ("ns=2;s=Press.Strokes", "integer", ""),
        ("ns=2;s=Press.Running", "boolean", ""),
    ]
    temperature = answer.found[0].value
    assert isinstance(temperature, float)
    assert 43 <= temperature <= 77


def test_the_pump_has_its_registers() -> None:
    answer = answered(PUMP, "1/holding/0")
    flow, pressure, bearing = (each.value for each in answer.found[:3])
    assert isinstance(flow, int)
    assert isinstance(pressure, int)
    assert isinstance(bearing, int)
    assert 30 <= flow <= 1270
    assert 390 <= pressure <= 780
    assert 450 <= bearing <= 590


@pytest.mark.parametrize("machine", ["simulated_press", "simulated_pump"])
def test_a_server_listens_on_this_machine_alone_and_ends_with_its_process(machine: str) -> None:
    code = f"""
from pipeline_runtime.connectors.simulated import started
from pipeline_runtime.connectors import {machine}
print(started({machine}.serve), flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        listening = [each.laddr for each in _connections(process.pid) if each.status == psutil.CONN_LISTEN]
        assert [(each.ip, each.port) for each in listening] == [("127.0.0.1", port)]
        assert process.stdin is not None
        process.stdin.close()
        wait_until(lambda: process.poll() is not None, "the process to end")


@pytest.mark.parametrize("user", ["", "admin"])
def test_the_press_takes_no_writes(user: str) -> None:
    async def write(port: int) -> None:
        client = Client(f"opc.tcp://127.0.0.1:{port}", timeout=PATIENCE_S)
        client.set_user(user)
        async with client:
            await client.get_node("ns=2;s=Press.Temperature").write_value(1.0)

    with pytest.raises(ua.uaerrors.BadUserAccessDenied):
        asyncio.run(write(started(simulated_press.serve)))


def test_the_pump_takes_no_writes() -> None:
    with ModbusTcpClient("127.0.0.1", port=started(simulated_pump.serve), timeout=PATIENCE_S) as client:
        answers = [client.write_register(0, 5, device_id=1), client.write_coil(0, False, device_id=1)]
    assert [each.exception_code for each in answers] == [1, 1]  # an illegal function


def _connections(pid: int) -> list[Any]:
    return list(psutil.Process(pid).net_connections(kind="tcp"))
