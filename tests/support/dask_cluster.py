"""A Dask cluster of processes that a test may kill: a scheduler, and workers without nannies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
PACKAGE = "distributed.cli.dask"


class Cluster:
    """A scheduler on a port of its own, and the workers that were started for it.

    Attributes:
        address: Where clients find the scheduler.
        scheduler: Its process.
        workers: The processes of the workers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        flags = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        self.scheduler = self._start("scheduler", *flags)
        self.address = self._find_address()

    def start_worker(self, *, threads: int = 1, **variables: str) -> subprocess.Popen[bytes]:
        """Start a worker process without anybody who would start it again.

        Args:
            threads: How many tasks it runs at the same time.
            variables: Variables of its environment.
        """
        flags = ("--scheduler-file", str(self._file), "--nthreads", str(threads), "--no-nanny")
        process = self._start("worker", *flags, **variables)
        self.workers.append(process)
        return process

    def await_workers(self, count: int) -> None:
        """Wait until so many workers have reached the scheduler."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    def close(self) -> None:
        """Kill all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what: str, *flags: str, **variables: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        with (self._folder / f"{what}-{len(self.workers)}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"{PACKAGE}_{what}", "--no-dashboard", *flags],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _find_address(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                found: Mapping[str, str] = json.loads(self._file.read_text())
            except (OSError, ValueError):
                time.sleep(0.05)
                continue
            return found["address"]
        raise TimeoutError("the scheduler did not start")


@contextmanager
def dask_cluster(folder: Path, workers: int = 0) -> Iterator[Cluster]:
    """Start a scheduler and so many workers of one thread; kill all of them in the end."""
    cluster = Cluster(folder)
    try:
        for _ in range(workers):
            cluster.start_worker()
        if workers:
            cluster.await_workers(workers)
        yield cluster
    finally:
        cluster.close()


def descendants(pid: int) -> list[int]:
    """Return the numbers of the processes below one, but for Python's own that tracks resources."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # It has ended meanwhile.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if b"resource_tracker" not in (entry / "cmdline").read_bytes():
                    below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there, and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kill a process, which can do nothing about it."""
    os.kill(pid, signal.SIGKILL)
