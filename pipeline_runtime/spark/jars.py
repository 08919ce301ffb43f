"""Java libraries that no Python package ships, fetched once by the Ivy that PySpark brings along.

    python -m pipeline_runtime.spark.jars         fetches them, so that no first start waits for the network
    python -m pipeline_runtime.spark.jars lock    rewrites jars.lock, after a change of the versions below

`jars.lock` names each library with all that it needs, and their SHA-256. So only the files themselves are
fetched, and a damaged or exchanged one is found before it runs. The files are kept below the user's cache
directory. FOGLINE_IVY_SETTINGS names an ivysettings.xml of your own (a mirror, a proxy). Without it Ivy's
public Maven repository is used.
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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_WANTED = {
    "kafka": ("org.apache.kafka:kafka_2.13:4.1.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
    "bare-local-fs": ("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",),
}
_WITH_ALL_THEY_NEED = ("kafka",)
_LOCK_FILE = Path(__file__).with_name("jars.lock")
_FETCH_TIMEOUT_S = 900
# No checksums: jars.lock has better ones. No poms: jars.lock also names all that they lead to, and to read
# them takes three times as long as to fetch the jars.
_SETTINGS = """<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="{poms}"/></resolvers>
</ivysettings>
"""


class _Jar(NamedTuple):
    coordinates: str  # "organisation:artifact:revision"
    sha256: str

    @property
    def file_name(self) -> str:
        _, artifact, revision = self.coordinates.split(":")
        return f"{artifact}-{revision}.jar"


class JarsUnavailable(RuntimeError):
    """A library could not be fetched, or is not the one that jars.lock names."""


def bare_local_fs_jar() -> Path:
    """Hadoop's local file system, but without a forked `chmod` for each file. It is loaded by
    extraClassPath."""
    (jar,) = locked_jars("bare-local-fs")
    return jar


def kafka_jars() -> tuple[Path, ...]:
    """The class path of an Apache Kafka broker, logging included."""
    return locked_jars("kafka")


def java_executable() -> str:
    """The path of the `java` to run. Raises JarsUnavailable if there is none."""
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", "java") if home else None
    if candidate is not None and candidate.is_file():
        return str(candidate)
    found = shutil.which("java")
    if found is None:
        raise JarsUnavailable("Java is missing: install a Java 17 runtime (Debian: openjdk-17-jre-headless)")
    return found


def class_archive_options(archive: Path) -> list[str]:
    """Returns options of `java` for a process that starts from the classes in `archive`, or none if there is
    no archive.

    They name the address that the archive was made for. At another address, which Java would choose
    otherwise, it writes into most of the archive's pages, and each process has 90 MB of its own instead of
    sharing the file's.
    """
    if not archive.is_file():
        return []
    at_its_address = ["-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"]
    return [f"-XX:SharedArchiveFile={archive}", *at_its_address]


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "fogline", "jars")


def locked_jars(name: str, lock_file: Path = _LOCK_FILE) -> tuple[Path, ...]:
    """Returns the libraries that the lock file names under `name`, fetched where they are missing. Raises
    JarsUnavailable."""
    locked = _locked(name, lock_file)
    # The coordinates are part of the path: another version never meets this one's files.
    tag = hashlib.sha256("\n".join(jar.coordinates for jar in locked).encode()).hexdigest()[:12]
    target = cache_directory() / f"{name}-{tag}"
    if not target.is_dir():
        with _only_one(target.with_suffix(".lock")):
            if not target.is_dir():
                _download([jar.coordinates for jar in locked], target)
    jars = tuple(sorted(target.glob("*.jar")))
    _verify(jars, locked)
    return jars


def _locked(name: str, lock_file: Path) -> list[_Jar]:
    rows = (line.split() for line in lock_file.read_text().splitlines())
    return [_Jar(coordinates, digest) for section, coordinates, digest in rows if section == name]


def _download(
    coordinates: Sequence[str],
    target: Path,
    names: str = "[artifact]-[revision]",
    *,
    transitive: bool = False,
) -> None:
    """Fetch into a directory beside `target` and rename that: `target` is complete, or absent."""
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        (work / "ivysettings.xml").write_text(_SETTINGS.format(poms=str(transitive).lower()))
        (work / "ivy.xml").write_text(_ivy_file(coordinates, transitive=transitive))
        settings = os.environ.get("FOGLINE_IVY_SETTINGS") or str(work / "ivysettings.xml")
        command = [java_executable(), "-jar", str(_pyspark_ivy()), "-warn", "-settings", settings]
        command += ["-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml"), "-types", "jar", "bundle"]
        command += ["-retrieve", str(work / "jars" / f"{names}.[ext]")]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S
        )
        if done.returncode != 0 or not (work / "jars").is_dir():
            raise JarsUnavailable(
                f"{target.name} could not be fetched. Nothing was installed. Check the network,"
                f" or name a mirror by FOGLINE_IVY_SETTINGS, and start again.\n"
                + (done.stdout + done.stderr)[-2000:]
            )
        (work / "jars").rename(target)
    except subprocess.TimeoutExpired:
        raise JarsUnavailable(
            f"{target.name} did not arrive within {_FETCH_TIMEOUT_S} s. Nothing was installed;"
            " check the network and start again."
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _pyspark_ivy() -> Path:
    # PySpark is looked up, not imported: the supervisor does not need it in its memory.
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
            f'<dependency org="{org}" name="{artifact}" rev="{revision}" conf="default->default"'
            f' transitive="{str(transitive).lower()}"/>'
        )
    return (
        '<ivy-module version="2.0"><info organisation="fogline" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(rows)}</dependencies>'
        "</ivy-module>"
    )


def _verify(jars: Iterable[Path], locked: Iterable[_Jar]) -> None:
    expected = {jar.file_name: jar.sha256 for jar in locked}
    found = {jar.name: _sha256(jar) for jar in jars}
    wrong = sorted(file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file))
    if wrong:
        raise JarsUnavailable(
            f"{cache_directory()} does not hold what jars.lock names: {', '.join(wrong)}."
            " Nothing of it was run. Delete that directory and start again."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_lock(
    lock_file: Path, wanted: Mapping[str, Sequence[str]], with_all_they_need: Collection[str]
) -> None:
    """Writes the lock file: the wanted libraries by name, each with all that it needs where the name is in
    `with_all_they_need`."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, coordinates in sorted(wanted.items()):
            target = Path(directory, name)
            names = "[organisation]:[artifact]:[revision]"
            _download(coordinates, target, names, transitive=name in with_all_they_need)
            rows += [f"{name} {jar.stem} {_sha256(jar)}" for jar in sorted(target.glob("*.jar"))]
    lock_file.write_text("\n".join(rows) + "\n")


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Held by one process at a time, so that two which start together fetch only once."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["lock"]:
            write_lock(_LOCK_FILE, _WANTED, _WITH_ALL_THEY_NEED)
        else:
            bare_local_fs_jar()
            kafka_jars()
    except JarsUnavailable as error:
        sys.exit(f"fogline: {error}")
