"""The locks hold what the project asks for, and the tests run with what the lock says: so they prove it.

That a node runs with what its own, smaller lock says, tests/integration/pipelines/test_joining.py proves.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[3]
OF_EACH_ENVIRONMENT = {"pip", "setuptools", "wheel", "uv"}  # what installs the others


def pins(lock: str, everywhere: bool = False) -> dict[str, str]:
    """Name -> version of what the lock installs here, or `everywhere`, on whatever machine."""
    found = {}
    for line in (PROJECT / lock).read_text().splitlines():
        pin = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+) *(?:; *(.*?))? *\\?$", line)
        if pin is not None and (everywhere or pin[3] is None or Marker(pin[3]).evaluate()):
            found[canonicalize_name(pin[1])] = pin[2]
    return found


def asked_for(*extras: str) -> list[Requirement]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(line) for lines in lists for line in lines]


def wanted_by(needed: Requirement) -> list[Requirement]:
    """What a package wants here besides, with the extras that are asked for."""
    wishes = [Requirement(line) for line in distribution(needed.name).requires or ()]
    extras = ("", *needed.extras)
    return [
        each
        for each in wishes
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


_LOCKS = pytest.mark.parametrize(
    ("lock", "extras"), [("requirements-node.lock", ()), ("requirements.lock", ("web", "local", "dev"))]
)


@_LOCKS
def test_what_the_project_asks_for_is_in_the_lock(lock: str, extras: tuple[str, ...]) -> None:
    locked = pins(lock)
    missing = [
        str(needed)
        for needed in asked_for(*extras)
        if not needed.specifier.contains(locked.get(canonicalize_name(needed.name), "0"))
    ]
    assert missing == [], f"not in {lock}: see the comment on the locks in pyproject.toml"


@_LOCKS
def test_what_a_package_wants_besides_is_in_the_lock_too(lock: str, extras: tuple[str, ...]) -> None:
    """It is installed without a look at that."""
    locked = pins(lock)
    waiting, missing, seen = asked_for(*extras), set(), set()
    while waiting:
        needed = waiting.pop()
        if needed.specifier.contains(locked.get(canonicalize_name(needed.name), "0"), prereleases=True):
            key = (needed.name, *sorted(needed.extras))
            waiting += [] if key in seen else wanted_by(needed)
            seen.add(key)
        else:
            missing.add(str(needed))
    assert missing == set()
    assert len(seen) > len(asked_for(*extras))


def test_a_node_gets_the_versions_that_everything_is_tested_with() -> None:
    assert (
        pins("requirements-node.lock", everywhere=True).items()
        <= pins("requirements.lock", everywhere=True).items()
    )


def test_the_tests_run_with_what_the_lock_says_and_nothing_else() -> None:
    installed = {canonicalize_name(one.name): one.version for one in distributions()}
    locked = pins("requirements.lock")
    for name in OF_EACH_ENVIRONMENT - locked.keys():
        installed.pop(name, None)
    assert installed == locked, "delete .venv: the next make installs what the lock says"


_SWEEP = """
import importlib, os, pkgutil, sys
import django
django.setup(set_prefix=False)
import kombu.transport.redis, pyspark.sql.streaming.stateful_processor
for root in ("pipeline_runtime", "workers", "webapp"):
    for module in pkgutil.walk_packages([root], root + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    environ = {"DJANGO_SETTINGS_MODULE": "webapp.config.settings", "FOGLINE_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _SWEEP], cwd=PROJECT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
