"""Engines in a process of their own, so that a crash of theirs is an answer and not the end.

The process is a fresh interpreter, and no fork: the process that starts it
may have threads, and scripts need no guard. Only one that was made for a single model forks
(:mod:`serde.engine.forked`). Requests and answers are messages
on its input and output (:mod:`serde.engine.channel`); weights and arrays go
through there as well, so that no file is left behind however either ends.

Starting an interpreter and importing a framework takes longer than a small model to run. What is
closed with every request answered therefore waits for the next model for a while
(:mod:`serde.engine.idle`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any as AnyValue, Final

import numpy as np

from serde.core.texts import last_line
from serde.core.weights import Array, ArrayWeight, Weight
from serde.engine.base import Engine, out_of_memory
from serde.engine.channel import receive, send
from serde.engine.forked import ForkedProcess, may_fork
from serde.engine.idle import IdleWorkers, surroundings
from serde.errors import CheckError, MissingDependency

__all__ = [
    "EngineEnded", "ProcessEngine", "WorkerProcess", "call_in_process", "can_start",
    "start_ahead", "temporary_files_in",
]  # fmt: skip

_MAIN = (
    "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from serde.engine.worker import main; main()"
)
"""What the interpreter runs. Nothing is imported before it looks where this process does."""


def can_start() -> bool:
    """Whether an interpreter can be started: an application that embeds Python may have none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def temporary_files_in(folder: Path) -> dict[str, str]:
    """Return the environment in which a process makes its temporary files in a directory.

    Sets have the same order there in every run, so that a tool which goes by it gives the same.
    """
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder.absolute()))
    return {**places, "PYTHONHASHSEED": "0"}


class EngineEnded(CheckError):
    """The process of an engine is gone, and with it the engine."""


