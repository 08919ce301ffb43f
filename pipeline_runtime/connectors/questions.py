"""A process that answers questions of its node: what a connection leads to, or its first rows.

`python -m pipeline_runtime.connectors.questions [module ...]` reads a line for each question, one at a time,
and writes a line with its answer:

    {"probe": {"kind": "module:class", "fields": {...}, "path": "", "find": ""}}  ->  TestAnswer
    {"sample": ConnectorConfig}                                                   ->  SampleAnswer

The process loads the modules before, since the libraries of some protocols take seconds. A question may hold
secrets, and the system may hang. So a fork reads and answers each question, and ends within ONE_ANSWER_S. If
a fork fails, the process ends, so that no answer is taken for that of another question.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
import threading
from importlib import import_module
from time import monotonic
from typing import Any, NoReturn

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
from pipeline_runtime.garbage import settle
from pipeline_runtime.model.connectors import SampleAnswer, TestAnswer

log = logging.getLogger(__name__)

UNASKED_S = 120.0
"""A process that nobody asks ends after this time."""
ONE_ANSWER_S = 30.0
"""A fork that was asked ends by then, also when its node is gone."""
_NO_QUESTION = 3
"""How a fork ends if the node will ask nothing more."""


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
        said = in_words(error, where)
        return TestAnswer(works=False, words=masked(str(said)), offer=said.offer)


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
    answers = os.dup(1)
    os.dup2(2, 1)
    masked = log_without_secrets()
    for module in sys.argv[1:]:
        import_module(module)
    settle()
    code = 0
    while code == 0 and select.select([0], [], [], UNASKED_S)[0]:
        fork = os.fork()
        if not fork:
            _answer(answers, masked)
        code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
    sys.exit(0 if code in (0, _NO_QUESTION) else 1)


def _answer(answers: int, masked: Masked) -> NoReturn:
    """Answers one question, and ends this fork."""
    signal.setitimer(signal.ITIMER_REAL, ONE_ANSWER_S)  # nothing handles its signal, so it ends the fork
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(_NO_QUESTION)
    try:
        [(question, asked)] = json.loads(line).items()
        answer = _QUESTIONS[question](asked, masked).model_dump_json()
    except Exception as error:
        # The text of an error may quote the question, and its secrets.
        log.error("a question about a connection cannot be answered: %s", type(error).__name__)
        os._exit(1)
    with open(answers, "w") as file:
        file.write(answer + "\n")
    # A library's thread may hang in a connection, and must not hold the fork.
    os._exit(0)


if __name__ == "__main__":
    main()
