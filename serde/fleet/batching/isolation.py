"""Calls functions in processes of their own, under limits of time and memory.

On Linux these are forked from a process that is started once and has imported what they need
(:mod:`serde.fleet.batching.forkserver`). Elsewhere, where a fork is not there or not safe, each is
an interpreter of its own. What a process answers is JSON; nothing that it says is unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from typing import IO, Any as AnyValue, Final, Protocol

from serde.core.records import dataclass
from serde.core.systems import has_fork_server
from serde.core.texts import last_line

__all__ = [
    "CALL", "FORK", "PREPARE", "Ending", "ForkServer", "FreshProcesses", "Isolation", "ServerEnded",
    "isolation_here",
]  # fmt: skip

FORK: Final = b"f"
PREPARE: Final = b"p"
"""What the server can be asked for: a child, and a call of its own."""
CALL: Final = b"c"
"""What a child can be asked for."""

_FRESH: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from serde.fleet.batching.fresh import main; main()"
)

_SERVER: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; del sys.argv[2:]; "
    "from serde.fleet.batching.forkserver import main; main(int(sys.argv[1]))"
)
"""What the interpreters run; their arguments are the search path, after the number of a socket."""

Place = tuple[str, str]
"""Module and name of a function that takes and returns what JSON can hold."""

_SINGLE: Final = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "MXNET_CPU_WORKER_NTHREADS"),
)
"""Variables that tell libraries how many threads they may start."""


_MOST_IDLE: Final = 2 * (os.cpu_count() or 4)
"""How many processes may wait for a request like those that they have answered."""


class ServerEnded(Exception):
    """The process that others are forked from is gone, and with it all of these."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended.

    Attributes:
        answer: What the function returned, None if it did not get so far.
        code: Exit code of the process, or the negative number of the signal that killed it.
        memory: Its largest resident memory in bytes, 0 where that is not known.
        said: The last line that it printed on its error stream.
        in_time: Whether it ended before its time was up.
    """

    answer: AnyValue
    code: int
    memory: int
    said: str
    in_time: bool


class Isolation(Protocol):
    """What calls functions in processes of their own; may be used by several threads."""

    def call(
        self,
        place: Place,
        request: AnyValue,
        *,
        seconds: float | None,
        memory: int | None,
        alike: Hashable = None,
    ) -> Ending:
        """Return how a process ended that calls a function.

        Args:
            place: The function.
            request: What it is given.
            seconds: After how long it is killed; never if None.
            memory: How many bytes it may allocate; any if None.
            alike: What requests have in common that one process may answer, one after the other;
                None if it is to have a process of its own.

        Raises:
            ServerEnded: Nothing can be said of it.
        """

    def prepare(self, place: Place, request: AnyValue) -> None:
        """Have a function called that makes ready for what is to come, if this is of use."""

    def close(self) -> None:
        """Kill all that still runs."""


def isolation_here(threads: int = 1) -> Isolation:
    """Return what isolates on this system; each process may start so many threads."""
    return ForkServer(threads) if has_fork_server() else FreshProcesses(threads)


def _environment(threads: int) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(_SINGLE, str(threads))}


class ForkServer:
    """Processes forked from one that is started once, and again if it dies.

    Args:
        threads: How many threads each process may start.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._prepared: list[bytes] = []
        self._idle: list[tuple[Hashable, _Child]] = []
        self._closed = False
        weakref.finalize(self, _let_go, self._idle)

    def call(
        self,
        place: Place,
        request: AnyValue,
        *,
        seconds: float | None,
        memory: int | None,
        alike: Hashable = None,
    ) -> Ending:
        """Return how a process ended that calls a function.

        One that dies after it has answered others may do so by their fault: a new one is asked.
        """
        text = json.dumps({"function": place, "request": request, "memory": memory}).encode()
        used = None if alike is None else self._idle_child(alike)
        child = used or self._fork()
        ending = child.call(text, seconds)
        if ending.code != 0 and ending.in_time and used is not None:
            child = self._fork()
            ending = child.call(text, seconds)
        if child.is_fit:
            self._keep(alike, child)
        return ending

    def _idle_child(self, alike: Hashable) -> _Child | None:
        with self._lock:
            at = next((i for i, (key, _) in enumerate(self._idle) if key == alike), None)
            return None if at is None else self._idle.pop(at)[1]

    def _keep(self, alike: Hashable, child: _Child) -> None:
        """Let a child wait, unless it was for one request; of too many the first is let go."""
        with self._lock:
            if alike is None or self._closed:
                child.close()
                return
            self._idle.append((alike, child))
            if len(self._idle) > _MOST_IDLE:
                self._idle.pop(0)[1].close()

    def prepare(self, place: Place, request: AnyValue) -> None:
        """Have the server itself call a function before it forks again, and each new one."""
        text = json.dumps({"function": place, "request": request}).encode()
        with self._lock:
            self._prepared.append(text)
            if self._server is not None:
                self._server.prepare(text)

    def _fork(self) -> _Child:
        """Return a new child; a server that has died is started again."""
        for _ in range(2):
            with self._lock:
                if self._closed:
                    break
                if self._server is None or not self._server.is_alive:
                    self._server = _Server(self._threads)
                    for text in self._prepared:
                        self._server.prepare(text)
                child = self._server.fork()
                if child is not None:
                    return child
        raise ServerEnded

    def close(self) -> None:
        """End the server, which kills all that it has forked."""
        with self._lock:
            self._closed = True
            _let_go(self._idle)
            if self._server is not None:
                self._server.close()


