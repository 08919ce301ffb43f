"""A Python environment for what the benchmarks use and the product does not: Quix Streams, py-spy.

It lies below build/, and has what its lock file beside this one names. A lock is written by
uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o
requirements-NAME.lock, with the packages on standard input: quixstreams~=3.28.1, or py-spy~=0.4.3.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_INSTALLED = ".installed"
_TIMEOUT_S = 900


class EnvironmentUnavailable(RuntimeError):
    """Its packages could not be installed."""


def environment(name: str) -> Path:
    """Returns the directory of programs of the environment of requirements-NAME.lock, installed if it is
    missing. Raises EnvironmentUnavailable."""
    lock = _FOLDER / f"requirements-{name}.lock"
    tag = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:12]
    target = Path("build/bench/peers", f"{name}-{tag}").resolve()
    if (target / _INSTALLED).is_file():
        return target / "bin"
    shutil.rmtree(target, ignore_errors=True)
    python = target / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(target)], name)
    by_uv = [
        str(Path(sys.executable).with_name("uv")),
        "pip",
        "install",
        "--python",
        str(python),
        "--no-config",
    ]
    by_pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    locked = ["--quiet", "--require-hashes", "-r", str(lock)]
    try:  # as .ci/install does: uv does not read pip's configuration, so pip is there where that matters
        _run([*by_uv, *locked], name)
    except EnvironmentUnavailable:
        _run([*by_pip, *locked], name)
    (target / _INSTALLED).touch()
    return target / "bin"


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "UV_SYSTEM_CERTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentUnavailable(f"{name}: {error}") from None
    if done.returncode != 0:
        raise EnvironmentUnavailable(
            f"{name} could not be installed. Check the network, and start again.\n{done.stderr[-2000:]}"
        )
