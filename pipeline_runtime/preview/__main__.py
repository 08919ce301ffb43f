"""A process that answers previews, one after another: JSON lines in, JSON lines out.

    {"question": PreviewQuestion, "kafka": KafkaSettings, "files": {reference: path},
     "arrived": {"element.port": records that have come to a connector}}  ->  PreviewAnswer

An empty line says that it takes questions.

Operators may be anybody's code. Whatever they write to files is refused, and whatever they print is dropped.
The process ends when its standard input ends.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.preview import PreviewQuestion
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.preview.run import preview

_NICE = 10
_NOWHERE = Path("/nonexistent")


def main() -> None:
    os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    default_registry()
    answers.write("\n")
    answers.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = preview(
            PreviewQuestion.model_validate(asked["question"]),
            KafkaSettings(**asked["kafka"]),
            asked["files"],
            _NOWHERE,
            int(time.time() * 1000),
            asked["arrived"],
        )
        answers.write(answer.model_dump_json() + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
