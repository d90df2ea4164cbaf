"""Calls in processes that are forked, where serde starts new ones: those take seconds to import."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from serde.engine.process import EngineEnded
from serde.errors import CheckError
from serde.weights import Array, Weight

__all__ = ["call_in_fork", "fork_instead"]

_SECONDS: Final = 20


def fork_instead() -> None:
    """Have TVM's parser of scripts run in forks of this process, in which TVM is loaded."""
    from serde.relax.text import reading

    reading.call_in_process = call_in_fork


def call_in_fork(
    name: str,
    function: Callable[[Mapping[str, Any], Sequence[Array]], Any],
    request: Mapping[str, Any],
    weights: Sequence[Weight] = (),
) -> Any:
    """Return what a function gives in a fork; see :func:`serde.engine.process.call_in_process`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(writer, function, request, weights)
    os.close(writer)
    with open(reader, "rb") as file:
        told = file.read()
    status = os.waitpid(child, 0)[1]
    if status or not told:
        raise EngineEnded(f"{name} crashed with {status}")
    answer = json.loads(told)
    if "error" in answer:
        raise CheckError(answer["error"])
    return answer["value"]


def _answer(writer: int, function: Any, request: Any, weights: Any) -> None:
    """Call the function and end the process."""
    code = 1
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    try:
        request = json.loads(json.dumps(dict(request)))
        try:
            told = {"value": function(request, [each.array() for each in weights])}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        with open(writer, "wb") as file:
            file.write(json.dumps(told).encode())
        code = 0
    finally:
        os._exit(code)
