"""Laws of the process table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline_runtime.settings import Settings
from workers.supervisor import table
from workers.supervisor.processes import ProcessSpec

PROJECT = Path(__file__).resolve().parents[3]


def specs(tmp_path: Path, **environ: str) -> dict[str, ProcessSpec]:
    settings = Settings.from_env({"FOGLINE_DATA": str(tmp_path), **environ})
    return {spec.name: spec for stage in table.stages(settings, lambda _: None) for spec in stage}


def test_services_of_others_are_not_started(tmp_path: Path) -> None:
    ours = specs(tmp_path, FOGLINE_KAFKA="broker:9092", REDIS_URL="redis://cache")
    assert not {"kafka", "redis"} & ours.keys()
    assert {"kafka", "redis"} < specs(tmp_path).keys()


def test_nodes_stop_before_all_that_they_need(tmp_path: Path) -> None:
    table_ = specs(tmp_path)
    ranks = [table_[name].stop_rank for name in ("edge-a", "control", "web", "redis", "kafka")]
    assert ranks == sorted(set(ranks))
    assert len({table_[name].stop_rank for name in ("edge-a", "edge-b", "cloud")}) == 1


def test_the_demo_can_be_left_out(tmp_path: Path) -> None:
    assert "demo" in specs(tmp_path)
    assert "demo" not in specs(tmp_path, FOGLINE_DEMO="0")


def test_the_procfile_runs_what_the_supervisor_runs(tmp_path: Path) -> None:
    lines = [line for line in (PROJECT / "Procfile").read_text().splitlines() if not line.startswith("#")]
    declared = dict(line.split(": ", 1) for line in lines)
    ours = specs(tmp_path, FOGLINE_KAFKA="broker:9092", REDIS_URL="redis://cache", FOGLINE_DEMO="0")
    lasting = {name: spec for name, spec in ours.items() if not spec.once}
    assert declared.keys() == lasting.keys()
    for name, line in declared.items():
        # None hands over what it owns to others that stop as well.
        leave = lasting[name].environment.get("FOGLINE_LEAVE_S")
        first = "" if leave is None else f"FOGLINE_LEAVE_S={leave} "
        assert line.startswith(first)
        assert (leave == "0") == (name in ("edge-a", "edge-b", "cloud"))
        words = line.removeprefix(first).replace("${FOGLINE_HOST:-127.0.0.1}", "127.0.0.1")
        words = words.replace("${FOGLINE_PORT:-8000}", "8000")
        words = words.replace(
            '$([ "${FOGLINE_HTTPS:-0}" = 1 ] || echo --no-proxy-headers)', "--no-proxy-headers"
        )
        assert words.split()[1:] == list(lasting[name].command())[1:]
        assert lasting[name].command()[0] == sys.executable


@pytest.mark.parametrize(("https", "believed"), [("", False), ("0", False), ("1", True)])
def test_who_calls_is_believed_of_a_proxy_alone(tmp_path: Path, https: str, believed: bool) -> None:
    command = specs(tmp_path, FOGLINE_HTTPS=https)["web"].command()
    assert ("--no-proxy-headers" not in command) is believed
