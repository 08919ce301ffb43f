"""A process ends with any thread without which it is of no use, and says so; real processes, real threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.ports import free_ports

PROJECT = Path(__file__).resolve().parents[3]

# Prints {thread: [what the process exited with, what it said]}. Each process is a fork of this one, which has
# imported all: that takes longer than the rest. Redis and Kafka are away.
_FORKS = """
import ctypes, json, logging, os, sys, tempfile, threading, time

up = threading.Event()

class Struck(BaseException):
    pass

class StruckLoop(SystemExit):
    '''An event loop swallows all others when they come in a callback of its own; Celery swallows this one.'''

RESTS = ("wait", "retry_over_time", "run")  # of threading, of Celery without a broker, of asyncio

def strike(name):
    '''Raises Struck in that thread, where it rests: in the midst of an import, say, it would keep a lock.'''
    up.wait()
    error = StruckLoop if name == "chunk-service" else Struck
    while True:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident)
            if thread.name.startswith(name) and frame is not None and frame.f_code.co_name in RESTS:
                ident, raised = ctypes.c_ulong(thread.ident), ctypes.py_object(error)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, raised)
                time.sleep(3)  # it may have been where errors are swallowed, as in __del__
        time.sleep(0.01)

def outcome(name, run):
    said = tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(1, 9)  # it ends with this process, however that ends
        os.dup2(said.fileno(), 2)
        threading.Thread(target=strike, args=(name,), daemon=True).start()
        code = 99
        try:
            code = run()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    said.seek(0)
    return os.waitstatus_to_exitcode(status), said.read().decode()

logging.basicConfig(level="INFO")
"""

_NODE = """
from pathlib import Path
from types import SimpleNamespace
from pyspark import SparkContext
from pipeline_runtime.kafka.clients import KafkaSettings
from tests.ports import free_ports
from workers.node.identity import Identity
from workers.node.process import NodeProcess

class Engine:
    def __init__(self, *_): pass
    def start(self): SparkContext._gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: None))
    def close(self): pass

class Node(NodeProcess):
    def start(self):
        super().start()
        up.set()

def run():
    (port,) = free_ports(1)
    directory = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    return Node(Identity(
        name="barn", directory=directory, kafka=KafkaSettings("127.0.0.1:9"), redis_url="redis://127.0.0.1:9",
        cluster_key="key", central_url="http://127.0.0.1:9", listen_host="127.0.0.1", port=port,
        url=f"http://127.0.0.1:{port}", checkpoint_s=0.2,
    ), Engine).run()
"""

_CONTROL = """
import django
django.setup(set_prefix=False)
from django.core.management import call_command
from django.db import connections
from pipeline_runtime.settings import Settings
from workers.control.checkpoints import central
from workers.control.process import ControlProcess

call_command("migrate", verbosity=0)
connections.close_all()
central.PRUNE_INTERVAL_S = 0.2

class Control(ControlProcess):
    def start(self):
        super().start()
        up.set()

def run():
    return Control(Settings.from_env()).run()
"""

_ALL = """
print(json.dumps({name: outcome(name, run) for name in sys.argv[2:]}))
"""


def outcomes(program: str, directory: Path, threads: list[str], **environ: str) -> dict[str, tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, "-c", _FORKS + program + _ALL, str(directory), *threads],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environ},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    return {name: (code, said) for name, (code, said) in json.loads(done.stdout).items()}


def assert_each_ended_with_its_thread(found: dict[str, tuple[int, str]]) -> None:
    for name, (code, said) in found.items():
        assert code == 1, f"{name}: {code}\n{said}"
        lines = [line for line in said.splitlines() if "CRITICAL" in line]
        assert len(lines) == 1, f"{name}\n{said}"
        assert f"The thread '{name}" in lines[0]
        assert "cannot go on: Struck" in lines[0]
        assert "What was committed is safe" in lines[0]
        assert "Traceback" in said


def test_a_node_ends_with_each_of_its_threads(tmp_path: Path) -> None:
    threads = ["heartbeat", "commands", "chunk-service", "checkpoints", "spark start"]
    assert_each_ended_with_its_thread(outcomes(_NODE, tmp_path, threads))


def test_control_ends_with_each_of_its_threads(tmp_path: Path) -> None:
    threads = ["ingest", "desired", "sweep", "trim", "commands", "chunk-service", "care state"]
    environ = {
        "FOGLINE_DATA": str(tmp_path),
        "FOGLINE_NODES": "",
        "FOGLINE_TRIM_S": "0.2",
        "FOGLINE_KAFKA": "127.0.0.1:9",
        "REDIS_URL": "redis://127.0.0.1:9",
    }
    (port,) = free_ports(1)
    assert_each_ended_with_its_thread(
        outcomes(_CONTROL, tmp_path, threads, FOGLINE_CHUNK_PORT=str(port), **environ)
    )


_MISSING = "raise ModuleNotFoundError(\"No module named 'packaging'\", name='packaging')\n"


def test_a_node_in_whose_environment_a_module_of_kombu_is_missing_says_so_and_ends(tmp_path: Path) -> None:
    shadow = tmp_path / "packaging"
    shadow.mkdir()
    (shadow / "__init__.py").write_text(_MISSING)
    environ = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PROJECT}"}
    ((code, said),) = outcomes(_NODE, tmp_path, ["nobody"], **environ).values()
    assert code == 1
    (line,) = [line for line in said.splitlines() if "CRITICAL" in line]
    assert "The thread 'commands' cannot go on: ModuleNotFoundError: No module named 'packaging'" in line


_LIBRARY = """
import threading
from http.server import HTTPServer  # a thread's body that is no code of this project
from workers.stopping import Stopping, failed_by_threads

stopping = Stopping()
failed_by_threads(stopping)
thread = threading.Thread(target=HTTPServer.serve_forever, args=(None,))
thread.start()
thread.join()
print(stopping.is_set())
"""


def test_a_thread_of_a_library_is_left_to_the_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIBRARY], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert "Traceback" in done.stderr
