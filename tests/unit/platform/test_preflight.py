"""A start that cannot work is refused before anything runs, with the setting that helps."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_runtime.settings import Settings
from workers.supervisor import preflight
from workers.supervisor.preflight import Port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_is_named_with_its_holder_and_the_setting(taken: int) -> None:
    (fault,) = preflight.port_faults([Port(taken, "127.0.0.1", "the web", "FOGLINE_PORT")])
    assert f"Port {taken} for the web is taken" in fault
    assert f"(process {os.getpid()}) has it" in fault
    assert "with FOGLINE_PORT" in fault


def test_a_free_port_is_no_fault(taken: int) -> None:
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        free = once.getsockname()[1]
    assert preflight.port_faults([Port(free, "127.0.0.1", "the web", "FOGLINE_PORT")]) == []


def test_an_address_of_another_machine_is_a_fault() -> None:
    (fault,) = preflight.port_faults([Port(18999, "192.0.2.1", "the web", "FOGLINE_PORT")])
    assert "on 192.0.2.1 cannot be used" in fault


def test_two_settings_that_collide_are_both_named(tmp_path: Path) -> None:
    settings = Settings.from_env({"FOGLINE_DATA": str(tmp_path), "FOGLINE_CHUNK_PORT": "18111"})
    found = [fault for fault in preflight.port_faults(preflight.ports_of(settings)) if "twice" in fault]
    assert len(found) == 1
    assert "FOGLINE_CHUNK_PORT" in found[0]
    assert "FOGLINE_NODE_PORT" in found[0]


def test_every_port_that_is_listened_on_is_looked_at(tmp_path: Path) -> None:
    settings = Settings.from_env({"FOGLINE_DATA": str(tmp_path)})
    numbers = [port.number for port in preflight.ports_of(settings)]
    assert numbers == [8000, 19092, 19093, 16379, 18100, 18110, 18111, 18112]


def test_services_of_others_take_no_port_here(tmp_path: Path) -> None:
    environ = {"FOGLINE_DATA": str(tmp_path), "FOGLINE_KAFKA": "broker:9092", "REDIS_URL": "redis://cache"}
    settings = Settings.from_env({**environ, "FOGLINE_NODES": ""})
    assert [port.number for port in preflight.ports_of(settings)] == [8000, 18100]


def test_a_full_disk_is_named_with_the_setting(tmp_path: Path) -> None:
    assert preflight.disk_faults(tmp_path, 0) == []
    (fault,) = preflight.disk_faults(tmp_path, 1 << 60)
    assert str(tmp_path) in fault
    assert "FOGLINE_DATA" in fault


def test_a_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (fault,) = preflight.java_faults()
    assert fault.startswith("Java is missing")
    assert "openjdk-17-jre-headless" in fault


def test_an_old_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (fault,) = preflight.java_faults()
    assert "11.0.2" in fault
    assert "too old" in fault


def test_a_kafka_that_does_not_answer_is_named() -> None:
    (fault,) = preflight.kafka_faults("127.0.0.1:1,no-port")
    assert "127.0.0.1:1" in fault
    assert "no-port" in fault
    assert "FOGLINE_KAFKA" in fault


def test_a_kafka_with_one_answering_broker_is_enough(taken: int) -> None:
    assert preflight.kafka_faults(f"127.0.0.1:1,127.0.0.1:{taken}") == []
