"""What TVM's objects say about themselves, the same for all releases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any as AnyValue, Final

from serde.core.limits import budget
from serde.relax.framework import Framework, load

__all__ = [
    "argument_names", "attributes_of", "called_functions", "dtype_of", "handle_of", "leaves_of",
    "name_of", "plain_value", "result_leaves", "tensor_of",
]  # fmt: skip


def handle_of(node: AnyValue) -> int:
    """Return what tells an object from all others while it lives; ``==`` of lengths does not."""
    return node.__chandle__()


def name_of(variable: AnyValue) -> str:
    """Return the name of a variable or a global one, of an operator or a packed function."""
    kinds = ("name_hint", "name", "global_symbol")
    found = next((getattr(variable, each) for each in kinds if hasattr(variable, each)), None)
    return type(variable).__name__ if found is None else str(found)


def tensor_of(constant: AnyValue) -> AnyValue:
    """Return the tensor that a constant holds."""
    return constant.value if hasattr(constant, "value") else constant.data


_UNNAMED: Final = {"relax.strided_slice": ("x", "axes", "begin", "end", "strides")}
"""Arguments of operators of which TVM names the first only."""


@cache
def argument_names(op: str) -> tuple[str, ...]:
    """Return what TVM calls the arguments of an operator."""
    if op in _UNNAMED:
        return _UNNAMED[op]
    return tuple(str(each.name) for each in load().tvm.ir.Op.get(op).arguments or ())


def attributes_of(framework: Framework, call: AnyValue) -> dict[str, AnyValue]:
    """Return the attributes of a call by name, as Python's values where they have one."""
    attrs = call.attrs
    if attrs is None:
        return {}
    if isinstance(attrs, framework.tvm.ir.DictAttrs):
        return {str(name): plain_value(framework, attrs[name]) for name in attrs.keys()}  # noqa: SIM118
    kind: AnyValue = type(attrs)
    return {name: plain_value(framework, getattr(attrs, name)) for name in _fields(kind)}


@cache
def _fields(kind: AnyValue) -> tuple[str, ...]:
    names, info = list[str](), kind.__tvm_ffi_type_info__
    while info is not None:
        names += (each.name for each in info.fields)
        info = info.parent_type_info
    return tuple(names)


def plain_value(framework: Framework, value: AnyValue) -> AnyValue:
    """Return an attribute as Python's value; what has none is returned as it is."""
    if isinstance(value, framework.dtypes):
        return None if str(value) in ("", "void") else str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (framework.tir.IntImm, framework.tir.FloatImm)):
        found = value.value
        return bool(found) if dtype_of(value) == "bool" else found
    if isinstance(value, framework.tvm.ir.Array):
        return tuple(plain_value(framework, each) for each in value)
    return value


def dtype_of(number: AnyValue) -> str:
    """Return the dtype of a number of TIR."""
    type_: AnyValue = getattr(number, "ty", None)
    return str(type_.dtype if hasattr(type_, "dtype") else number.dtype)


def leaves_of(framework: Framework, type_: AnyValue) -> list[AnyValue]:
    """Return a type, or those in a tuple and in tuples inside it, in order."""
    found, pending = list[AnyValue](), [type_]
    while pending:
        each = pending.pop()
        if isinstance(each, framework.TupleType):
            budget().draw("nodes", len(each.fields), "the fields of a tuple")
            pending.extend(reversed(list(each.fields)))
        else:
            found.append(each)
    return found


def result_leaves(framework: Framework, function: AnyValue) -> list[AnyValue]:
    """Return the types of what a function gives.

    TVM runs functions whose body gives more, or less, than they declare: the body counts.
    """
    declared = leaves_of(framework, framework.result_type(function))
    body = function.body
    last = body.body if isinstance(body, framework.relax.SeqExpr) else body
    given = framework.type_of(last)
    if not isinstance(given, (framework.TupleType, framework.TensorType)):
        return declared
    found = leaves_of(framework, given)
    return declared if len(found) == len(declared) else found


def called_functions(framework: Framework, function: AnyValue) -> Iterator[str]:
    """Yield the names of global variables that a function uses."""
    relax = framework.relax
    pending = [function.body]
    while pending:
        each = pending.pop()
        if isinstance(each, relax.GlobalVar):
            yield name_of(each)
        elif isinstance(each, relax.SeqExpr):
            pending.append(each.body)
            pending.extend(b.value for block in each.blocks for b in block.bindings)
        elif isinstance(each, relax.If):
            pending += [each.cond, each.true_branch, each.false_branch]
        elif isinstance(each, relax.Call):
            pending += [each.op, *each.args]
        elif isinstance(each, relax.Tuple):
            pending.extend(each.fields)
        elif isinstance(each, relax.TupleGetItem):
            pending.append(each.tuple_value)
        elif isinstance(each, relax.Function):
            pending.append(each.body)
