"""Answers previews, one after another, in a process of its own that is watched.

    web --fogline.node.preview--> here --line--> python -m pipeline_runtime.preview --line--> here --> web

The process runs operators of any author, and an operator may take any amount of time and memory. So the
process has limits of time and memory, and the lowest priority. It has no secret beside the access to Kafka.
The node kills the process when it exceeds a limit, and when no question has come for IDLE_S. This does not
disturb the groups on the node.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
from pydantic import ValidationError

import pipeline_runtime
from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.model.preview import PreviewAnswer, PreviewQuestion, Refusal
from pipeline_runtime.spark.environment import keep_what_workers_need
from workers.node.samples import Arrived

log = logging.getLogger(__name__)

WAITING_MAX = 4
RUN_S = 6.0
"""How long one preview may take."""
STALE_S = 6.0
"""A question that has waited for this long is dropped, because the web has stopped waiting for its answer."""
FETCH_S = 2.5
"""How long a preview waits for a file that this node does not have yet. The node continues to fetch the file
after that."""
START_S = 2.5
"""How long a preview waits for its process to start. A small node may need longer. The process continues to
start after that."""
START_S_MAX = 120.0
IDLE_S = 120.0
MEMORY_BYTES = 1 << 30
LINE_BYTES_MAX = 8 << 20
_LOOK_S = 0.1
_ROOT = Path(pipeline_runtime.__file__).parents[1]

Give = Callable[[str, PreviewAnswer], None]
"""Sends an answer. The arguments are the id of the question, and the answer."""
ToRegistries = Callable[[Sequence[SealedConnection]], Registries]
"""Returns the schema registries among some connections."""


class Previews:
    def __init__(
        self,
        kafka: KafkaSettings,
        fetch: Callable[[Mapping[str, str]], dict[str, str]],
        arrived: Callable[[PreviewQuestion], Arrived | PreviewAnswer],
        registries: ToRegistries,
        give: Give,
    ) -> None:
        """`fetch` takes file reference -> sha256, and returns reference -> path. It raises CheckpointError.
        `arrived` returns the rows that have come to the connectors of a question. If none have come, it
        returns an answer that says why. `give` sends each answer."""
        self._kafka = kafka
        self._fetch = fetch
        self._arrived = arrived
        self._registries = registries
        self._give = give
        self._asked: queue.Queue[tuple[float, PreviewQuestion] | None] = queue.Queue(WAITING_MAX)
        self._process: _Process | None = None
        self._thread = threading.Thread(target=self._run, name="previews", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with suppress(queue.Full):
            self._asked.put_nowait(None)
        process = self._process
        if process is not None:
            process.kill()

    def ask(self, question: dict[str, Any]) -> None:
        """Puts a question into the queue, and returns at once. If the queue is full, sends the answer
        "busy". A question that cannot be read is only logged."""
        try:
            asked = PreviewQuestion.model_validate(question)
        except ValidationError as error:
            log.warning("ignored a preview that cannot be read: %d faults", error.error_count())
            return
        try:
            self._asked.put_nowait((monotonic(), asked))
        except queue.Full:
            self._give(asked.id, PreviewAnswer(refused="busy"))

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                found = self._asked.get(timeout=IDLE_S)
            except queue.Empty:
                self._end()
                continue
            if found is None:
                self._end()
                return
            asked_s, question = found
            if monotonic() - asked_s > STALE_S:
                continue
            try:
                answer = self._answer(question)
            except Exception as error:
                # The error's text may hold values of rows, and a log must not have them.
                log.error("a preview failed: %s", type(error).__name__)
                self._end()
                answer = PreviewAnswer(refused="ended")
            self._give(question.id, answer)

    def _answer(self, question: PreviewQuestion) -> PreviewAnswer:
        files = self._files({ref: sha for spec in question.groups for ref, sha in spec.files.items()})
        if isinstance(files, PreviewAnswer):
            reader = next(spec.elements[0].id for spec in question.groups if spec.files)
            return files.model_copy(update={"at": reader})
        if self._process is None or not self._process.alive:
            self._process = _Process()
        if not self._process.has_started(START_S):
            if self._process.age_s > START_S_MAX:
                self._end()
                return PreviewAnswer(refused="ended")
            return PreviewAnswer(refused="starting")
        arrived = self._arrived(question)
        if isinstance(arrived, PreviewAnswer):
            return arrived
        asked = {
            # Operators may be of any author, so the process gets no connection.
            "question": question.model_copy(update={"connections": ()}).model_dump(mode="json"),
            "kafka": asdict(self._kafka),
            "files": files,
            "arrived": arrived,
        }
        answer = self._process.answer(asked, self._registries(question.connections))
        if not isinstance(answer, PreviewAnswer):
            self._end()
            return PreviewAnswer(refused=answer, at=question.element)
        return answer

    def _files(self, wanted: Mapping[str, str]) -> dict[str, str] | PreviewAnswer:
        """Returns reference -> path, or an answer that says why the files are not here yet. `wanted`:
        reference -> sha256."""
        found: queue.Queue[dict[str, str] | PreviewAnswer] = queue.Queue()

        def fetch() -> None:
            try:
                found.put(self._fetch(wanted))
            except CheckpointError as error:
                found.put(PreviewAnswer(refused="unreachable", why=str(error)))
            except OSError as error:  # its text may hold a path of the node
                why = f"the node's disk does not take the file ({error.strerror})"
                found.put(PreviewAnswer(refused="unreachable", why=why))

        if not wanted:
            return {}
        threading.Thread(target=fetch, name="preview file", daemon=True).start()
        try:
            return found.get(timeout=FETCH_S)
        except queue.Empty:
            return PreviewAnswer(refused="fetching")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()


class _Process:
    """One process that answers previews. Only the thread of `Previews` uses it, except for `kill`."""

    def __init__(self) -> None:
        environment = dict(os.environ)
        keep_what_workers_need(environment)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipeline_runtime.preview"],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that a Ctrl-C in the node's terminal reaches only the node
        )
        self._begun_s = monotonic()
        self._started = threading.Event()
        self._said: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, name="preview answers", daemon=True).start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def age_s(self) -> float:
        return monotonic() - self._begun_s

    def has_started(self, wait_s: float) -> bool:
        """Returns True as soon as the process has started or ended, and False after `wait_s`."""
        return self._started.wait(wait_s)

    def answer(self, asked: Mapping[str, Any], registries: Registries) -> PreviewAnswer | Refusal:
        """Writes a question to the process, and returns its answer. The process has to have started.
        Meanwhile the process gets the schemas that it asks for. Returns a refusal if there is no answer.
        Kill the process then, because it cannot answer another question."""
        until_s = monotonic() + RUN_S
        if (why := self._say(asked, until_s)) is not None:
            return why
        while monotonic() < until_s:
            if self._memory_bytes() > MEMORY_BYTES:
                return "too-much"
            try:
                line = self._said.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if not line.endswith(b"\n"):
                return "ended"
            said = json.loads(line)
            if "answer" in said:
                return PreviewAnswer.model_validate(said["answer"])
            if (why := self._say(_schema(registries, said), until_s)) is not None:
                return why
        return "too-long"

    def _say(self, data: Mapping[str, Any], until_s: float) -> Refusal | None:
        """Writes data to the process. Returns why the process has not read it, or None if it has."""
        assert self._process.stdin is not None
        # A process that hangs does not read a long question, and this thread would wait without an end.
        reads_nothing = threading.Timer(max(0.0, until_s - monotonic()), self._process.kill)
        reads_nothing.start()
        try:
            self._process.stdin.write(json.dumps(data).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return "too-long" if monotonic() >= until_s else "ended"
        finally:
            reads_nothing.cancel()
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _memory_bytes(self) -> int:
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def _listen(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.readline(LINE_BYTES_MAX)  # an empty line says that it has started
        self._started.set()
        while line := self._process.stdout.readline(LINE_BYTES_MAX):
            self._said.put(line)
        self._said.put(b"")


def _schema(registries: Registries, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the message to the process: the schema that it asked for, or why there is none."""
    try:
        return {"schema": asdict(registries(asked["registry"]).schema(asked["number"]))}
    except SchemaRegistryError as error:
        return {"why": str(error)}
