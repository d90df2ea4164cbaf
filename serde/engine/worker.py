"""The process of its own in which a check runs an engine that may crash.

It reads requests from its input and answers on its output, which the engine
itself cannot reach: what that prints goes to the error stream. When whoever
started it is gone, or closes its input, it ends at once, whatever it is doing; one that runs no
model ends after a while.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import IO, Any as AnyValue

import numpy as np

from serde.core.weights import Array, ArrayWeight
from serde.engine.base import first_line
from serde.engine.channel import receive, send
from serde.engine.idle import PATIENCE_SECONDS
from serde.errors import CheckError, MissingDependency

__all__ = ["main"]

Request = tuple[dict[str, AnyValue], list[Array]]


def main(requests_in: IO[bytes] | None = None) -> None:
    """Answer requests until the input ends.

    Args:
        requests_in: The input; that of the process if left out.
    """
    # The process that waits for the answer is interrupted too, and ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave_no_core()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    stream = sys.stdin.buffer if requests_in is None else requests_in
    threading.Thread(target=_listen, args=(stream, requests), daemon=True).start()
    engine = None
    while True:
        try:
            request = requests.get(timeout=PATIENCE_SECONDS if engine is None else None)
        except queue.Empty:
            os._exit(0)
        engine = _answer(engine, request, answers)


def _answer(engine: AnyValue, request: Request, answers: IO[bytes]) -> AnyValue:
    """Answer one request and return the engine, which the first one opens."""
    header, arrays = request
    try:
        if header["do"] == "close":
            return None
        if header["do"] == "prepare":
            with contextlib.suppress(Exception):  # The model is told of it.
                _function(header["function"])()
            return engine
        if header["do"] == "open":
            engine = _function(header["opener"])(header["request"], arrays)
            known = {"inputs": dict(engine.inputs), "outputs": list(engine.outputs)}
            send(answers, {"name": engine.name, **known})
        elif header["do"] == "call":
            answer = _function(header["function"])(header["request"], arrays)
            send(answers, {"answer": answer})
        else:
            send(answers, {}, _run(engine, dict(zip(header["names"], arrays, strict=True))))
    except MissingDependency as error:
        send(answers, {"missing": {"package": error.package, "extra": error.extra}})
    except CheckError as error:
        send(answers, {"refused": str(error)})
    except Exception as error:
        send(answers, {"failed": first_line(error)})
    return engine


def _function(place: Sequence[str]) -> AnyValue:
    """Return a function by its module, which is imported, and its name."""
    module, name = place
    return getattr(importlib.import_module(module), name)


def _leave_no_core() -> None:
    """Keep a crash from writing the memory of the process to a file."""
    try:
        import resource
    except ImportError:  # Windows writes none.
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _listen(stream: IO[bytes], requests: queue.SimpleQueue[Request]) -> None:
    try:
        while True:
            requests.put(receive(stream))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _run(engine: AnyValue, inputs: Mapping[str, Array]) -> Sequence[ArrayWeight]:
    results = engine.run(inputs)
    for name, value in zip(engine.outputs, results, strict=True):
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
            kind = value.dtype.name if isinstance(value, np.ndarray) else type(value).__name__
            raise CheckError(f"{engine.name}: output {name}: expected numbers, found {kind}")
    return [ArrayWeight(value) for value in results]
