"""The one SparkSession of a node process. docs/explanation/measured-settings.md says what its settings
gain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipeline_runtime.spark.callbacks import start_callback_server
from pipeline_runtime.spark.jars import bare_local_fs_jar, class_archive_options
from pipeline_runtime.spark.source import GatedSource

PROJECT = Path(__file__).resolve().parents[2]
WORKER_PYTHON = Path(__file__).with_name("worker-python")

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Spark's ports for tasks and blocks take Java objects. Whoever speaks there needs a secret that Java
    # makes and keeps to itself.
    "spark.authenticate": "true",
    "spark.sql.session.timeZone": "UTC",
    # ${name} in an expression is text. Spark would replace it by settings and Java's environment.
    "spark.sql.variable.substitute": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Over TCP a Python process would lose 40 ms per task to Nagle's algorithm and delayed ACKs.
    "spark.python.unix.domain.socket.enabled": "true",
    # A starved machine needs longer than the 15 s default to start a Python process.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # How often Spark stores a snapshot of its state. Each batch writes the names of all batches since the
    # last snapshot, in at most 64 KiB. After a thousand batches without a snapshot the state could no longer
    # be written, here or anywhere. With the default of 60 s that happened with fast batches, and with moves
    # in quick succession.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # Hadoop's own local file system forks `chmod` for each file: a third of all CPU.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}

# How many tasks run at the same time. Each group has at least one, which waits for rows and costs a thread.
TASKS_MAX = 1000

# On a small machine C2 compiles for minutes and makes every cold path twice as slow. And Java would fill a
# third of its first heap, whose size depends on the machine's memory, before it first looks for garbage.
SMALL_MACHINE_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmn32m"

# Made at install by spark/class_archive.py. With it a cold start takes little more than half the CPU.
CLASS_ARCHIVE = Path(sys.prefix, "java-classes.jsa")


def open_session(
    name: str, scratch: Path, sockets: Path, cores: int = 2, memory_mib: int = 1024
) -> SparkSession:
    """Start (or return) this process's session.

    `scratch`: a directory for Spark's own temporary files. `sockets`: a directory with a short path, which
    nobody else can enter, for the sockets between Java and Python. Whoever reaches one can read rows, or run
    code.
    """
    use_worker_python()
    scratch.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(f"local[{TASKS_MAX}]").appName(name)
    for key, value in _CONF.items():
        builder = builder.config(key, value)
    session = (
        builder.config("spark.driver.memory", f"{memory_mib}m")
        .config("spark.driver.extraClassPath", _class_path())
        .config("spark.driver.extraJavaOptions", _java_options())
        .config("spark.default.parallelism", str(cores))
        .config("spark.local.dir", str(scratch))
        .config("spark.python.unix.domain.socket.dir", str(sockets))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Spark would start this server with the first query. It waits with select(), which takes no file
    # descriptor above 1,023, and by then a node of many groups may have that many files open.
    start_callback_server(session.sparkContext._gateway)
    _register_source(session)
    return session


def _java_options() -> str:
    """Returns the Java options of every Spark session, in the shell's notation."""
    options = os.environ.get("FOGLINE_JAVA_OPTIONS", SMALL_MACHINE_JAVA_OPTIONS)
    # FOGLINE_JAVA_OPTIONS comes last, so that an archive which it names is taken instead.
    return " ".join([*(f'"{option}"' for option in class_archive_options(CLASS_ARCHIVE)), options])


def _register_source(session: SparkSession) -> None:
    """Make Fogline's source known, with an environment that queries can change at the same time.

    All queries share the source's environment. Each puts settings into it when it starts, while others may
    write it into their tasks. PySpark makes it a HashMap. Two queries that start together can leave a wrong
    size in that, and then no task of this process can be read any more (OptionalDataException).
    """
    context: Any = session.sparkContext
    environment = context.environment
    context.environment = context._jvm.java.util.concurrent.ConcurrentHashMap(environment)
    try:
        session.dataSource.register(GatedSource)
    finally:
        context.environment = environment


def use_worker_python() -> None:
    """Have Spark start its Python processes with this interpreter and path. It starts seven before a first
    batch."""
    # The source must be importable in those processes. A module that is pickled by value has fresh globals in
    # every batch, and with them a new Kafka consumer.
    path = os.environ.get("PYTHONPATH", "")
    if str(PROJECT) not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = path = os.pathsep.join(filter(None, [str(PROJECT), path]))
    os.environ["FOGLINE_WORKER_PYTHON"], os.environ["FOGLINE_WORKER_PATH"] = sys.executable, path
    os.environ["FOGLINE_WORKER_START"] = str(WORKER_PYTHON.with_name("worker_start.py"))
    # Some file systems and copies lose the executable bit. Processes then start more slowly.
    os.environ["PYSPARK_PYTHON"] = str(WORKER_PYTHON) if os.access(WORKER_PYTHON, os.X_OK) else sys.executable


def _class_path() -> str:
    """What is put in front of Spark's own class path: our file system, and the libraries with the closures of
    every batch. Spark reads each closure's class file every time, and looks for it in one jar after the
    other."""
    jars = Path(pyspark.__path__[0], "jars")
    first = [jar for name in ("sql", "core", "catalyst") for jar in jars.glob(f"spark-{name}_*.jar")]
    return os.pathsep.join(str(jar) for jar in [bare_local_fs_jar(), *first])


def java_process() -> subprocess.Popen[bytes] | None:
    """Returns the Java process of this process's Spark session, or None if it has none of its own."""
    return getattr(SparkContext._gateway, "proc", None)
