"""The names of TVMScript that a text may use; everything else is out of its reach.

TVM's parser evaluates expressions as Python does, so what is not needed to print a module is
not there to be called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from serde.relax.framework import Framework

__all__ = ["BUFFER_FIELDS", "ELEMENTS", "FUNCTION_NAMES", "is_function_of_tvm", "unknown_names"]

_WORDS: Final = {
    "I": "module_attrs module_global_infos",
    "R": """
        Any Callable Object Prim Shape Tensor Tuple
        call_pure_packed const dataflow dtype func_attr match_cast null_value output prim_value
        shape str tuple
    """,
    "T": """
        Add And Broadcast Buffer Cast Div EQ FloorDiv FloorMod GE GT LE LT Let Max Min Mod Mul NE
        Not Or Ramp Range Select Shuffle Sub Var
        abs acos acosh address_of alloc_buffer alloc_local asin asinh assume atan atan2 atanh attr
        axis.opaque axis.reduce axis.remap axis.scan axis.spatial
        bitwise_and bitwise_not bitwise_or bitwise_xor bool boolean broadcast
        call_extern call_llvm_intrin call_llvm_pure_intrin call_packed call_pure_extern
        cast ceil ceildiv clz copysign cos cosh decl_buffer erf evaluate exp exp10 exp2 fabs floor
        floordiv floormod fma fmod func_attr grid handle hypot if_then_else infinity init int
        isfinite isinf isnan isnullptr ldexp let likely log log10 log1p log2 match_buffer max
        max_value min min_value nearbyint nextafter parallel popcount pow ptr q_multiply_shift
        q_multiply_shift_per_axis ramp reads reinterpret round rsqrt sblock sblock_alloc_buffer
        sblock_attr serial shift_left shift_right sigmoid sin sinh sqrt tan tanh
        thread_binding trunc truncdiv truncmod
        tvm_access_ptr tvm_call_packed tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape
        tvm_struct_get tvm_struct_set tvm_tuple
        undef unroll vectorized void where while writes
    """,
}
_NAMES: Final = frozenset(f"{root}.{each}" for root in _WORDS for each in _WORDS[root].split())
"""Names beside the operators of Relax and the element types."""

ELEMENTS: Final = re.compile(r"T\.(?:bool|(?:u?int|b?float)\d+(?:_e\dm\d\w*)?(?:x\d+)?)")
"""Element types, which are those of numbers as well."""

_LOWERED: Final = re.compile(r"relax\.(?:call_(?!tir|dps_packed)|(?:builtin|inspect|memory|vm)\.)")
"""Operators of modules that TVM has lowered to calls of its runtime."""

FUNCTION_NAMES: Final = {
    "R.call_dps_packed": 0,
    "R.call_pure_packed": 0,
    "T.call_extern": 1,
    "T.call_llvm_intrin": 1,
    "T.call_llvm_pure_intrin": 1,
    "T.call_packed": 0,
    "T.call_pure_extern": 1,
    "T.tvm_call_packed": 0,
}
"""What calls a function by its name at run time, and which operand is that name."""

_FUNCTIONS: Final = re.compile(r"tvm\.contrib\.sort\.\w+|llvm\.[\w.]+|[\w.]*::[\w.:]+")
"""Functions that tensor expressions call, and operators of the user, which have two colons."""

BUFFER_FIELDS: Final = frozenset(("data", "elem_offset", "shape", "strides"))
"""What a text may read of a buffer."""


def unknown_names(framework: Framework, names: Iterable[str]) -> list[str]:
    """Return those of some names (``R.nn.relu``) that a text may not use, sorted.

    Args:
        framework: TVM, whose operators of Relax are known.
        names: Names with their module.
    """
    operators = set(framework.tvm.ir.Op.list_op_names())
    return sorted(each for each in set(names) if not _is_known(each, operators))


def _is_known(name: str, operators: set[str]) -> bool:
    if name in _NAMES or ELEMENTS.fullmatch(name):
        return True
    root, _, rest = name.partition(".")
    operator = f"relax.{rest}"
    return root == "R" and operator in operators and not _LOWERED.match(operator)


def is_function_of_tvm(name: str) -> bool:
    """Whether a text may call the function of this name."""
    return _FUNCTIONS.fullmatch(name) is not None
