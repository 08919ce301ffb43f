"""A package of one's own: made, tested, installed, found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_runtime.new_operator import NotMade, main, make

PROJECT = Path(__file__).resolve().parents[3]


def test_its_test_passes(tmp_path):
    package = make("moving-range", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_the_test_of_a_connector_passes_and_its_code_is_tidy(tmp_path, kind):
    package = make("line-server", tmp_path, kind)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    ruff = [sys.executable, "-m", "ruff", "check", "--config", str(PROJECT / "pyproject.toml"), str(package)]
    tidy = subprocess.run([*ruff, "--ignore", "S,I"], capture_output=True, text=True)
    assert tidy.returncode == 0, tidy.stdout


def test_it_is_an_operator_of_the_registry_once_it_is_installed(tmp_path):
    """Installed as pip does it: a directory on the path, and beside it what the package says of itself."""
    package = make("moving-range", tmp_path)
    info = package / "fogline_moving_range-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fogline-moving-range\nVersion: 0.1.0\n")
    points = (package / "pyproject.toml").read_text().split('[project.entry-points."fogline.operators"]\n')[1]
    (info / "entry_points.txt").write_text(
        "[fogline.operators]\n" + points.split("\n")[0].replace('"', "") + "\n"
    )
    code = (
        "from pipeline_runtime.operators.registry import default_registry as r;"
        "o = r().create('moving-range', {'start': 3}); print(o.title, r().failures)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(PROJECT), str(package)))},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "Moving range {}\n", done.stderr


@pytest.mark.parametrize("name", ["Moving", "moving_range", "-x", "a--b", "x" * 41, "../up"])
def test_what_is_no_name_is_refused(tmp_path, name):
    with pytest.raises(NotMade, match="is no name"):
        make(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_touched(tmp_path, monkeypatch, capsys):
    with pytest.raises(NotMade, match='there is an operator "filter" already'):
        make("filter", tmp_path)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["mine"]) == 1
    assert "is there already; nothing was changed" in capsys.readouterr().err
    assert main(["other"]) == 0
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        "README.md",
        "other.py",
        "pyproject.toml",
        "test_other.py",
    ]
