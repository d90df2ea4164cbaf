"""Calls in processes that are forked, where serde starts new ones: those take seconds to import."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from serde.core.weights import Array, Weight
from serde.engine.process import EngineEnded
from serde.errors import CheckError

__all__ = ["call_in_fork", "fork_instead"]

_SECONDS: Final = 20


def fork_instead() -> None:
    """Have TVM's parser and Khronos' run in forks of this process, in which they are loaded."""
    from serde.nnef.text import apart
    from serde.relax.text import reading

    reading.call_in_process = call_in_fork
    apart.subprocess = SimpleNamespace(
        run=_run_parser,
        PIPE=subprocess.PIPE,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


def call_in_fork(
    name: str,
    function: Callable[[Mapping[str, Any], Sequence[Array]], Any],
    request: Mapping[str, Any],
    weights: Sequence[Weight] = (),
) -> Any:
    """Return what a function gives in a fork; see :func:`serde.engine.process.call_in_process`."""
    copied = json.loads(json.dumps(dict(request)))

    def answer() -> Any:
        try:
            return {"value": function(copied, [each.array() for each in weights])}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    status, told = _fork(answer)
    if status or not told:
        raise EngineEnded(f"{name} crashed with {status}")
    found = json.loads(told)
    if "error" in found:
        raise CheckError(found["error"])
    return found["value"]


def _run_parser(
    command: Sequence[str], *, input: bytes, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Do what :mod:`serde.nnef.text.apart` starts a process for."""
    import nnef

    from serde.nnef.text import apart_worker

    request = json.loads(input)

    def answer() -> Any:
        return list(apart_worker._answer(request, nnef))

    status, told = _fork(answer, request["memory"])
    lines = [json.dumps(each) for each in json.loads(told or "[]")]
    code = os.waitstatus_to_exitcode(status)
    return subprocess.CompletedProcess(command, code, "\n".join(lines).encode(), b"")


def _fork(function: Callable[[], Any], memory: int | None = None) -> tuple[int, bytes]:
    """Call a function in a fork; return how that ended and the JSON of what it gave."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(writer, function, memory)
    os.close(writer)
    with open(reader, "rb") as file:
        told = file.read()
    return os.waitpid(child, 0)[1], told


def _answer(writer: int, function: Callable[[], Any], memory: int | None) -> None:
    """Call a function and end the process."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        if memory is not None:
            with open("/proc/self/statm") as file:
                limit = int(file.read().split()[0]) * resource.getpagesize() + memory
            limit = min(limit, resource.getrlimit(resource.RLIMIT_AS)[1] % 2**63 or limit)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with open(writer, "wb") as file:
            file.write(json.dumps(function()).encode())
        code = 0
    finally:
        os._exit(code)
