"""What is said of a failure."""

from pipeline_runtime.replica.errors import explain


class OfJava(Exception):
    """As py4j's: its text is Java's, which has ended."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_error_whose_text_went_with_java_is_explained_all_the_same() -> None:
    explained = explain(OfJava(), "a traceback", 7)
    assert explained.message.startswith("OfJava, whose text is gone with Spark's Java process")
    assert (explained.traceback, explained.at_ms) == ("a traceback", 7)
