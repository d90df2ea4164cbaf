"""How Python's operators, functions and methods are called in PyTorch's own schemas."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final

from serde.torch.ops.table import DTYPE_CODES
from serde.torch.safetensors import DTYPES

__all__ = [
    "ATTRIBUTES", "BUILTINS", "CASTS", "CONSTANTS", "INFIX", "PREFIX", "dtype_of", "name_of",
]  # fmt: skip

_Entry = tuple[str, Callable[..., AnyValue]]
"""An operator, and what computes it of known values."""

INFIX: Final[Mapping[type, _Entry]] = {
    ast.Add: ("aten::add", operator.add),
    ast.Sub: ("aten::sub", operator.sub),
    ast.Mult: ("aten::mul", operator.mul),
    ast.Div: ("aten::div", operator.truediv),
    ast.FloorDiv: ("aten::floor_divide", operator.floordiv),
    ast.Mod: ("aten::remainder", operator.mod),
    ast.Pow: ("aten::pow", lambda a, b: a**b if abs(b) <= 64 else math.pow(a, b)),
    ast.MatMult: ("aten::matmul", operator.matmul),
    ast.LShift: ("aten::__lshift__", lambda a, b: a << min(b, 64)),
    ast.RShift: ("aten::__rshift__", operator.rshift),
    ast.BitAnd: ("aten::__and__", operator.and_),
    ast.BitOr: ("aten::__or__", operator.or_),
    ast.BitXor: ("aten::__xor__", operator.xor),
    ast.Eq: ("aten::eq", operator.eq),
    ast.NotEq: ("aten::ne", operator.ne),
    ast.Lt: ("aten::lt", operator.lt),
    ast.LtE: ("aten::le", operator.le),
    ast.Gt: ("aten::gt", operator.gt),
    ast.GtE: ("aten::ge", operator.ge),
    ast.Is: ("aten::__is__", operator.is_),
    ast.IsNot: ("aten::__isnot__", operator.is_not),
    ast.In: ("", lambda a, b: a in b),
    ast.NotIn: ("", lambda a, b: a not in b),
}

PREFIX: Final[Mapping[type, _Entry]] = {
    ast.USub: ("aten::neg", operator.neg),
    ast.Invert: ("aten::bitwise_not", operator.invert),
}

BUILTINS: Final[Mapping[str, _Entry]] = {
    "abs": ("aten::abs", abs), "bool": ("aten::Bool", bool), "enumerate": ("", enumerate),
    "float": ("aten::Float", float), "int": ("aten::Int", int), "isinstance": ("", isinstance),
    "getattr": ("", getattr), "len": ("aten::len", len), "list": ("aten::list", list),
    "max": ("prim::max", max), "min": ("prim::min", min), "range": ("", range),
    "round": ("aten::round", round), "sum": ("aten::sum", sum), "tuple": ("aten::list", tuple),
    "zip": ("", zip),
}  # fmt: skip
"""Functions of Python's, some of which are read otherwise."""

CASTS: Final[Mapping[str, str]] = {
    "bfloat16": "bfloat16", "bool": "bool", "double": "float64", "float": "float32",
    "half": "float16", "int": "int32", "long": "int64", "short": "int16",
}  # fmt: skip
"""Methods of tensors that cast, and other names of dtypes."""

ATTRIBUTES: Final[Mapping[str, str]] = {
    "T": "aten::t", "dtype": "prim::dtype", "imag": "aten::imag", "ndim": "aten::dim",
    "real": "aten::real", "shape": "aten::size",
}  # fmt: skip

CONSTANTS: Final[Mapping[str, AnyValue]] = {
    **{f"{x}.{y}": getattr(math, y) for x in ("math", "torch") for y in ("e", "inf", "nan", "pi")},
    "torch.contiguous_format": "contiguous_format",
}

_NAMESPACES: Final = (
    ("torch.ops.aten.", ""), ("torch.nn.functional.", ""), ("torch.linalg.", "linalg_"),
    ("torch.fft.", "fft_"), ("torch.special.", "special_"), ("torch.", ""), ("math.", ""),
)  # fmt: skip


def name_of(function: str) -> str | None:
    """Return the operator that a function of PyTorch's is; None where there is none."""
    for prefix, ours in _NAMESPACES:
        rest = function.removeprefix(prefix)
        if rest != function and rest.isidentifier():
            return f"aten::{ours}{rest}"
    return None


def dtype_of(name: str) -> int | str | None:
    """Return a dtype as TorchScript has it: by its code where it has one."""
    dtype = CASTS.get(name, name)
    if dtype in DTYPE_CODES:
        return DTYPE_CODES.index(dtype)
    return dtype if dtype in DTYPES else None
