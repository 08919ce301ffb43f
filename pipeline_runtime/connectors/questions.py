"""A process that answers one question of its node, and ends: what a connection leads to, or its first rows.

`python -m pipeline_runtime.connectors.questions [module ...]` reads one line, and writes one line:

    {"probe": {"kind": "module:class", "fields": {...}, "path": "", "find": ""}}  ->  TestAnswer
    {"sample": ConnectorConfig}                                                   ->  SampleAnswer

It loads the modules while it waits for the question, since the libraries of some protocols take a second. The
question may hold secrets, and the system may hang. So the process answers nothing else, and ends within
ONE_ANSWER_S.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from importlib import import_module
from time import monotonic
from typing import Any

from pipeline_runtime.connectors.config import (
    ConnectorConfig,
    fitting,
    made,
    named,
    reached,
    secrets_in,
    secrets_of,
)
from pipeline_runtime.connectors.in_words import in_words
from pipeline_runtime.connectors.masked import Masked, log_without_secrets
from pipeline_runtime.connectors.name_servers import look_up
from pipeline_runtime.connectors.sample import sampled
from pipeline_runtime.connectors.sdk import ConnectorError, shown_rows
from pipeline_runtime.model.connectors import SampleAnswer, TestAnswer

log = logging.getLogger(__name__)

UNASKED_S = 120.0
"""A process that nobody asks ends after this time."""
ONE_ANSWER_S = 30.0
"""A process that was asked ends by then, also when its node is gone."""


def probe(asked: Any, masked: Masked) -> TestAnswer:
    """Returns what a probe, or a search, has found."""
    kind = named(asked["kind"])
    masked.hide(secrets_in(kind, asked["fields"]))
    where = kind.title
    try:
        with fitting("connection"):
            connection = reached(kind.model_validate(asked["fields"]))
        where = connection.where
        look_up(connection, threading.Event())
        find = asked["find"]
        if find and kind.search is None:
            raise ConnectorError(f"{where} cannot be searched: look into what it lists.", lasting=True)
        probed = (
            named(kind.search)(connection, find) if find else named(kind.probe)(connection, asked["path"])
        )
        rows = shown_rows(probed.rows)
        return TestAnswer(works=True, words=probed.words, rows=rows, found=probed.found)
    except Exception as error:
        return TestAnswer(works=False, words=masked(str(in_words(error, where))))


def sample(asked: Any, masked: Masked) -> SampleAnswer:
    """Returns the first records of a connector, or why there are none."""
    asked_s = monotonic()
    config = ConnectorConfig.model_validate(asked)
    masked.hide(secrets_of(config))
    try:
        found = sampled(made(config), asked_s)
    except Exception as error:
        found = SampleAnswer(why=str(in_words(error, config.element)))
    return found.model_copy(update={"why": masked(found.why)})


_QUESTIONS = {"probe": probe, "sample": sample}


def main() -> None:
    # Standard output is for the node alone: whatever a library prints goes elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    masked = log_without_secrets()
    unasked = _end_after(UNASKED_S)
    for module in sys.argv[1:]:
        import_module(module)
    line = sys.stdin.readline()
    unasked.cancel()
    if line:
        _end_after(ONE_ANSWER_S)
        try:
            [(question, asked)] = json.loads(line).items()
            answer = _QUESTIONS[question](asked, masked).model_dump_json()
        except Exception as error:
            # The text of an error may quote the question, and its secrets.
            log.error("a question about a connection cannot be answered: %s", type(error).__name__)
            os._exit(1)
        answers.write(answer + "\n")
        answers.flush()
    # A library's thread may hang in a connection, and must not hold the process.
    os._exit(0)


def _end_after(seconds: float) -> threading.Timer:
    end = threading.Timer(seconds, os._exit, (1,))
    end.daemon = True
    end.start()
    return end


if __name__ == "__main__":
    main()
