"""The contract of an engine: what can run one model on arrays."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from serde.core import Array, size_text
from serde.errors import CheckError

__all__ = ["Engine", "Samples", "first_line", "out_of_memory", "run_engine"]


_NO_MEMORY: Final = (
    "out of memory", "bad_alloc", "MemoryError", "Cannot allocate memory",
    "Failed to allocate memory", "Arena alloc failed",
)  # fmt: skip
"""What frameworks, C++, Python, the system, ONNX Runtime and protobuf say."""

_REQUEST: Final = re.compile(r"requested buffer of size (\d+)")


def out_of_memory(text: str) -> str:
    """Return ``out of memory``, and of what size, if an error says that; else nothing."""
    if not any(words in text for words in _NO_MEMORY):
        return ""
    found = _REQUEST.search(text)
    return f"out of memory (for {size_text(int(found[1]))} at once)" if found else "out of memory"


class Samples(Protocol):
    """Inputs of a model by name, as many as there are samples; read one at a time."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Mapping[str, Array]]: ...


class Engine(ABC):
    """Something that runs one model.

    Attributes:
        name: What runs it, with its version.
        inputs: dtype of each input by name, in the model's order; empty where not known.
        outputs: Names of the outputs in the model's order; several may have one name.
        optimizer: What :meth:`unoptimized` leaves off, for messages.
        computes_on_codes: Whether operators yield codes of quantised numbers by integers, so that
            each may be a step off.
    """

    name: str
    inputs: Mapping[str, str]
    outputs: Sequence[str]
    optimizer: str = "its optimisations"
    computes_on_codes: bool = False

    @abstractmethod
    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order, for inputs by name or else by place."""

    @property
    def computes_float16(self) -> bool:
        """Whether it is known that the model computes in float16."""
        return False

    def unoptimized(self) -> Engine | None:
        """Return the engine without its optimisations, None where it has none to leave off.

        Raises:
            CheckError: It refuses the model then.
        """
        return None

    def close(self) -> None:
        """Let go of what the engine holds, if anything; it cannot run afterwards."""
        return


def run_engine(engine: Engine, inputs: Mapping[str, Array]) -> list[Array]:
    """Run an engine; its results are as many as its outputs.

    Raises:
        CheckError: The engine failed; it is named.
    """
    try:
        results = engine.run(inputs)
    except CheckError:
        raise
    except Exception as error:
        raise CheckError(f"{engine.name} failed: {first_line(error)}") from error
    if len(results) != len(engine.outputs):
        raise CheckError(
            f"{engine.name}: expected {len(engine.outputs)} outputs, found {len(results)}"
        )
    return results


def first_line(error: Exception) -> str:
    """Return the class of an error and the first line of its message, behind a traceback in it.

    Of one that says so, in whatever words, it is that there is no more memory.
    """
    exhausted = out_of_memory(f"{type(error).__name__}: {error}")
    if exhausted:
        return exhausted
    name, text = type(error).__name__, str(error).strip().splitlines()
    if text and text[0].removeprefix(f"{name}: ").startswith("Traceback (most recent call last)"):
        text = [each for each in text[1:] if each.strip() and not each[0].isspace()] or text
    said = text[0].removeprefix(f"{name}: ") if text else ""
    return f"{name}: {said}".rstrip(": ")
