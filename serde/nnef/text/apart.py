"""Khronos' parser in a process of its own, with bounds on memory and time.

Expressions of NNEF may ask for any amount of both, and the parser divides by zero, reads beyond
tuples and overruns its stack without a check. What it makes of a text comes back as JSON, so that
nothing of it has run here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.core.limits import current_limits
from serde.engine.process import can_start
from serde.errors import FormatError
from serde.nnef.text.apart_worker import REFERENCE

__all__ = ["parse_apart"]

_MAIN: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from serde.nnef.text.apart_worker import main; main()"
)
_SECONDS: Final = 60
"""Of the clock; a process that computes is ended by its own time long before."""

_SIGPROF: Final = getattr(signal, "SIGPROF", 0)
_COMPUTING: Final = 1.0
_COMPUTING_PER_CHARACTER: Final = 5e-6
"""Seconds of the processor that a text may take: ten times what flat ones do."""

_MEMORY_PER_CHARACTER: Final = 256
"""What an operation of a text takes as objects of Python, with room."""


def parse_apart(
    text: str,
    quantization: str | None,
    lowered: Sequence[str],
    nnef: AnyValue,
    fault: Callable[[str], FormatError],
) -> AnyValue:
    """Return the graph of a text as the parser gives it.

    Args:
        text: Of ``graph.nnef``.
        quantization: Text of ``graph.quant``, if there is one.
        lowered: The fragments that are expanded.
        nnef: The package.
        fault: Makes errors of messages, about where the trouble may be.

    Raises:
        FormatError: The parser does not survive the text, or not within its bounds: a second and
            as many bytes as constants may have, and more as the text is longer.
        nnef.Error: The text is malformed.
    """
    if not can_start():
        raise fault(
            "expressions and fragments are parsed in a process of their own, but there is no "
            "interpreter to start"
        )
    memory = current_limits().constants + _MEMORY_PER_CHARACTER * len(text)
    seconds = _COMPUTING + _COMPUTING_PER_CHARACTER * len(text)
    request = {
        "text": text,
        "quantization": quantization,
        "lowered": list(lowered),
        "memory": memory,
        "seconds": seconds,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *map(os.fspath, sys.path)],
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        raise fault(f"expressions that take more than {_SECONDS} s to compute") from None
    if done.returncode and done.returncode == -_SIGPROF:
        raise fault(f"expressions that take more than {seconds:.1f} s to compute")
    if done.returncode:
        raise fault(
            "expressions that do not end, or compute what there is not: the parser crashed "
            f"({_ending(done.returncode)})"
        )
    answer, *operations = json.loads(b"[%s]" % done.stdout.rstrip().replace(b"\n", b","))
    if "fault" in answer:
        raise nnef.Error(answer["fault"])
    if "failed" in answer:
        raise fault(f"expressions that the parser cannot compute: {answer['failed']}")
    if "exhausted" in answer:
        raise fault(
            f"expressions that take more than {memory >> 20} MiB; a higher --limit constants "
            "allows them"
        )
    return _graph(answer, operations, nnef)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _graph(found: AnyValue, operations: Sequence[AnyValue], nnef: AnyValue) -> AnyValue:
    """Return a graph of the package for what came back."""

    def value(given: AnyValue) -> AnyValue:
        if isinstance(given, dict):
            return nnef.Identifier(given[REFERENCE])
        return list(map(value, given)) if isinstance(given, list) else given

    def operation(given: AnyValue) -> AnyValue:
        name, *fields, dtype = given
        return nnef.Operation(name, *({k: value(v) for k, v in each} for each in fields), dtype)

    tensors = {
        name: nnef.Tensor(name, dtype, None, None, quantization)
        for name, dtype, quantization in found["tensors"]
    }
    made = list(map(operation, operations))
    return nnef.Graph(found["name"], tensors, made, found["inputs"], found["outputs"])
