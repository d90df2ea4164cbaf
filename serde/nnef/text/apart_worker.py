"""What :mod:`serde.nnef.text.apart` runs in another process; it imports little but the parser."""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any as AnyValue, Final

from serde.core.optional import require

__all__ = ["REFERENCE", "main"]

REFERENCE: Final = "tensor"
"""Key of the objects that stand for identifiers of tensors."""

_DATA_BYTES: Final = 48 * 2**20
_SPACE_BYTES: Final = 512 * 2**20
"""What the interpreter and the parser take before they read a text, with room."""

_ALLOCATION: Final = "bad_alloc"
"""What C++ says when memory is out."""


def main() -> None:
    """Parse what comes on the standard input, and write the graph as JSON."""
    request = json.load(sys.stdin)
    nnef = require("nnef")
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind, held in ((resource.RLIMIT_DATA, _DATA_BYTES), (resource.RLIMIT_AS, _SPACE_BYTES)):
            resource.setrlimit(kind, (held + request["memory"],) * 2)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # Nothing takes the signal that comes then, which ends the process.
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    gc.disable()  # What is made is kept, and looking through it takes as long as making it.
    for each in _answer(request, nnef):
        sys.stdout.write(f"{json.dumps(each)}\n")


def _answer(request: Mapping[str, AnyValue], nnef: AnyValue) -> Iterator[AnyValue]:
    """Yield what is wrong, or the graph and then its operations."""
    text, quantization = request["text"], request["quantization"]
    try:
        graph = nnef.parse_string(text, quantization, stdlib="", lowered=request["lowered"])
    except nnef.Error as error:
        yield {"fault": str(error)}
        return
    except Exception as error:
        exhausted = isinstance(error, MemoryError) or _ALLOCATION in str(error)
        yield {"exhausted": True} if exhausted else {"failed": str(error)}
        return

    def value(given: AnyValue) -> AnyValue:
        if isinstance(given, nnef.Identifier):
            return {REFERENCE: str(given)}
        if isinstance(given, (list, tuple)):
            return list(map(value, given))
        return given.tolist() if hasattr(given, "tolist") else given

    def items(given: Mapping[str, AnyValue]) -> AnyValue:
        return [[name, value(each)] for name, each in given.items()]

    tensors = [
        [name, each.dtype, {n: value(v) for n, v in each.quantization.items()}]
        for name, each in graph.tensors.items()
    ]
    yield {"name": graph.name, "inputs": graph.inputs, "outputs": graph.outputs, "tensors": tensors}
    for each in graph.operations:
        parts = map(items, (each.attribs, each.inputs, each.outputs))
        yield [each.name, *parts, each.dtype]
