"""How Python's operators, functions and methods are called in PyTorch's own schemas."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any as AnyValue
from typing import Final

from serde.torch.ops.table import DTYPE_CODES
from serde.torch.written.folder import DTYPES

__all__ = ["BUILTINS", "CASTS", "CONSTANTS", "CONSTANT_MATH", "INFIX", "METHODS", "PREFIX", "dtype_of", "name_of"]

Infix = tuple[str, Callable[[AnyValue, AnyValue], AnyValue]]

INFIX: Final[Mapping[type, Infix]] = {
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

PREFIX: Final[Mapping[type, tuple[str, Callable[[AnyValue], AnyValue]]]] = {
    ast.USub: ("aten::neg", operator.neg),
    ast.Invert: ("aten::bitwise_not", operator.invert),
    ast.Not: ("aten::__not__", operator.not_),
}

BUILTINS: Final[Mapping[str, tuple[str, Callable[..., AnyValue]]]] = {
    "abs": ("aten::abs", abs),
    "bool": ("aten::Bool", bool),
    "float": ("aten::Float", float),
    "int": ("aten::Int", int),
    "isinstance": ("", isinstance),
    "len": ("aten::len", len),
    "list": ("aten::list", list),
    "max": ("prim::max", max),
    "min": ("prim::min", min),
    "round": ("aten::round", round),
    "sum": ("aten::sum", sum),
    "tuple": ("aten::list", tuple),
}
"""Functions of Python's: the operator, and what computes it of known values."""

CASTS: Final[Mapping[str, str]] = {
    "bfloat16": "bfloat16", "bool": "bool", "double": "float64", "float": "float32",
    "half": "float16", "int": "int32", "long": "int64", "short": "int16",
}  # fmt: skip
"""Methods of tensors that cast."""

METHODS: Final[Mapping[str, str]] = {"tolist": "prim::tolist", "ndimension": "aten::dim"}
"""Methods whose operator has another name."""

CONSTANTS: Final[Mapping[str, AnyValue]] = {
    **{f"{home}.{name}": getattr(math, name) for home in ("math", "torch")
       for name in ("pi", "inf", "nan", "e")},
    "torch.contiguous_format": "contiguous_format", "torch.strided": "strided",
    "torch.preserve_format": "preserve_format",
}  # fmt: skip

CONSTANT_MATH: Final[Mapping[str, Callable[..., AnyValue]]] = {
    name: getattr(math, name)
    for name in ("ceil", "cos", "exp", "floor", "log", "log2", "pow", "sin", "sqrt", "tanh")
}

_NAMESPACES: Final = (
    ("torch.ops.aten.", "aten::"),
    ("torch.nn.functional.", "aten::"),
    ("torch.linalg.", "aten::linalg_"),
    ("torch.fft.", "aten::fft_"),
    ("torch.special.", "aten::special_"),
    ("torch.", "aten::"),
    ("math.", "aten::"),
)


def name_of(function: str) -> str | None:
    """Return the operator that a function of PyTorch's is; None where there is none."""
    for prefix, ours in _NAMESPACES:
        rest = function.removeprefix(prefix)
        if rest != function and rest.isidentifier():
            return f"{ours}{rest}"
    return None


def dtype_of(name: str) -> int | str | None:
    """Return a dtype as TorchScript has it: by its code where it has one."""
    dtype = {"half": "float16", "float": "float32", "double": "float64", "int": "int32",
             "long": "int64", "short": "int16"}.get(name, name)  # fmt: skip
    if dtype in DTYPE_CODES:
        return DTYPE_CODES.index(dtype)
    return dtype if dtype in DTYPES else None
