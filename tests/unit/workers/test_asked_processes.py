"""A process that waits for the next question about a connection."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic

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


def test_the_process_that_waits_answers_each_question(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    processes.get_ready()
    processes.get_ready()
    for _ in range(2):
        assert "Nobody listens" in answered(processes).words
    [waiting] = started
    assert waiting.poll() is None
    processes.close()
    assert waiting.poll() is not None
    processes.get_ready()
    assert len(started) == 1


def test_a_process_that_is_asked_while_it_is_closed_ends(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_of = module._answer_of

    def closed_meanwhile(process: subprocess.Popen[bytes], line: bytes, timeout_s: float) -> bytes:
        processes.close()
        return answer_of(process, line, timeout_s)

    monkeypatch.setattr(module, "_answer_of", closed_meanwhile)
    processes.get_ready()
    assert "Nobody listens" in answered(processes).words
    [waiting] = started
    assert waiting.poll() is not None


def test_without_a_process_that_waits_one_is_started(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.get_ready()
    started[0].kill()
    wait_until(lambda: started[0].poll() is not None, "its end")
    assert "Nobody listens" in answered(processes).words
    _, for_this_question, waiting = started
    assert for_this_question.poll() is not None
    assert waiting.poll() is None
    monkeypatch.setattr(module, "_FRESH_S", 0.0)  # the one that waits now may be about to end
    assert "Nobody listens" in answered(processes).words
    assert all(each.poll() is not None for each in started[:-1])


def test_a_process_that_does_not_answer_is_killed(
    processes: AskedProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        processes.answer("probe", {}, 0.0)
    assert started[0].poll() is not None


def test_a_process_ends_with_its_node() -> None:
    process = module.start("-m", "pipeline_runtime.connectors.questions")
    said, _ = process.communicate(timeout=PATIENCE_S)  # closes its input
    assert (said, process.returncode) == (b"", 0)
    process = module.start("-m", "pipeline_runtime.connectors.questions", "no.such.module")
    said, _ = process.communicate(json.dumps({"probe": {}}).encode(), timeout=PATIENCE_S)
    assert said == b""
    assert process.returncode


CHANGED = """
from threading import Event
from pipeline_runtime.connectors import questions
questions.{limit} = 0.1
questions._QUESTIONS["probe"] = lambda *_: Event().wait()
questions.main()
"""


def test_a_process_that_nobody_asks_ends() -> None:
    process = module.start("-c", CHANGED.format(limit="UNASKED_S"))
    assert process.wait(PATIENCE_S) == 0  # its input is still open


def test_a_fork_that_takes_too_long_ends_and_its_process_with_it() -> None:
    process = module.start("-c", CHANGED.format(limit="ONE_ANSWER_S"))
    assert module._answer_of(process, b'{"probe": {}}\n', PATIENCE_S) == b""
    assert process.poll() is not None


def test_no_answer_of_a_fork_that_has_died_is_that_of_the_next_question(
    processes: AskedProcesses,
) -> None:
    """A fork is killed before it has read the question, as by a system without memory."""
    code = CHANGED.format(limit="UNASKED_S").replace("0.1", "60.0")
    dies = code.replace("questions.main()", "questions._answer = lambda *_: os._exit(9)\nquestions.main()")
    processes._waiting = monotonic(), module.start("-c", dies)
    assert "Nobody listens" in answered(processes).words
    assert "Nobody listens" in answered(processes).words


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
