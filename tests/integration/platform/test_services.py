"""Laws of the embedded services, with the real servers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis

from pipeline_runtime.spark import jars
from tests.ports import free_ports
from tests.waiting import wait_until
from workers.supervisor.services import Kafka, Redis, ServiceFailed

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_kafka_answers_when_started_is_gone_when_stopped_and_continues_with_its_data(tmp_path: Path) -> None:
    service = Kafka(tmp_path, *free_ports(2))
    assert not service.ready()
    with service:
        assert service.ready()
        pid = service.pid
        assert pid is not None
        identity = (tmp_path / "data" / "meta.properties").read_text()
    assert gone(pid)
    assert not service.ready()
    with service:
        assert service.ready()
        assert (tmp_path / "data" / "meta.properties").read_text() == identity


def test_kafka_takes_most_classes_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tmp_path / "loaded.txt"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Xlog:class+load:file={loaded}")
    with Kafka(tmp_path / "kafka", *free_ports(2)):
        lines = [line for line in loaded.read_text().splitlines() if " org.apache.kafka." in line]
    kept = [line for line in lines if "shared objects file" in line]
    assert len(kept) > len(lines) * 0.9 > 0


@pytest.mark.parametrize("failures", [1, 2])
def test_kafkas_storage_is_prepared_although_java_fails_once(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "home" / "bin" / "java"
    failing.parent.mkdir(parents=True)
    counted = f"echo again >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -gt {failures} ]"
    failing.write_text(
        f'#!/bin/sh\n{counted} || {{ echo broke; exit 9; }}\nexec {jars.java_executable()} "$@"\n'
    )
    failing.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    service = Kafka(tmp_path / "kafka", *free_ports(2))
    if failures == 1:
        service.prepare()
        assert (tmp_path / "kafka" / "data" / "meta.properties").exists()
    else:
        with pytest.raises(ServiceFailed, match=r"could not be prepared \(exit 9\)[^\n]*\nbroke"):
            service.prepare()


def test_redis_keeps_its_data_over_a_restart(tmp_path: Path) -> None:
    service = Redis(tmp_path, *free_ports(1))
    with service, redis.Redis.from_url(service.url) as client:
        client.set("key", "kept")
        pid = service.pid
    assert pid is not None
    assert gone(pid)
    with service, redis.Redis.from_url(service.url) as client:
        assert client.get("key") == b"kept"


def test_redis_asks_for_its_password_which_no_command_line_shows(tmp_path: Path) -> None:
    with Redis(tmp_path, *free_ports(1), password="a secret") as service:
        assert service.pid is not None
        assert not any("a secret" in word for word in psutil.Process(service.pid).cmdline())
        assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0
        with redis.Redis.from_url(service.url) as client:
            assert client.ping()
        with redis.Redis(port=service.port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.config_set("dir", "/")


def test_a_service_on_a_taken_port_fails_with_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        service = Redis(tmp_path, taken.getsockname()[1])
        with pytest.raises(ServiceFailed, match="ddress already in use"):
            service.start()
        assert service.pid is None


def test_stopping_twice_is_stopping_once(tmp_path: Path) -> None:
    service = Redis(tmp_path, *free_ports(1))
    service.start()
    service.stop()
    service.stop()


def test_a_service_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    program = (
        "import sys, pathlib; from workers.supervisor.services import Redis\n"
        f"service = Redis(pathlib.Path({str(tmp_path)!r}), {port}); service.start()\n"
        "print(service.pid, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.send_signal(signal.SIGKILL)
    wait_until(lambda: gone(pid), "redis-server's end, after that of the process that started it")


def test_an_exchanged_library_is_found_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = jars.bare_local_fs_jar()
    copy = tmp_path / "fogline" / "jars" / original.parent.name / original.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(original.read_bytes() + b"x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(jars.JarsUnavailable, match="does not hold what"):
        jars.bare_local_fs_jar()
