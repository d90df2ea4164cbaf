"""Tensor arrays as TVM's Prelude defines them: lists of tensors, as text for each element type.

A dynamic one holds tensors of rank 0 to 6, one constructor for each; a static one holds tensors of
one shape, in a type whose name has that shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.relay.ir.dims import Any
from serde.relay.tvm.standard.texts import fill

__all__ = ["dynamic_definitions", "static_name", "tensor_text"]

_MAX_RANK: Final = 6
_MAX_CONCATENATED: Final = 4
"""Highest rank of tensors that TVM's function for dynamic tensor arrays concatenates."""

Name = Callable[[str], str]


def tensor_text(shape: Sequence[AnyValue], dtype: str) -> str:
    """Return the type of a tensor as text; a length that is no integer is anonymous."""
    dims = ", ".join("?" if isinstance(dim, (Any, str)) else str(int(dim)) for dim in shape)
    return f"Tensor[({dims}), {dtype}]"


def static_name(
    canonical: str,
    dtype: str,
    shape: Sequence[AnyValue],
    batch_dim: int | None = None,
    extra_shapes: dict[str, Sequence[AnyValue]] | None = None,
) -> str:
    """Return TVM's name of a function, a type or a constructor of static tensor arrays.

    Args:
        canonical: What it is, such as ``"tensor_array_read"``.
        dtype: Element type.
        shape: Shape of the tensors.
        batch_dim: 1 for a stack of one tensor only.
        extra_shapes: Further shapes that the function is made for, by name.
    """
    text = _join_dims(shape)
    for name, extra in (extra_shapes or {}).items():
        text += f"_{name}_{_join_dims(extra)}"
    text = text or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{text}_t"
    if batch_dim != 1 or canonical in ("tensor_constructor", "tensor_nil"):
        return f"{canonical}_{dtype}_{text}"
    return f"{canonical}_{dtype}_batch{batch_dim}_{text}"


def _join_dims(shape: Sequence[AnyValue]) -> str:
    return "_".join("any" if isinstance(dim, (Any, str)) else str(int(dim)) for dim in shape)


def dynamic_definitions(dtype: str, name: Name) -> str:
    """Return the text of the type of tensors of any rank, and of the functions of their arrays.

    Args:
        dtype: Element type.
        name: Gives the name of what a canonical name stands for.
    """
    ranks = range(_MAX_RANK + 1)
    cases = [f"  {name(f'tensor{r}')}({tensor_text(['?'] * r, dtype)}),\n" for r in ranks]
    parts = [
        f"type {name('tensor_t')} {{\n  {name('tensor_nil')},\n{''.join(cases)}}}\n",
        _take(name),
        _expand_dims(name),
        _concatenate(name),
        *(_unstack(dtype, rank, name) for rank in range(1, _MAX_RANK + 1)),
        fill("tensor_arrays.rly", name),
    ]
    return "\n".join(parts)


def _take(name: Name) -> str:
    indices = 'arange(%lower, %upper, 1, dtype="int32")'
    cases = [
        f"    {name(f'tensor{r}')}(%t) => {name(f'tensor{r}')}(take(%t, {indices}, axis=0)),\n"
        for r in range(1, _MAX_RANK + 1)
    ]
    whole = name("tensor_t")
    return (
        f"def @{name('tensor_take')}(%tensor: {whole}, %lower: int32, %upper: int32)"
        f" -> {whole} {{\n  match? (%tensor) {{\n{''.join(cases)}  }}\n}}\n"
    )


def _expand_dims(name: Name) -> str:
    cases = [
        f"    {name(f'tensor{r}')}(%t) => {name(f'tensor{r + 1}')}(expand_dims(%t, axis=0)),\n"
        for r in range(_MAX_RANK)
    ]
    whole = name("tensor_t")
    return (
        f"def @{name('tensor_expand_dims')}(%x: {whole}) -> {whole} {{\n"
        f"  match? (%x) {{\n{''.join(cases)}  }}\n}}\n"
    )


def _concatenate(name: Name) -> str:
    cases = []
    for rank in range(1, _MAX_CONCATENATED + 1):
        case = name(f"tensor{rank}")
        inner = f"{case}(%b) => {case}(concatenate((%a, %b), axis=0)),"
        cases.append(f"    {case}(%a) => match? (%y) {{ {inner} }},\n")
    whole = name("tensor_t")
    return (
        f"def @{name('tensor_concatenate')}(%x: {whole}, %y: {whole}) -> {whole} {{\n"
        f"  match? (%x) {{\n{''.join(cases)}  }}\n}}\n"
    )


def _unstack(dtype: str, rank: int, name: Name) -> str:
    tensor = tensor_text(["?"] * rank, dtype)
    helper = name(f"tensor_array_unstack_tensor{rank}_helper")
    result = f"List[{name('tensor_t')}]"
    return f"""
def @{helper}(%i: int32, %up: int32, %t: {tensor}) -> {result} {{
  if (%i == %up) {{
    Nil
  }} else {{
    Cons({name(f"tensor{rank - 1}")}(take(%t, %i, axis=0)), @{helper}(%i + 1, %up, %t))
  }}
}}

def @{name(f"tensor_array_unstack_tensor{rank}")}(%tensor: {tensor}) -> {result} {{
  @{helper}(0, take(shape_of(%tensor, dtype="int32"), 0), %tensor)
}}
"""
