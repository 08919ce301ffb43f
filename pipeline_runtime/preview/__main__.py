"""A process that answers previews, one after another: JSON lines in, JSON lines out.

    {"question": PreviewQuestion, "kafka": KafkaSettings, "files": {reference: path},
     "arrived": {"element.port": records that have come to a connector}}  ->  {"answer": PreviewAnswer}

An empty line says that it takes questions. While it works on one it may ask for schemas. The node answers,
since the process has no secret:

    {"registry": name of its connection, "number": number of a schema}  ->  {"schema": {...}} or {"why": text}

Operators may be anybody's code. Whatever they write to files is refused, and whatever they print is dropped.
The process ends when its standard input ends.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline_runtime.formats.schema_registry import RegisteredSchema, SchemaRegistryError
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.preview import PreviewQuestion
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.preview.run import preview

_NICE = 10
_NOWHERE = Path("/nonexistent")


class _AskedRegistry:
    """Implements formats.schema_registry.Registry for what reads."""

    def __init__(self, name: str, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._name = name
        self._ask = ask

    def schema(self, number: int) -> RegisteredSchema:
        answer = self._ask({"registry": self._name, "number": number})
        if "why" in answer:
            raise SchemaRegistryError(answer["why"])
        return RegisteredSchema(**answer["schema"])

    def number(self, subject: str, schema: str) -> int:
        raise SchemaRegistryError("a preview registers no schema.")


def main() -> None:
    os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    default_registry()
    asking = threading.Lock()

    def say(line: str) -> None:
        answers.write(line + "\n")
        answers.flush()

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        with asking:  # records may be parsed by another thread
            say(json.dumps(question))
            answer: dict[str, Any] = json.loads(sys.stdin.readline())
            return answer

    say("")
    while line := sys.stdin.readline():
        asked = json.loads(line)
        answer = preview(
            PreviewQuestion.model_validate(asked["question"]),
            KafkaSettings(**asked["kafka"]),
            asked["files"],
            _NOWHERE,
            int(time.time() * 1000),
            asked["arrived"],
            lambda name: _AskedRegistry(name, ask),
        )
        say(json.dumps({"answer": answer.model_dump(mode="json")}))


if __name__ == "__main__":
    main()
