"""What PyTorch saves that is no program: weights alone, and pickles of modules.

Pickles are looked at as data, opcode by opcode; nothing in them is ever executed.
"""

from __future__ import annotations

import pickletools  # nosec B403
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import OpenFile, printable

__all__ = ["ADVICE", "describe_file", "describe_pickle", "holds_tensors"]

ADVICE: Final = (
    "weights without a net: make the net in Python, give it these by load_state_dict, and give "
    "the module with example_inputs, or what torch.export.save makes of it"
)

_MOST_BYTES: Final = 2**22
_MOST_OPS: Final = 200_000
"""How much of a pickle is looked at."""

_OLD: Final = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How files of ``torch.save`` begin that are no archives: with a pickle of a number."""

_SILENT: Final = frozenset(["PROTO", "FRAME", "MARK", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"])
_STRINGS: Final = frozenset(["SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"])
_TENSOR: Final = "torch._utils _rebuild_"


def describe_file(path: Path) -> str | None:
    """Return what a file is that is no archive; None for one that PyTorch did not save."""
    with OpenFile.open(path) as opened:
        head = bytearray(min(_MOST_BYTES, opened.size))
        opened.read_into(head, 0)
        size = opened.size
    if head.startswith(_OLD):
        return describe_pickle(bytes(head), before=3)  # A number, a version, and sizes of types.
    length = int.from_bytes(head[:8], "little")
    if path.suffix == ".safetensors" and head[8:9] == b"{" and length <= size - 8:
        return f"holds {ADVICE}"
    return None


def describe_pickle(data: bytes, before: int = 0) -> str:
    """Return what a pickle of ``torch.save`` holds, as the end of a message.

    Args:
        data: The pickle, or its beginning.
        before: How many pickles there are in front of it.
    """
    made, keys, is_dict = _look(data, before)
    tensors = any(name.startswith(_TENSOR) for name in made)
    others = [name for name in made if not name.startswith(("collections ", "torch"))]
    modules = [name for name in made if name.startswith("torch.nn.modules.")] + others
    if is_dict and tensors and not modules:
        return f"holds a dict of tensors from {(keys or ['?'])[0]!r} on, {ADVICE}"
    if not is_dict and made and not made[0].startswith(_TENSOR):
        name = printable(made[0].replace(" ", "."))[:100]
        return (
            f"holds a pickled module, {name}, which is never unpickled here, since that runs what "
            "the file says; where you trust it, load it with torch.load(..., weights_only=False), "
            "and give the module with example_inputs"
        )
    return (
        "holds a pickle of torch.save, which is no program; load it with torch, "
        "and give the module or what torch.export.export makes of it"
    )


def _look(data: bytes, before: int) -> tuple[list[str], list[str], bool]:
    """Return what functions and classes a pickle names, its texts, and whether it is a dict."""
    made: list[str] = []
    texts: list[str] = []
    first = ""
    try:
        for name, argument in islice(_opcodes(data, before), _MOST_OPS):
            if name == "STACK_GLOBAL" and len(texts) > 1:
                name, argument = "GLOBAL", f"{texts[-2]} {texts[-1]}"
            if name == "GLOBAL":
                made.append(str(argument))
            elif name in _STRINGS:
                texts.append(str(argument))
                continue
            first = first or f"{name} {argument}"
    except (ValueError, IndexError, OverflowError):
        pass  # The beginning of a long one, or a damaged one.
    keys = [printable(text)[:100] for text in texts]
    return made, keys, first.startswith(("EMPTY_DICT", "GLOBAL collections OrderedDict"))


def _opcodes(data: bytes, before: int) -> Iterator[tuple[str, AnyValue]]:
    file = BytesIO(data)
    for _ in range(before):
        for _ in islice(pickletools.genops(file), _MOST_OPS):
            pass
    for op, argument, _ in pickletools.genops(file):
        if op.name not in _SILENT:
            yield op.name, argument


def holds_tensors(source: object, tensor: type) -> bool:
    """Whether an object is a dict of tensors, or has one in it, as checkpoints do."""
    if not isinstance(source, Mapping):
        return False
    inner = [each.values() for each in source.values() if isinstance(each, Mapping)]
    return any(isinstance(x, tensor) for values in (source.values(), *inner) for x in values)
