"""Modbus beside a real device that is killed, hung and started again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.connectors import modbus
from pipeline_runtime.connectors.modbus import ModbusIngester, probe
from pipeline_runtime.connectors.modbus_out import ModbusDeliverer
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import (
    MemoryIntake,
    RunningTrial,
    Taken,
    trial_deliverer,
    trial_ingester,
)
from pipeline_runtime.operators.modbus import ModbusConnection, ModbusInParams, ModbusOutParams
from tests.modbus_devices import Device
from tests.ports import free_ports
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shared_device() -> Iterator[Device]:
    with Device() as device:
        yield device


def ingester(connection: ModbusConnection, *registers: dict[str, Any], **params: Any) -> ModbusIngester:
    given = {"connection": "d", "every_ms": 20, "registers": registers or ({"name": "v", "address": 5},)}
    return ModbusIngester(Place("dep", "in", ModbusInParams.model_validate({**given, **params}), connection))


def test_a_device_is_reached_by_the_address_that_was_found_for_its_name(
    shared_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, asked = socket.getaddrinfo, []

    def ask(host: str, *options: Any, **named: Any) -> Any:
        if host != "device.example":
            return known(host, *options, **named)
        asked.append(host)
        return known("127.0.0.1", *options, **named)

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    connection = shared_device.connection().model_copy(update={"host": "device.example"})
    assert trial_ingester(ingester(connection), rows=3).rows
    assert len(asked) == 1


def test_each_poll_makes_a_row_of_all_kinds_of_registers(shared_device: Device) -> None:
    shared_device.write(10, 0x0000, 0x41AC)  # 21.5, the low register first
    taken = trial_ingester(
        ingester(
            shared_device.connection(),
            {"name": "word", "address": 3, "scale": 0.1, "offset": -100},
            {"name": "float", "address": 10, "type": "float32", "order": "CDAB"},
            {"name": "negative", "kind": "input", "address": 0, "type": "int16"},
            {"name": "on", "kind": "coil", "address": 2},
            {"name": "off", "kind": "discrete", "address": 3},
        ),
        rows=3,
    )
    assert taken.rows[0] == pytest.approx(
        {"word": 0.3, "float": 21.5, "negative": -2, "on": True, "off": False}
    )
    times = [record.time_ms or 0 for record in taken.records[:3]]
    assert times == sorted(set(times))


def test_a_register_that_is_not_there_is_named_and_the_others_come(shared_device: Device) -> None:
    registers = [{"name": f"v{address}", "address": address} for address in range(195, 203)]
    running = RunningTrial(ingester(shared_device.connection(), *registers), 3)
    assert running.intake.enough.wait(10)
    taken = running.stop()
    assert all(row == {f"v{at}": 1000 + at for at in range(195, 200)} for row in taken.rows)
    assert "refuses holding register 200 of unit 1 (v200): it has no such address" in taken.why
    assert "These columns are empty." in taken.why


def test_what_is_wrong_is_said_in_words(shared_device: Device) -> None:
    def why(connection: ModbusConnection) -> str:
        with pytest.raises(ConnectorError) as caught:
            probe(connection, "")
        return str(caught.value)

    [free] = free_ports(1)
    right = shared_device.connection(answer_s=0.1)
    assert "Nobody listens at the Modbus device" in why(right.model_copy(update={"port": free}))
    assert "is not known here" in why(right.model_copy(update={"host": "nowhere.invalid"}))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert "takes the connection and does not answer a read of holding registers 0 to 39" in why(
            right.model_copy(update={"port": port})
        )


def test_a_probe_shows_registers_from_a_place(shared_device: Device) -> None:
    probed = probe(shared_device.connection(), "1/holding/100")
    assert probed.rows[0] == {"holding register": 100, "value": 1100}
    found = probed.found[0]
    assert (found.path, found.holds, found.value) == ("1/holding/100", "integer", 1100)
    assert "It refuses input registers 500 to 504" in probe(shared_device.connection(), "1/input/500").words


def test_rows_are_written_and_what_the_device_does_not_take_becomes_a_dead_letter(
    shared_device: Device,
) -> None:
    registers: list[dict[str, Any]] = [
        {"column": "word", "address": 20, "scale": 0.1},
        {"column": "float", "address": 22, "type": "float32", "order": "CDAB"},
        {"column": "on", "kind": "coil", "address": 5},
        {"column": "nowhere", "address": 500},
    ]
    params = ModbusOutParams.model_validate({"connection": "d", "late_s": None, "registers": registers})
    rows: list[dict[str, Any]] = [
        {"word": 2.0, "float": 21.5, "on": True, "nowhere": None},
        {"word": 7000.0, "float": None, "on": None, "nowhere": None},
        {"word": None, "float": None, "on": None, "nowhere": 1},
    ]
    taken = trial_deliverer(ModbusDeliverer(Place("dep", "out", params, shared_device.connection())), rows)
    assert [letter.reason for letter in taken.refused] == [
        "its word cannot be written: 70000 does not fit into uint16",
        "the device refuses holding register 500 of unit 1: it has no such address (illegal data address)",
    ]
    again = ModbusDeliverer(Place("dep", "out", params, shared_device.connection()))
    again.open(1)
    again.deliver(Batch([{"word": 3.0}], [0], [0], 0, 1))
    shared_device.write(20, 20)
    again.deliver(Batch([{"word": 3.0}], [0], [0], 0, 1))  # as after an error
    again.close()
    columns = [
        {**{k: v for k, v in each.items() if k != "column"}, "name": each["column"]} for each in registers[:3]
    ]
    [row, *_] = trial_ingester(ingester(shared_device.connection(), *columns), rows=1).rows
    assert row == pytest.approx({"word": 2.0, "float": 21.5, "on": True})


@pytest.mark.full
def test_rows_wait_while_the_device_is_away_and_all_are_written() -> None:
    with Device() as device:
        device.kill()
        params = ModbusOutParams.model_validate(
            {"connection": "d", "late_s": None, "registers": [{"column": "v", "address": 0}]}
        )
        late = threading.Timer(2.0, device.start)
        late.start()
        taken = trial_deliverer(
            ModbusDeliverer(Place("dep", "out", params, device.connection())),
            [{"v": value} for value in range(5)],
            timeout_s=30,
        )
        late.join()
        assert any("Nobody listens" in status.why for status in taken.statuses)
        assert trial_ingester(ingester(device.connection(), {"name": "v", "address": 0}), 1).rows[0] == {
            "v": 4
        }


def test_a_poll_that_ends_by_an_unknown_error_is_counted(
    shared_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report("in", lambda status, note: None)
    intake = MemoryIntake(Taken(), report, 1)
    polls, stop = ingester(shared_device.connection(), every_ms=500), threading.Event()
    with monkeypatch.context() as broken:
        broken.setattr(modbus, "values_of", lambda *_: {}["bug"])
        with pytest.raises(KeyError):
            polls.run(intake, stop)
    thread = threading.Thread(target=polls.run, args=(intake, stop), daemon=True)
    thread.start()
    wait_until(lambda: report.status.gap_rows_total >= 1, "the poll that was missed")
    stop.set()
    thread.join(60)


@pytest.mark.full
def test_polls_that_are_missed_are_counted_while_the_device_hangs_or_is_away() -> None:
    with Device() as device:
        running = RunningTrial(ingester(device.connection(answer_s=0.2)), 1)
        assert running.intake.enough.wait(10)
        device.hang()
        wait_until(lambda: "does not answer a read of holding register 5" in running.status.why, "the words")
        device.go_on()
        wait_until(lambda: running.status.state == "connected", "a new connection", timeout_s=40)
        device.kill()
        wait_until(lambda: "Nobody listens" in running.status.why, "the words")
        device.start()
        before = len(running.taken.records)
        wait_until(lambda: len(running.taken.records) > before, "rows again", timeout_s=40)
        taken = running.stop()
    missed = running.status.gap_rows_total
    times = [record.time_ms or 0 for record in taken.records]
    planned = (times[-1] - times[0]) / 20 + 1
    assert missed > 10
    assert len(times) + missed == pytest.approx(planned, abs=5)
    assert all("did not answer" in note for note in taken.notes)
