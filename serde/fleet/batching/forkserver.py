"""The process from which those of the models are forked.

It is a fresh interpreter that imports what conversions need, has no threads of its own and
converts nothing that it was given. A request comes as a byte and two open sockets on the socket
whose number is its argument, and a child is forked for it. On the second socket that child gets
requests, each with a file for its answer and one for what is printed meanwhile, and calls the
functions that they name, one after the other, until the other end is closed. When it has ended, the
first socket tells how; if the other end of that is closed, or says so, the child is killed with
whatever it has started; and all are when nobody holds the socket of requests any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any as AnyValue, Final

from serde.engine.forked import fork_engines
from serde.fleet.batching.fresh import largest_memory
from serde.fleet.batching.isolation import PREPARE

__all__ = ["main"]

_FILES: Final = 3
_MOST_CALLS: Final = 64
_MOST_GROWTH: Final = 1 << 26
"""What a child may answer, and by how many bytes of data it may grow, before another takes over."""
_PR_SET_PDEATHSIG: Final = 1
_HANDLED: Final = [
    *(signal.SIGCHLD, signal.SIGINT, signal.SIGTERM),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT),
]
"""Signals that this process, or a framework that it has imported, may handle."""


def main(number: int) -> None:
    """Answer requests until nobody can send any."""
    with socket.socket(fileno=number) as requests:
        _Server(requests).serve()


class _Server:
    """The loop that forks, kills and reaps.

    Args:
        requests: Where requests come from.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._pid = os.getpid()
        self._children: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._died, self._dies = socket.socketpair()
        for each in (self._died, self._dies):
            each.setblocking(False)

    def serve(self) -> None:
        """Answer requests until nobody can send any."""
        # Who waits for the answers is interrupted too, and ends this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._dies.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._requests, selectors.EVENT_READ, self._take)
        self._selector.register(self._died, selectors.EVENT_READ, self._reap)
        gc.freeze()
        goes_on = True
        while goes_on:
            for key, _ in self._selector.select():
                goes_on &= key.data() is not False
        for pid in self._children:
            _kill(pid)

    def _take(self) -> bool:
        """Take one request; return whether there may be more."""
        kind, files, _flags, _address = socket.recv_fds(self._requests, 1, _FILES)
        if not kind:
            return False
        if kind == PREPARE:
            _prepare(*files)
            return True
        pid = os.fork()
        if not pid:
            self._become_child(*files)
        ends = socket.socket(fileno=files[0])
        _close(files[1:])
        _tell(ends, {"pid": pid})
        self._children[pid] = ends
        self._selector.register(ends, selectors.EVENT_READ, lambda: _abandon(pid, ends))
        return True

    def _reap(self) -> None:
        """Tell how children ended; what they have started ends with them."""
        with contextlib.suppress(BlockingIOError):
            self._died.recv(4096)
        while self._children:
            waiting = os.WEXITED | os.WNOHANG | os.WNOWAIT
            found = os.waitid(os.P_ALL, 0, waiting)
            if found is None:
                return
            _kill(found.si_pid)
            pid, status, used = os.wait4(found.si_pid, 0)
            ends = self._children.pop(pid)
            self._selector.unregister(ends)
            said = {"code": os.waitstatus_to_exitcode(status), "memory": used.ru_maxrss * 1024}
            _tell(ends, said)
            ends.close()

    def _become_child(self, ends: int, asks: int) -> None:
        """Answer requests in the child until there are no more, and end it."""
        code = 1
        try:
            self._leave(ends)
            _Answering(asks).answer_all()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(code)

    def _leave(self, ends: int) -> None:
        """Let go of what belongs to the server, and be killed if that dies."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._pid:  # It died before that could be asked for.
            os._exit(1)
        _close([ends])
        self._selector.close()
        for each in (self._requests, self._died, self._dies, *self._children.values()):
            each.close()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class _Answering:
    """What a child does: it answers requests while it is as good as a new one.

    Args:
        asks: The socket on which they come.
    """

    def __init__(self, asks: int) -> None:
        self._asks = socket.socket(fileno=asks)
        self._begins_with = _data_bytes()
        self._peak: int | None = None
        with contextlib.suppress(OSError):  # Not every kernel has it.
            # Opened before anything is forbidden.
            self._peak = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)

    def answer_all(self) -> None:
        """Answer requests until there are no more, or another process is to answer them."""
        for count in range(1, _MOST_CALLS + 1):
            kind, files, _flags, _address = socket.recv_fds(self._asks, 1, _FILES)
            if not kind:
                return
            self._answer(*files)
            fit = count < _MOST_CALLS and self._is_as_new()
            said = {"code": 0, "memory": largest_memory(), "fit": fit}
            with contextlib.suppress(OSError):  # Nobody waits for it any more.
                self._asks.send(json.dumps(said).encode(), socket.MSG_NOSIGNAL)
            if not fit:
                return

    def _answer(self, request: int, answer: int, errors: int) -> None:
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        os.close(errors)
        if self._peak is not None:
            os.write(self._peak, b"5")  # The largest memory is counted from here on.
        asked = json.loads(_read(request))
        _limit_memory(asked["memory"])
        with fork_engines():
            said = _call(asked)
        with os.fdopen(answer, "wb") as file:
            file.write(json.dumps(said).encode())
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()

    def _is_as_new(self) -> bool:
        """Whether no thread, no process and not much memory is left of what was answered."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return False
        grown = _data_bytes() - self._begins_with
        return len(os.listdir("/proc/self/task")) == 1 and grown < _MOST_GROWTH


def _abandon(pid: int, ends: socket.socket) -> None:
    """Kill a child that nobody waits for any more, or no longer."""
    with contextlib.suppress(OSError):  # What is not read would keep its end from being told.
        ends.recv(16)
    _kill(pid)


def _kill(pid: int) -> None:
    """Kill a child that has not been waited for, and all that it has started."""
    for kill in (os.killpg, os.kill):  # It may not have become a group yet.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _tell(ends: socket.socket, said: Mapping[str, AnyValue]) -> None:
    with contextlib.suppress(OSError):  # Nobody waits for it any more.
        ends.send(json.dumps(said).encode(), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)


def _close(files: list[int]) -> None:
    for number in files:
        os.close(number)


def _read(number: int) -> bytes:
    with os.fdopen(number, "rb") as file:
        file.seek(0)
        return file.read()


def _call(asked: Mapping[str, AnyValue]) -> AnyValue:
    module, name = asked["function"]
    return getattr(importlib.import_module(module), name)(asked["request"])


def _prepare(number: int) -> None:
    """Call what makes this process ready for what is to come; it may fail."""
    with contextlib.suppress(Exception):
        _call(json.loads(_read(number)))
    gc.collect()
    gc.freeze()


def _limit_memory(extra: int | None) -> None:
    """Let the process allocate so many bytes besides what it has inherited."""
    if extra is None:
        return
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = _data_bytes() + extra
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def _data_bytes() -> int:
    """Return what this process may write to in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