class WorkerProcess:
    """A process of its own, which answers requests until it is closed.

    Args:
        name: What it is called in errors.
        environment: What its environment has besides that of this process.

    Attributes:
        name: Likewise.
        pid: Its number.
    """

    def __init__(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._surroundings = _surroundings(name, environment)
        self._failed = False
        self._process = _start(name, environment or {}, self._errors)
        self.pid = self._process.pid
        self._end = weakref.finalize(self, _end, self._process, self._errors)

    def close(self) -> None:
        """End the process, whatever it does."""
        self._end()

    def release(self, last: Mapping[str, AnyValue] | None = None) -> None:
        """Have the process wait for another model, or end it if something failed there.

        Args:
            last: A request that has no answer; that it lets go of its model if left out.
        """
        stream = self._process.stdin
        if self._surroundings is None or self._failed or stream is None or not self._end.alive:
            self.close()
            return
        try:
            send(stream, last or {"do": "close"})
            self._errors.seek(0)  # The process writes on where this one is.
            self._errors.truncate()
        except OSError:  # It has ended.
            self.close()
            return
        for each in _IDLE.add(self._surroundings, self):
            each.close()

    def begin(
        self, header: Mapping[str, AnyValue], weights: Sequence[Weight]
    ) -> dict[str, AnyValue]:
        """Return the answer to a first request; where there is none, the process ends."""
        try:
            return self.ask(header, weights)[0]
        except BaseException:
            self.close()
            raise

    def ask(
        self, header: Mapping[str, AnyValue], weights: Sequence[Weight]
    ) -> tuple[dict[str, AnyValue], list[Array]]:
        """Return the answer to a request.

        Raises:
            CheckError: The request is refused, or failed.
            EngineEnded: The process has ended.
            MissingDependency: A package is not installed.
        """
        if not self._end.alive:
            raise EngineEnded(f"{self.name}: the engine has ended")
        self._failed = True
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise CheckError(f"{self.name}: the engine has no streams")
        try:
            send(process.stdin, header, weights)
            answer, arrays = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            how = self._how_it_ended()
            cause = MemoryError(how) if how.startswith("out of memory") else None
            raise EngineEnded(f"{self.name}: {how}") from cause
        except BaseException:
            self.close()
            raise
        if answer:
            self._raise_answer(answer)
        self._failed = False
        return answer, arrays

    def _raise_answer(self, answer: Mapping[str, AnyValue]) -> None:
        if "missing" in answer:
            missing = answer["missing"]
            self.close()
            raise MissingDependency(missing["package"], extra=missing["extra"])
        said = answer.get("refused")
        if "failed" in answer:
            said = f"{self.name} failed: {answer['failed']}"
        if said is None:
            return
        if out_of_memory(said):
            self.close()
            raise EngineEnded(said) from MemoryError(said)
        raise CheckError(said)

    def _how_it_ended(self) -> str:
        """Wait for a process that answers no more, and say how it ended."""
        code = self._process.wait()
        last = last_line(self._errors)
        self.close()
        said = f": {last}" if last else ""
        if code == -signal.SIGTERM:
            return "the engine was ended (signal 15)"
        if code == -getattr(signal, "SIGKILL", 9):
            return "the engine was killed (signal 9), as a system does that runs out of memory"
        if out_of_memory(last):
            return out_of_memory(last)
        if code == -signal.SIGABRT:
            return f"the engine crashed (signal {-code}){said}"
        if code < 0:
            return f"the engine crashed (signal {-code})"
        return f"the engine ended (exit code {code}){said}"


def _start(
    name: str, environment: Mapping[str, str], errors: IO[bytes]
) -> subprocess.Popen[bytes] | ForkedProcess:
    if may_fork():
        return ForkedProcess(name, environment, errors)
    return subprocess.Popen(
        [sys.executable, "-c", _MAIN, *map(os.fspath, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, **environment},
    )


_IDLE: Final[IdleWorkers[WorkerProcess]] = IdleWorkers()
"""The processes that wait in this one."""


def _surroundings(name: str, environment: Mapping[str, str] | None) -> Hashable | None:
    """Return what a process is started in that may wait for another model, else None."""
    return None if environment or may_fork() else surroundings(name)


def _begin(
    name: str,
    environment: Mapping[str, str] | None,
    header: Mapping[str, AnyValue],
    weights: Sequence[Weight],
) -> tuple[WorkerProcess, dict[str, AnyValue]]:
    """Return a process, one that waits if there is any, and its answer to a first request."""
    waiting = _IDLE.take(_surroundings(name, environment))
    if waiting is not None:
        with contextlib.suppress(EngineEnded):  # It may have ended while it waited.
            return waiting, waiting.begin(header, weights)
    worker = WorkerProcess(name, environment)
    return worker, worker.begin(header, weights)


def start_ahead(name: str, function: Callable[[], object]) -> None:
    """Have a process wait for a model, which calls a function of a module first, meanwhile.

    Nothing is done where none may wait. An error is left to the model.
    """
    around = _surroundings(name, None)
    if around is not None and can_start():
        worker = _IDLE.take(around) or WorkerProcess(name)
        worker.release({"do": "prepare", "function": [function.__module__, function.__name__]})


def call_in_process(
    name: str,
    function: Callable[[Mapping[str, AnyValue], Sequence[Array]], AnyValue],
    request: Mapping[str, AnyValue],
    weights: Sequence[Weight] = (),
    *,
    environment: Mapping[str, str] | None = None,
    keep: bool = False,
) -> AnyValue:
    """Return what a function gives that is called in a process of its own.

    Args:
        name: What the process is called in errors.
        function: A function of a module, which the process imports.
        request: Its first argument, as JSON can hold it; so must its result be.
        weights: Their values are its second argument.
        environment: What the environment of the process has besides that of this one.
        keep: Whether the process may wait for another model: `function` changes nothing there.

    Raises:
        CheckError: The function raised an error.
        EngineEnded: The process crashed.
        MissingDependency: A package is not installed.
    """
    place = [function.__module__, function.__name__]
    header = {"do": "call", "function": place, "request": dict(request)}
    worker, answer = _begin(name, environment, header, weights)
    if keep:
        worker.release()
    else:
        worker.close()
    return answer["answer"]


class ProcessEngine(Engine):
    """An engine that runs in a process of its own, which is its alone until it is closed.

    Args:
        name: What the engine is called until it tells its name with its version.
        opener: Called in that process with `request` and the values of `weights` to open the
            engine; a function of a module, which the process imports.
        request: What the engine needs to know of the model, as JSON can hold it.
        weights: Values that belong to the request.
        optimizer: What the engine leaves off in the environment `unoptimized`.
        unoptimized: Environment in which the engine leaves its optimisations off, where it can.
        environment: What its environment has besides that of this process.
    """

    def __init__(
        self,
        name: str,
        opener: Callable[[Mapping[str, AnyValue], Sequence[Array]], Engine],
        request: Mapping[str, AnyValue],
        weights: Sequence[Weight] = (),
        *,
        optimizer: str = Engine.optimizer,
        unoptimized: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.optimizer = optimizer
        self._opened = (name, opener, request, weights)
        self._unoptimized = unoptimized
        place = [opener.__module__, opener.__name__]
        header = {"do": "open", "opener": place, "request": dict(request)}
        worker, told = _begin(name, environment, header, weights)
        self._worker: WorkerProcess | None = worker
        self.name = worker.name = told["name"]
        self.inputs = told["inputs"]
        self.outputs = told["outputs"]

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Have the engine run.

        Raises:
            CheckError: It failed, or crashed.
        """
        if self._worker is None:
            raise EngineEnded(f"{self.name}: the engine has ended")
        arrays = [ArrayWeight(np.asarray(value)) for value in inputs.values()]
        return self._worker.ask({"do": "run", "names": list(inputs)}, arrays)[1]

    def unoptimized(self) -> ProcessEngine | None:
        """Return the engine without its optimisations, in another process; None if it has none.

        Raises:
            CheckError: It refuses the model then, or crashed.
        """
        if self._unoptimized is None:
            return None
        return ProcessEngine(*self._opened, environment=self._unoptimized)

    def close(self) -> None:
        """Let go of the process, which waits for another model if nothing failed there."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.release()


def _end(process: subprocess.Popen[bytes] | ForkedProcess, errors: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, errors):
        if stream is None:
            continue
        with contextlib.suppress(BrokenPipeError):
            stream.close()
