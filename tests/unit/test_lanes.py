"""Laws of the lanes: no test is left out, and nothing that went wrong ends in success."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import lanes
from tests.lanes import Counts, Lane


def results(path: Path, tests: int, failures: int = 0, errors: int = 0, skipped: int = 0) -> Path:
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    path.write_text(f"<testsuites><testsuite {counts}/></testsuites>")
    return path


def test_one_lane_takes_what_the_others_do_not_name() -> None:
    all_lanes = lanes.lanes(static_checks=False)
    named = [lane for lane in all_lanes if lane.paths]
    [rest] = [lane for lane in all_lanes if not lane.paths]
    paths = [path for lane in named for path in lane.paths]
    assert len(paths) == len(set(paths))
    assert all((lanes.PROJECT / path).exists() for path in paths)
    command = lanes.pytest_command(rest, all_lanes, full=False)
    assert {f"--ignore={path}" for path in paths} == {a for a in command if a.startswith("--ignore")}
    for lane in named:
        assert set(lane.paths) <= set(lanes.pytest_command(lane, all_lanes, full=False))


def test_failures_errors_and_skips_are_counted_apart(tmp_path: Path) -> None:
    path = results(tmp_path / "a.xml", tests=10, failures=1, errors=2, skipped=3)
    assert lanes.counts_of(path) == Counts(passed=4, failed=3, skipped=3)
    assert lanes.counts_of(tmp_path / "none.xml") == Counts()


def test_each_test_that_failed_is_named_with_how_its_reason_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<testsuites><testsuite><testcase classname="tests.unit.test_a" name="test_it">'
        '<failure message="AssertionError: still waiting&#10;for it">all of it</failure></testcase>'
        '<testcase classname="tests.unit.test_a" name="test_other"/></testsuite></testsuites>'
    )
    assert lanes.failures_in(path) == ["tests.unit.test_a::test_it: AssertionError: still waiting for it"]
    assert lanes.failures_in(tmp_path / "none.xml") == []


def test_only_a_wait_for_a_page_is_tried_again_and_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "times = []\n"
        "def test_page():\n    times.append(1)\n    assert len(times) > 1, 'Locator expected to be visible'\n"
        "def test_row():\n    assert times == [], 'a row is lost'\n"
    )
    lane = Lane("one", (str(tmp_path),))
    command = [*lanes.pytest_command(lane, [lane], full=True), f"--junitxml={tmp_path / 'it.xml'}"]
    log = tmp_path / "it.log"
    with log.open("w") as file:
        subprocess.run([*command, f"--rootdir={tmp_path}"], stdout=file, check=False)
    assert lanes.counts_of(tmp_path / "it.xml") == Counts(passed=1, failed=1)
    [again] = lanes.second_tries(log)
    assert again.endswith("test_it.py::test_page")


def test_a_module_that_ran_in_two_lanes_or_in_none_is_named(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    for name in ("unit/test_a.py", "unit/test_b.py", "web/test_c.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).touch()
    (tests / "web/test_long.py").write_text("import pytest\n\npytestmark = pytest.mark.full\n")
    (tests / "web/test_both.py").write_text("pytestmark = [pytest.mark.browser, pytest.mark.full]\n")
    one, two = tmp_path / "one.xml", tmp_path / "two.xml"
    case = '<testcase classname="tests.{}" name="test_it"/>'
    for path, modules in ((one, ["unit.test_a", "unit.test_a", "web.test_c"]), (two, ["web.test_c"])):
        cases = "".join(case.format(module) for module in modules)
        path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert lanes.misplaced([one, two, tmp_path / "none.xml"], tests) == [
        "tests.unit.test_b ran in no lane",
        "tests.web.test_c ran in 2 lanes",
    ]
    assert "tests.web.test_long ran in no lane" in lanes.misplaced([one, two], tests, full=True)


@pytest.mark.parametrize(
    ("outcome", "failures", "code"),
    [
        ({"tests": 5}, [], 0),
        ({"tests": 5, "failures": 1}, ["pytest"], 1),
        ({"tests": 5, "skipped": 1}, [], 1),
        ({"tests": 5}, ["make static-check"], 1),
        ({"tests": 5}, ["misplaced"], 1),
    ],
)
def test_only_a_run_in_which_all_passed_succeeds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: dict[str, int],
    failures: list[str],
    code: int,
) -> None:
    monkeypatch.setattr(lanes, "RESULTS", tmp_path)
    misplaced = ["tests.unit.test_a ran in no lane"] if failures == ["misplaced"] else []
    monkeypatch.setattr(lanes, "misplaced", lambda *_, **__: misplaced)
    lane = Lane("only", ("tests",), failures=[] if misplaced else failures)
    results(lane.results, **outcome)
    assert lanes.report([lane], 1.0, 1.0, (1.0, 1.0), full=False) == code
    passed = outcome["tests"] - outcome.get("failures", 0) - outcome.get("skipped", 0)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{passed} passed, ")


def test_a_failed_command_says_which_tests_failed_or_its_last_words() -> None:
    vitest = ["", " FAIL  editor/tests/a.test.ts > it saves", "Error: no", " Test Files  1 failed (38)"]
    assert lanes.why(vitest) == ["FAIL  editor/tests/a.test.ts > it saves"]
    assert lanes.why([*"abcdefghijkl", ""]) == list("cdefghijkl")
