"""Previews on a node: a process of their own, which is watched."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.formats.schema_registry import no_registry
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.preview import PreviewAnswer, PreviewQuestion, SampleRow
from tests.unit.preview.previewing import GENERATOR, draft, question
from tests.waiting import PATIENCE_S, wait_until
from workers.node import previews as module
from workers.node.previews import Previews, ToRegistries

Asked = Callable[..., PreviewAnswer]
FILTER = {"id": "few", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "n % 2 = 0"}}
DOCUMENT = draft(GENERATOR, FILTER)
WITH_FILE = tuple(
    spec.model_copy(update={"files": {"upload:1": "a" * 64}}) for spec in question(DOCUMENT, "in").groups
)


def nothing_arrived(_: PreviewQuestion) -> dict[str, Any]:
    return {}


class Node:
    """Previews, and the answers that they give."""

    def __init__(
        self,
        fetch: Callable[[Mapping[str, str]], dict[str, str]],
        registries: ToRegistries = lambda _: no_registry,
    ) -> None:
        self.answers: queue.Queue[tuple[str, PreviewAnswer]] = queue.Queue()
        self.previews = Previews(
            KafkaSettings("127.0.0.1:1"),
            fetch,
            nothing_arrived,
            registries,
            lambda id, answer: self.answers.put((id, answer)),
        )
        self.previews.start()

    def ask(self, **more: Any) -> PreviewAnswer:
        """As the dashboard does: again while the process still starts."""
        while (answer := self.ask_once(**more)).refused == "starting":
            pass
        return answer

    def ask_once(self, **more: Any) -> PreviewAnswer:
        asked = question(DOCUMENT, "few").model_copy(update=more)
        self.previews.ask(asked.model_dump(mode="json"))
        id, answer = self.answers.get(timeout=PATIENCE_S)
        assert id == asked.id
        return answer


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node(dict)
    yield made
    made.previews.close()


def process_of(node: Node) -> Any:
    assert node.previews._process is not None
    return node.previews._process._process


def test_it_answers_and_keeps_its_process_for_the_next(node: Node) -> None:
    first = node.ask()
    pid = process_of(node).pid
    assert first.output is not None
    assert first.output.count == 100
    assert node.ask().read == first.read
    assert process_of(node).pid == pid
    node.previews.close()
    wait_until(lambda: node.previews._process is None, "the process to end with the node")


def test_a_process_that_takes_too_long_is_killed_and_the_next_question_has_a_new_one(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert node.ask().refused is None
    process = process_of(node)
    process.send_signal(19)  # SIGSTOP: it does nothing any more
    monkeypatch.setattr(module, "RUN_S", 0.5)
    assert node.ask().refused == "too-long"
    assert process.poll() is not None
    monkeypatch.undo()
    assert node.ask().refused is None


def test_a_process_that_does_not_even_read_a_long_question_is_killed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert node.ask().refused is None
    process = process_of(node)
    process.send_signal(19)
    monkeypatch.setattr(module, "RUN_S", 0.5)
    longer_than_a_pipe = {"other.out": (SampleRow(time_ms=0, values={"s": "x" * 1_000_000}),)}
    assert node.ask(given=longer_than_a_pipe).refused == "too-long"
    assert process.poll() is not None
    monkeypatch.undo()
    assert node.ask(given=longer_than_a_pipe).refused is None


def test_a_process_that_starts_slowly_is_let_start_but_not_for_ever(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "START_S", 0.0)
    assert node.ask_once().refused == "starting"
    first = process_of(node)
    assert node.ask().refused is None
    assert process_of(node) is first
    first.kill()
    first.wait()
    monkeypatch.setattr(module, "START_S_MAX", 0.0)
    assert node.ask_once().refused == "ended"
    assert node.previews._process is None


def test_a_process_that_takes_too_much_memory_is_killed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    assert node.ask().refused is None
    process_of(node).send_signal(19)
    monkeypatch.setattr(module, "MEMORY_BYTES", 1)
    assert node.ask().refused == "too-much"


def test_a_process_that_ends_is_told_and_made_again(node: Node) -> None:
    assert node.ask().refused is None
    process_of(node).kill()
    process_of(node).wait()
    assert node.ask().refused is None


def test_it_gets_no_secret_and_can_write_no_file(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGLINE_CLUSTER_KEY", "secret")
    assert node.ask().refused is None
    pid = process_of(node).pid
    with open(f"/proc/{pid}/environ", "rb") as environ:
        assert b"secret" not in environ.read()
    with open(f"/proc/{pid}/limits") as limits:
        [line] = [each for each in limits if each.startswith("Max file size")]
    assert line.split()[3] == "0"


def test_a_file_that_takes_long_is_fetched_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FETCH_S", 0.05)
    gate: queue.Queue[None] = queue.Queue()

    def fetch(files: Mapping[str, str]) -> dict[str, str]:
        gate.get(timeout=PATIENCE_S)
        return dict(files)

    node = Node(fetch)
    assert node.ask(groups=WITH_FILE, element="in", reads={}).refused == "fetching"
    gate.put(None)
    node.previews.close()


def test_a_file_that_cannot_be_had_is_told() -> None:
    def fetch(files: Mapping[str, str]) -> dict[str, str]:
        raise CheckpointError("The central store does not answer.", "", "")

    node = Node(fetch)
    answer = node.ask(groups=WITH_FILE, element="in", reads={})
    assert (answer.refused, answer.at) == ("unreachable", "in")
    assert "central store" in answer.why
    node.previews.close()


def test_a_disk_that_takes_no_file_is_told() -> None:
    def fetch(files: Mapping[str, str]) -> dict[str, str]:
        raise OSError(28, "No space left on device", "/var/of/the/node")

    node = Node(fetch)
    answer = node.ask(groups=WITH_FILE, element="in", reads={})
    why = "the node's disk does not take the file (No space left on device)"
    assert (answer.refused, answer.why) == ("unreachable", why)
    node.previews.close()


def test_more_questions_than_can_wait_are_refused_at_once() -> None:
    answers: list[PreviewAnswer] = []
    waiting = Previews(
        KafkaSettings("127.0.0.1:1"),
        dict,
        nothing_arrived,
        lambda _: no_registry,
        lambda _, answer: answers.append(answer),
    )
    asked: PreviewQuestion = question(DOCUMENT, "few")
    for _ in range(module.WAITING_MAX + 1):  # nobody takes them, since it was not started
        waiting.ask(asked.model_dump(mode="json"))
    assert [answer.refused for answer in answers] == ["busy"]


def test_a_question_that_cannot_be_read_is_ignored_without_a_word_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting = Previews(
        KafkaSettings("127.0.0.1:1"),
        dict,
        nothing_arrived,
        lambda _: no_registry,
        lambda *_: pytest.fail("it has no answer"),
    )
    waiting.ask({"id": "../fogline:control", "element": "secret"})
    assert "ignored" in caplog.text
    assert "secret" not in caplog.text