class _Server:
    """The process that others are forked from, and the socket on which it is asked."""

    def __init__(self, threads: int) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(theirs.fileno()), *map(os.fspath, sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_environment(threads),
                start_new_session=True,
            )
        self.close: Callable[[], object] = weakref.finalize(self, _end, self._process, self._socket)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def prepare(self, text: bytes) -> None:
        """Have it call a function itself."""
        with _memory_file(text) as asked:
            self._send(PREPARE, [asked.fileno()])

    def fork(self) -> _Child | None:
        """Have it fork; return the child, None if there is nobody who does it."""
        child = _Child()
        with child.theirs_ends, child.theirs_asks:
            if self._send(FORK, [child.theirs_ends.fileno(), child.theirs_asks.fileno()]):
                return child
        child.close()
        return None

    def _send(self, kind: bytes, files: list[int]) -> bool:
        """Send a request; return whether there is somebody who gets it."""
        try:
            socket.send_fds(self._socket, [kind], files)
        except OSError:
            return False
        return True


class _Child:
    """A process that the server has forked or will, and that answers one request at a time.

    Attributes:
        theirs_ends: Where the server tells how it ends, and hears that it is to be killed.
        theirs_asks: Where it gets its requests.
        is_fit: Whether it can answer another.
    """

    def __init__(self) -> None:
        self._ends, self.theirs_ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asks, self.theirs_asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._has_begun = False
        self.is_fit = False

    def call(self, text: bytes, seconds: float | None) -> Ending:
        """Return how a request ended; the process with it, unless it is fit for another."""
        self.is_fit = False
        try:
            with _memory_file(text) as asked, _memory_file() as answer, _printed() as errors:
                with contextlib.suppress(OSError):  # It has ended meanwhile.
                    files = [asked.fileno(), answer.fileno(), errors.fileno()]
                    socket.send_fds(self._asks, [CALL], files)
                said, in_time = self._wait(seconds)
                if said is None:
                    raise ServerEnded
                self.is_fit = said.get("fit", False)
                found = _answer(answer) if said["code"] == 0 else None
                return Ending(found, said["code"], said["memory"], last_line(errors), in_time)
        finally:
            if not self.is_fit:
                self.close()

    def _wait(self, seconds: float | None) -> tuple[AnyValue, bool]:
        """Return what is said of a request, None if nothing is, and whether its time was not up.

        The time begins when the process does, which may be some time after it was asked for.
        """
        if not self._has_begun:
            self._has_begun = True
            if not _receive(self._ends):
                return None, True
        listening = select.poll()
        for each in (self._asks, self._ends):
            listening.register(each, select.POLLIN)
        in_time = bool(listening.poll(None if seconds is None else 1000 * seconds))
        if not in_time:
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                self._ends.send(b"kill")
        said = (in_time and _receive(self._asks)) or _receive(self._ends)
        return (json.loads(said) if said else None), in_time

    def close(self) -> None:
        """Let the process go; the server kills it with whatever it has started."""
        self._asks.close()
        self._ends.close()


def _let_go(idle: list[tuple[Hashable, _Child]]) -> None:
    while idle:
        idle.pop()[1].close()


def _end(process: subprocess.Popen[bytes], asking: socket.socket) -> None:
    """Let a server kill what it has forked and end; it is killed if it does not."""
    asking.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _receive(ours: socket.socket) -> bytes:
    """Return one message; nothing if the other end is gone."""
    try:
        return ours.recv(1024)
    except ConnectionError:
        return b""


@contextlib.contextmanager
def _memory_file(content: bytes = b"") -> AnyValue:
    with os.fdopen(os.memfd_create("serde", os.MFD_CLOEXEC), "w+b") as file:
        file.write(content)
        file.flush()
        yield file


def _printed() -> IO[bytes]:
    """Return a file for what a process prints; nowhere, if the disk has no room for one."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "w+b")


def _answer(file: IO[bytes]) -> AnyValue:
    """Return what a process has written; None if that is no answer."""
    file.seek(0)
    try:
        return json.loads(file.read())
    except ValueError:
        return None


class FreshProcesses:
    """An interpreter for each call, where there is no fork that is safe.

    Args:
        threads: How many threads each process may start.
    """

    def __init__(self, threads: int = 1) -> None:
        self._environment = _environment(threads)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self,
        place: Place,
        request: AnyValue,
        *,
        seconds: float | None,
        memory: int | None,
        alike: Hashable = None,
    ) -> Ending:
        """Return how an interpreter ended that calls a function."""
        text = json.dumps({"function": place, "request": request}).encode() + b"\n"
        with _printed() as errors, tempfile.TemporaryFile() as answer:
            process = self._start(errors, answer)
            try:
                in_time = _feed(process, text, seconds)
            finally:
                self._forget(process)
            said = _answer(answer) if process.returncode == 0 else None
            said = said or {"answer": None, "memory": 0}
            last = last_line(errors)
            return Ending(said["answer"], process.returncode, said["memory"], last, in_time)

    def _start(self, errors: IO[bytes], answer: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise ServerEnded
            process = subprocess.Popen(
                [sys.executable, "-c", _FRESH, *map(os.fspath, sys.path)],
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=errors,
                env=self._environment,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)
        if process.returncode is None:
            _kill_group(process)
            process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def prepare(self, place: Place, request: AnyValue) -> None:
        """Do nothing: no process is there before it is needed."""

    def close(self) -> None:
        """Kill all that still runs."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill_group(process)


def _feed(process: subprocess.Popen[bytes], text: bytes, seconds: float | None) -> bool:
    """Give a process its request and wait for its end; return whether that came in time.

    Its input stays open until then, for by its end it is told that nobody waits any more.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # It has ended already.
            process.stdin.write(text)
            process.stdin.flush()
    try:
        process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        _kill_group(process)
        process.wait()
        return False
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and what it has started where processes have groups."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
