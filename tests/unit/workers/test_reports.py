"""Tests how control takes a node's reports: which runs count, the rates, and the words for people."""

from __future__ import annotations

from pipeline_runtime.model.desired import ElementRows, ReplicaError, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from workers.control.reports.notices import notices
from workers.control.reports.rates import Rates
from workers.control.reports.runs import Runs
from workers.control.reports.totals import with_totals

STATUS = ReplicaStatus(group="d.power", role=Role.OWNER, phase="owning", epoch=Epoch(1), seq=Seq(1))


def status(**update: object) -> ReplicaStatus:
    return STATUS.model_copy(update=update)


def error(at_ms: int) -> ReplicaError:
    return ReplicaError(message="disk full", safe="All is kept.", next="Free space.", at_ms=at_ms)


def test_an_older_report_of_the_same_run_is_ignored() -> None:
    runs = Runs()
    assert runs.accepts("a", "r1", 1, ("", 0))
    assert runs.accepts("a", "r1", 5, ("", 0))
    assert not runs.accepts("a", "r1", 5, ("", 0))
    assert not runs.accepts("a", "r1", 4, ("", 0))
    assert runs.accepts("b", "r1", 4, ("", 0))


def test_a_superseded_run_is_never_listened_to_again() -> None:
    runs = Runs()
    assert runs.accepts("a", "old", 900, ("", 0))
    assert runs.accepts("a", "new", 1, ("", 0))
    assert not runs.accepts("a", "old", 901, ("", 0))
    assert runs.accepts("a", "new", 2, ("", 0))


def test_after_a_restart_of_control_the_database_says_which_run_is_the_newest() -> None:
    runs = Runs()
    assert not runs.accepts("a", "r1", 7, ("r1", 7))
    assert runs.accepts("a", "r2", 1, ("r1", 7))
    assert not runs.accepts("a", "r1", 8, ("r1", 7))


def test_rates_are_of_the_last_seconds() -> None:
    rates = Rates()
    first = rates.update("a", status(), 0)
    assert first == {"rows_in_per_s": 0.0, "rows_out_per_s": 0.0, "elements": {}, "bytes_per_s": {}}
    for second in range(1, 21):
        rate = 10 if second <= 10 else 100
        rows = 10 * min(second, 10) + 100 * max(0, second - 10)
        found = rates.update("a", status(rows_in_total=rows, rows_out_total=rows // 2), second * 1000)
        if second in (5, 20):
            assert found["rows_in_per_s"] == rate


def test_a_replica_that_counts_from_zero_again_has_no_negative_rate() -> None:
    rates = Rates()
    rates.update("a", status(rows_in_total=1000), 0)
    assert rates.update("a", status(rows_in_total=3), 1000)["rows_in_per_s"] == 0.0
    assert rates.update("a", status(rows_in_total=13), 2000)["rows_in_per_s"] == 10.0


def test_no_total_falls_while_a_replica_that_starts_again_reads_its_journal() -> None:
    before = status(rows_in_total=1000, dead_letters_total=3, elements={"a": ElementRows(rows_in_total=1000)})
    starts = with_totals(before, status(role=Role.STANDBY))
    assert (starts.rows_in_total, starts.dead_letters_total, starts.elements) == (1000, 3, before.elements)
    reads = with_totals(starts, status(rows_in_total=400, elements={"a": ElementRows(rows_in_total=400)}))
    assert (reads.rows_in_total, reads.elements["a"].rows_in_total) == (1000, 1000)
    has_read = with_totals(reads, status(rows_in_total=1010, dead_letters_total=4))
    assert (has_read.rows_in_total, has_read.dead_letters_total) == (1010, 4)


def test_a_replica_has_no_rate_before_it_owns_and_none_for_what_others_had_read() -> None:
    rates = Rates()
    rates.update("a", status(role=Role.STOPPED), 0)
    rates.update("a", status(role=Role.STANDBY, rows_in_total=5_000), 1000)
    assert rates.update("a", status(rows_in_total=5_010), 2000)["rows_in_per_s"] == 0.0
    assert rates.update("a", status(rows_in_total=5_020), 3000)["rows_in_per_s"] == 10.0


def test_each_element_of_a_group_has_rates_of_its_own() -> None:
    rates = Rates()
    for second, out in ((0, 5), (2, 9)):
        elements = {"alerts": ElementRows(rows_in_total=100 + out, rows_out_total=None)}
        found = rates.update("a", status(rows_in_total=50, elements=elements), second * 1000)
    assert found["rows_in_per_s"] == 0.0
    assert found["elements"] == {"alerts": {"rows_in_per_s": 2.0, "rows_out_per_s": None}}


def test_each_stream_has_its_bytes() -> None:
    rates = Rates()
    rates.update("a", status(stream_bytes_total={"x.out": 1000}), 0)
    found = rates.update("a", status(stream_bytes_total={"x.out": 5000, "x.late": 80}), 2000)
    assert found["bytes_per_s"] == {"x.out": 2000.0, "x.late": 40.0}


def power() -> str:
    return "Power"


def test_each_thing_is_told_once() -> None:
    failed, failed_again = status(error=error(1)), status(error=error(2))
    assert notices(None, STATUS, power, "a") == []
    [notice] = notices(STATUS, failed, power, "a")
    assert (notice.kind, notice.severity) == ("element.failed", "error")
    assert "Power on a: disk full. All is kept. Free space." in notice.message
    assert notices(failed, failed, power, "a") == []
    assert len(notices(failed, failed_again, power, "a")) == 1


def test_a_fenced_copy_is_a_warning_not_a_failure() -> None:
    [notice] = notices(STATUS, status(phase="fenced", role=Role.STOPPED, error=error(1)), power, "a")
    assert (notice.kind, notice.severity) == ("replica.fenced", "warning")


def test_a_refused_order_and_the_first_dead_letter_are_told() -> None:
    refused = status(order_refused="epoch 3 was granted")
    [notice] = notices(STATUS, refused, power, "a")
    assert notice.kind == "order.refused"
    assert "take over Power: epoch 3" in notice.message
    assert notices(refused, refused, power, "a") == []
    dead = status(dead_letters_total=1)
    [notice] = notices(STATUS, dead, power, "a")
    assert notice.kind == "element.dead_letters"
    assert notice.message.startswith("Records of Power go"), "by the name that people know"
    assert notices(dead, status(dead_letters_total=9), power, "a") == []
