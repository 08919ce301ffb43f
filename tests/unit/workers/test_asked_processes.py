"""A process that waits for the next question about a connection."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pipeline_runtime.connectors.config import name_of
from pipeline_runtime.model.connectors import TestAnswer
from pipeline_runtime.operators.connections import kinds
from tests.ports import free_ports
from tests.waiting import PATIENCE_S, wait_until
from workers.node import asked_processes as module
from workers.node.asked_processes import AskedProcesses


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process, in order."""
    found: list[subprocess.Popen[bytes]] = []
    start = module.start

    def noted(*arguments: str) -> subprocess.Popen[bytes]:
        found.append(start(*arguments))
        return found[-1]

    monkeypatch.setattr(module, "start", noted)
    return found


@pytest.fixture
def processes() -> Iterator[AskedProcesses]:
    asked = AskedProcesses()
    yield asked
    asked.close()


def answered(processes: AskedProcesses) -> TestAnswer:
    kind = kinds()["modbus"]
    asked = {
        "kind": name_of(kind),
        "fields": {"host": "127.0.0.1", "port": free_ports(1)[0]},
        "path": "",
        "find": "",
    }
    return TestAnswer.model_validate_json(processes.answer("probe", asked, PATIENCE_S))


def test_a_question_is_answered_by_the_process_that_waits(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    processes.get_ready()
    processes.get_ready()
    [waiting] = started
    assert "Nobody listens" in answered(processes).words
    assert waiting.poll() is not None
    [_, next_one] = started
    assert next_one.poll() is None
    processes.close()
    assert next_one.poll() is not None
    processes.get_ready()
    assert len(started) == 2


def test_without_a_process_that_waits_one_is_started(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.get_ready()
    started[0].kill()
    wait_until(lambda: started[0].poll() is not None, "its end")
    assert "Nobody listens" in answered(processes).words
    monkeypatch.setattr(module, "_FRESH_S", 0.0)  # the one that waits now may be about to end
    assert "Nobody listens" in answered(processes).words
    assert all(each.poll() is not None for each in started[:-1])


def test_a_process_that_does_not_answer_is_killed(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        processes.answer("probe", {}, 0.0)
    assert started[0].poll() is not None


def test_a_process_ends_without_a_question_and_with_its_node(started: list[subprocess.Popen[bytes]]) -> None:
    process = module.start("-m", "pipeline_runtime.connectors.questions")
    said, _ = process.communicate(timeout=PATIENCE_S)  # closes its input
    assert (said, process.returncode) == (b"", 0)
    process = module.start("-m", "pipeline_runtime.connectors.questions", "no.such.module")
    said, _ = process.communicate(json.dumps({"probe": {}}).encode(), timeout=PATIENCE_S)
    assert said == b""
    assert process.returncode


@pytest.mark.parametrize("limit", ["UNASKED_S", "ONE_ANSWER_S"])
def test_a_process_ends_itself_in_time(limit: str) -> None:
    code = f"""
from threading import Event
from pipeline_runtime.connectors import questions
questions.{limit} = 0.1
questions._QUESTIONS["probe"] = lambda *_: Event().wait()
questions.main()
"""
    process = module.start("-c", code)
    assert process.stdin is not None
    if limit == "ONE_ANSWER_S":
        process.stdin.write(b'{"probe": {}}\n')
        process.stdin.flush()
    assert process.wait(PATIENCE_S) == 1  # its input is still open
    process.stdin.close()


def test_an_error_that_quotes_the_question_is_not_logged() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_runtime.connectors.questions"],
        input=b'{"sample": {"connections": "hush-hush"}}\n',
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.returncode) == (b"", 1)
    assert b"ValidationError" in done.stderr
    assert b"hush" not in done.stderr
