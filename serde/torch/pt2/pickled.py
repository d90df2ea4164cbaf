"""Tensors as ``torch.save`` writes them, which PyTorch 2.6 to 2.8 did with those of archives.

The pickle is read as data, step by step: nothing that it names is imported, made or called.
"""

from __future__ import annotations

import pickletools  # nosec B403
import struct
from collections.abc import Mapping
from typing import Any as AnyValue, Final

from serde.core.limits import MAX_TORCH_JSON_BYTES
from serde.core.records import dataclass
from serde.io.zips import Archive
from serde.torch.pt2.document import Document
from serde.torch.pt2.versions import DTYPES

__all__ = ["read_tensors"]

_PICKLE: Final = "data.pkl"
_STORAGES: Final = {
    "BFloat16Storage": "bfloat16", "BoolStorage": "bool", "ByteStorage": "uint8",
    "CharStorage": "int8", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "IntStorage": "int32", "LongStorage": "int64", "ShortStorage": "int16",
}  # fmt: skip
_CODES: Final = {name: code for code, name in DTYPES.items()}
_MARK: Final = object()


@dataclass(frozen=True, slots=True)
class _Global:
    """What a pickle names, with its module."""

    name: str


def read_tensors(archive: Archive) -> Mapping[str, Document]:
    """Return the tensors of an archive of ``torch.save``, as the entries of a configuration.

    Raises:
        FormatError: It holds anything else.
    """
    try:
        found = _read(archive.read(_PICKLE, MAX_TORCH_JSON_BYTES))
        if not isinstance(found, dict):
            raise ValueError("no dict of tensors")
    except (LookupError, OverflowError, TypeError, ValueError, struct.error) as error:
        raise archive.error(f"{_PICKLE}: expected a pickle of tensors: {error!s:.200}") from None
    return dict(Document(found, _PICKLE, archive.path).entries())


def _read(data: bytes) -> AnyValue:
    """Return what a pickle holds."""
    stack: list[AnyValue] = []
    memo: dict[AnyValue, AnyValue] = {}
    for op, argument, _ in pickletools.genops(data):
        name = op.name
        if name.endswith("PUT") or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name.endswith("GET"):
            stack.append(memo[argument])
        elif name in ("TUPLE", "SETITEMS"):
            start = len(stack) - 1 - stack[::-1].index(_MARK)
            items = stack[start + 1 :]
            del stack[start:]
            _add(stack, items) if name == "SETITEMS" else stack.append(tuple(items))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3", "SETITEM"):
            count = 2 if name == "SETITEM" else int(name[-1])
            items = [stack.pop() for _ in range(count)][::-1]
            _add(stack, items) if name == "SETITEM" else stack.append(tuple(items))
        elif name == "STACK_GLOBAL":
            own, module = stack.pop(), stack.pop()
            stack.append(_Global(f"{module} {own}"))
        elif name == "REDUCE":
            given = stack.pop()
            stack.append(_rebuild(stack.pop(), given))
        elif name == "BUILD":
            stack.pop()  # What a dict of a module knows of its classes.
        elif name in _PUSHED:
            stack.append({} if name == "EMPTY_DICT" else _PUSHED[name])
        elif name == "GLOBAL":
            stack.append(_Global(str(argument)))
        elif isinstance(argument, (int, str)) and name not in ("PROTO", "FRAME"):
            stack.append(argument)
        elif name not in ("PROTO", "FRAME", "STOP", "BINPERSID"):
            raise ValueError(f"a step {name}")
    return stack.pop()


_PUSHED: Final[Mapping[str, AnyValue]] = {
    "EMPTY_DICT": {}, "EMPTY_TUPLE": (), "MARK": _MARK, "NEWFALSE": False, "NEWTRUE": True,
    "NONE": None,
}  # fmt: skip


def _add(stack: list[AnyValue], items: list[AnyValue]) -> None:
    """Add keys and values to the dict below them."""
    if not isinstance(stack[-1], dict) or len(items) % 2:
        raise ValueError("keys of what is no dict")
    stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _rebuild(function: AnyValue, given: AnyValue) -> AnyValue:
    """Return a tensor as an entry, or a dict."""
    name = function.name if isinstance(function, _Global) else "a value"
    if name == "collections OrderedDict" and not given:
        return {}
    if name == "torch._utils _rebuild_parameter":
        return given[0]
    if name not in ("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3"):
        raise ValueError(f"{name} is no tensor")
    (_, kind, path, *_), offset, sizes, strides, *rest = given
    named = rest[2] if name.endswith("v3") else kind
    own = named.name.rpartition(" ")[2] if isinstance(named, _Global) else ""
    lengths, steps = ([{"as_int": x} for x in each] for each in (sizes, strides))
    meta = {
        "dtype": _CODES[_STORAGES.get(own, own)], "layout": 7, "sizes": lengths, "strides": steps,
        "storage_offset": {"as_int": offset},
    }  # fmt: skip
    return {"path_name": f"data/{path}", "use_pickle": False, "tensor_meta": meta}
