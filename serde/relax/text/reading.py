"""From a text to a module: checked here, parsed by TVM in a process of its own.

TVM may crash on what it should refuse; there a crash is an answer.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.weights import Array, ArrayWeight
from serde.engine.process import call_in_process, can_start
from serde.errors import CheckError, FormatError
from serde.relax.framework import load
from serde.relax.text.metadata import Metadata, read_metadata, split_metadata
from serde.relax.text.parsing import parse_script
from serde.relax.text.syntax import Script, check_script
from serde.relax.text.vocabulary import unknown_names

__all__ = ["answer_in_bounds", "answer_parse", "read_script"]

_SECONDS: Final = 10.0
_SECONDS_PER_BYTE: Final = 250e-6
_MEMORY: Final = 512 * 2**20
_MEMORY_PER_BYTE: Final = 2000
"""What TVM may take to parse a text: ten times what it takes for those that are well-formed."""


def read_script(text: str) -> AnyValue:
    """Return the ``tvm.IRModule`` that a text in TVMScript spells.

    Raises:
        FormatError: It is no text as TVM prints it, or TVM refuses it.
        MissingDependency: TVM is not installed, or as a release that is not known.
    """
    framework = load()
    document, rest = split_metadata(text)
    script = check_script(rest)
    unknown = unknown_names(framework, script.names)
    if unknown:
        raise FormatError(f"TVM {framework.version} does not print {', '.join(unknown[:10])}")
    metadata = {} if document is None else read_metadata(document)
    _check_places(script, metadata)
    arrays = {place: each for place, each in metadata.items() if not isinstance(each, str)}
    request = {
        "text": script.text,
        "names": sorted(script.names),
        "texts": [[*place, each] for place, each in metadata.items() if isinstance(each, str)],
        "arrays": [list(place) for place in arrays],
    }
    weights = [ArrayWeight(each) for each in arrays.values()]
    try:
        if can_start():
            answer = call_in_process("tvm", answer_in_bounds, request, weights)
        else:
            answer = answer_parse(request, list(arrays.values()))
    except CheckError as error:
        raise FormatError(f"TVM {framework.version} does not read the text: {error}") from error
    if "refused" in answer:
        raise FormatError(f"TVM {framework.version} refuses the text: {answer['refused']}")
    return framework.tvm.ir.load_json(answer["module"])


def _check_places(script: Script, metadata: Metadata) -> None:
    """Refuse a text that uses metadata that is not there, or texts of it in expressions."""
    for key, number in sorted(script.metadata):
        found = metadata.get((key, number))
        if found is None:
            raise FormatError(f"metadata: nothing is at {key!r}, {number}")
        if isinstance(found, str) and (key, number) not in script.attributes:
            raise FormatError(f"metadata: the text at {key!r}, {number} stands in an expression")


def answer_in_bounds(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> AnyValue:
    """Parse a text in the process that was started for it, which ends beyond time and memory."""
    load()
    nbytes = len(request["text"])
    held = sum(array.nbytes for array in arrays)
    _limit_process(
        _SECONDS + nbytes * _SECONDS_PER_BYTE, _MEMORY + nbytes * _MEMORY_PER_BYTE + 4 * held
    )
    return answer_parse(request, arrays)


def _limit_process(seconds: float, nbytes: int) -> None:
    """Have the system end this process if it takes more processor time or memory from now on."""
    try:
        import resource
    except ImportError:  # Windows has no such limits: the clock ends the process.
        clock = threading.Timer(seconds, os._exit, [1])
        clock.daemon = True
        clock.start()
        return
    used = time.process_time() + seconds
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used), most))
    try:
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):  # Only Linux tells it.
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + nbytes, most))


def answer_parse(request: Mapping[str, AnyValue], arrays: Sequence[Array]) -> AnyValue:
    """Return the module that a text spells, as JSON, or why TVM refuses it."""
    framework = load()
    metadata: dict[tuple[str, int], Array | str] = {
        (key, number): text for key, number, text in request["texts"]
    }
    places = [(key, number) for key, number in request["arrays"]]
    metadata |= dict(zip(places, arrays, strict=True))
    try:
        module = parse_script(request["text"], request["names"], metadata)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((each for each in lines if each.startswith("error:")), None)
        return {"refused": told or (lines[-1] if lines else type(error).__name__)}
    return {"module": _without_spans(framework.tvm.ir.save_json(module))}


def _without_spans(document: str) -> str:
    """Return a module, as JSON, without the places in the text that its nodes stood at."""
    root = json.loads(document)
    for each in root["nodes"]:
        if each["type"] == "ir.Span":
            each.clear()
            each["type"] = "None"
    return json.dumps(root)
