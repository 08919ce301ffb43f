"""Java libraries that no Python package ships, fetched once by the Ivy that PySpark brings along.

They are kept below the user's cache directory and verified against `jars.lock`, so a damaged or
exchanged file is found before it runs. FOGLINE_IVY_SETTINGS names an ivysettings.xml of your own
(a mirror, a proxy); without it Ivy's public Maven repository is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

KAFKA = ("org.apache.kafka:kafka_2.13:4.1.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3")
BARE_LOCAL_FS = ("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",)
_LOCK_FILE = Path(__file__).with_name("jars.lock")
_FETCH_TIMEOUT_S = 900
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


class JarsUnavailable(RuntimeError):
    """A library could not be fetched, or is not the one that jars.lock names."""


def bare_local_fs_jar() -> Path:
    """Hadoop's local filesystem without a forked `chmod` for each file; loaded by extraClassPath."""
    (jar,) = _fetch("bare-local-fs", BARE_LOCAL_FS, transitive=False)
    return jar


def kafka_jars() -> tuple[Path, ...]:
    """The class path of an Apache Kafka broker, logging included."""
    return _fetch("kafka", KAFKA, transitive=True)


def java_executable() -> str:
    """Path of the `java` to run. Raises JarsUnavailable when there is none."""
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", "java") if home else None
    if candidate is not None and candidate.is_file():
        return str(candidate)
    found = shutil.which("java")
    if found is None:
        raise JarsUnavailable("Java is missing: install a Java 17 runtime (Debian: openjdk-17-jre-headless)")
    return found


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "fogline", "jars")


def _fetch(name: str, coordinates: tuple[str, ...], *, transitive: bool) -> tuple[Path, ...]:
    # The coordinates are part of the path: another version never meets this one's files.
    tag = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:12]
    target = cache_directory() / f"{name}-{tag}"
    if not target.is_dir():
        with _only_one(target.with_suffix(".lock")):
            if not target.is_dir():
                _download(coordinates, target, transitive=transitive)
    jars = tuple(sorted(target.glob("*.jar")))
    _verify(jars, name)
    return jars


def _download(coordinates: tuple[str, ...], target: Path, *, transitive: bool) -> None:
    """Fetches into a directory beside `target` and renames it: `target` is complete or absent."""
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        (work / "ivysettings.xml").write_text(_SETTINGS)
        (work / "ivy.xml").write_text(_ivy_file(coordinates, transitive=transitive))
        settings = os.environ.get("FOGLINE_IVY_SETTINGS") or str(work / "ivysettings.xml")
        ivy = _pyspark_ivy()
        command = [java_executable(), "-jar", str(ivy), "-warn"]
        command += ["-settings", settings, "-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml")]
        command += [
            "-types",
            "jar",
            "bundle",
            "-retrieve",
            str(work / "jars" / "[artifact]-[revision].[ext]"),
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S
        )
        if done.returncode != 0 or not (work / "jars").is_dir():
            raise JarsUnavailable(
                f"{', '.join(coordinates)} could not be fetched. Nothing was installed. Check the network,"
                f" or name a mirror by FOGLINE_IVY_SETTINGS, and start again.\n"
                + (done.stdout + done.stderr)[-2000:]
            )
        (work / "jars").rename(target)
    except subprocess.TimeoutExpired:
        raise JarsUnavailable(
            f"{', '.join(coordinates)} did not arrive within {_FETCH_TIMEOUT_S} s. Nothing was installed;"
            " check the network and start again."
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _pyspark_ivy() -> Path:
    # Found, not imported: the supervisor needs no PySpark in its memory.
    spec = importlib.util.find_spec("pyspark")
    for directory in (spec.submodule_search_locations or ()) if spec else ():
        for jar in Path(directory, "jars").glob("ivy-*.jar"):
            return jar
    raise JarsUnavailable("PySpark is not installed here. Install the lock file's packages (make up does).")


def _ivy_file(coordinates: Iterable[str], *, transitive: bool) -> str:
    rows = []
    for coordinate in coordinates:
        org, artifact, revision = coordinate.split(":")
        rows.append(
            f'<dependency org="{org}" name="{artifact}" rev="{revision}" conf="default->{_conf(transitive)}"'
            f' transitive="{str(transitive).lower()}"/>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="fogline" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(rows)}</dependencies>'
        "</ivy-module>"
    )


def _conf(transitive: bool) -> str:
    return "default" if transitive else "master"


def _verify(jars: Iterable[Path], name: str) -> None:
    expected: dict[str, str] = {}
    for line in _LOCK_FILE.read_text().splitlines():
        section, file_name, digest = line.split()
        if section == name:
            expected[file_name] = digest
    found = {}
    for jar in jars:
        with jar.open("rb") as file:
            found[jar.name] = hashlib.file_digest(file, "sha256").hexdigest()
    wrong = sorted(file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file))
    if wrong:
        raise JarsUnavailable(
            f"{cache_directory()} does not hold what jars.lock names: {', '.join(wrong)}."
            " Nothing of it was run. Delete that directory and start again."
        )


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two processes that start at once fetch once."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":  # at install, so that no first start waits for the network
    try:
        bare_local_fs_jar()
        kafka_jars()
    except JarsUnavailable as error:
        sys.exit(f"fogline: {error}")
