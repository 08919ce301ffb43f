"""The error text of a failure."""

import pytest

from pipeline_runtime.journal.records import JournalDamaged
from pipeline_runtime.journal.view import JournalBroken
from pipeline_runtime.kafka.partition_reader import RangeGone
from pipeline_runtime.kafka.transactions import RecordsRefused
from pipeline_runtime.replica.errors import explain
from pipeline_runtime.replica.input_offsets import InputTopicDiffers
from pipeline_runtime.replica.local_state import LocalStateDamaged


class OfJava(Exception):
    """As py4j's: its text is Java's, which has ended."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_error_whose_text_went_with_java_is_explained_all_the_same() -> None:
    explained = explain(OfJava(), "a traceback", 7)
    assert explained.message.startswith("OfJava, whose text is gone with Spark's Java process")
    assert (explained.traceback, explained.at_ms) == ("a traceback", 7)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RangeGone("t-0 begins at offset 9, but 3 is needed"), "rows-gone"),
        (RecordsRefused("too large"), "records-refused"),
        (InputTopicDiffers("the topic t has 3 partitions"), "topic-partitions-differ"),
        (LocalStateDamaged("a file is missing"), "state-damaged"),
        (JournalBroken("in the journal, seq 5 follows 3"), "journal-damaged"),
        (JournalDamaged("a record cannot be read"), "journal-damaged"),
        (ZeroDivisionError("division by zero"), "operator-failed"),
        (RuntimeError("Python worker failed to connect back"), "node-starved"),
    ],
)
def test_an_error_has_the_code_of_what_was_raised(error: Exception, code: str) -> None:
    explained = explain(error, "", 7)
    assert explained.code == code
    assert explained.damaged == (code == "state-damaged")


def test_rows_that_only_a_follower_misses_are_in_a_newer_checkpoint() -> None:
    explained = explain(RangeGone("t-0 begins at offset 9, but 3 is needed"), "", 7, follows=True)
    assert (explained.code, explained.damaged) == ("state-outdated", True)


def test_what_spark_has_wrapped_has_the_code_and_the_words_of_what_was_inside() -> None:
    text = """An exception was thrown from the Python foreachBatch function:
Traceback (most recent call last):
  File "sink.py", line 1, in commit
pipeline_runtime.kafka.transactions.RecordsRefused: the topic t does not take a record"""
    explained = explain(RuntimeError(text), "", 7)
    assert explained.code == "records-refused"
    assert explained.message == "the topic t does not take a record"


def test_what_an_operator_has_raised_keeps_the_name_of_its_error() -> None:
    error = RuntimeError("Traceback (most recent call last):\nValueError: no number")
    assert explain(error, "", 7).message == "ValueError: no number"
