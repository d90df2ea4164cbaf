"""PyTorch operators that Relay does not know: those of libraries, ``torch.ops.mylib.op``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np

from serde.core import Array, is_installed, require
from serde.engine.base import first_line
from serde.errors import RelayError, Unsupported
from serde.relay.ir import ARGUMENTS, Empty, Expr, Foreign, Input, TensorType
from serde.torch.model import OWN_NAMESPACES
from serde.torch.program import Apply

if TYPE_CHECKING:
    from serde.torch.export_context import ExportContext, Value

__all__ = ["bind_arguments", "foreign_node", "infer_types", "run_foreign", "write_foreign"]

_DEFAULT: Final = "default"
_NOT_A_NAME: Final = re.compile(r"\W")


def foreign_node(
    op: str, arguments: Mapping[str, AnyValue], types: Sequence[TensorType | None]
) -> tuple[Foreign, list[Expr]]:
    """Return what a node is, and the tensors that it reads.

    Args:
        op: The operator with its overload.
        arguments: Its arguments by name: expressions, values of Python's, and lists of both.
        types: Types of its results that the program records.

    Raises:
        Unsupported: An argument is neither.
    """
    domain, _, name = op.partition("::")
    inputs: list[Expr] = []
    places: list[tuple[str, AnyValue]] = []
    attributes: dict[str, AnyValue] = {}
    for key, value in arguments.items():
        held = _held(value, inputs)
        if _has_input(held):
            places.append((key, held))
        else:
            places.append((key, None))
            attributes[key] = held
    plain = [key for key, _ in places] == [f"x{i}" for i in range(len(inputs))]
    if not plain:
        attributes[ARGUMENTS] = tuple(places)
    known = tuple(each for each in types if each is not None)
    results = known if len(known) == len(types) else ()
    found = Foreign(
        framework="torch", name=name, domain=domain, attributes=attributes, results=results
    )
    return found, inputs


def _held(value: AnyValue, inputs: list[Expr]) -> AnyValue:
    if isinstance(value, Expr):
        inputs.append(value)
        return Input(len(inputs) - 1)
    if isinstance(value, (list, tuple)):
        return tuple(_held(each, inputs) for each in value) or Empty("list")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Unsupported(f"an argument that is not kept: {value!r:.100}")


def _has_input(value: AnyValue) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_input, value))
    return isinstance(value, Input)


def _arguments(node: Foreign, given: Sequence[AnyValue]) -> Iterator[tuple[str, AnyValue]]:
    """Yield the arguments of a call, operands at their places; "" for one without a name."""
    attributes = dict(node.attributes)
    if node.framework != "torch" or ARGUMENTS not in attributes:
        attributes.pop(ARGUMENTS, None)
        yield from (("", each) for each in given)
        yield from attributes.items()
        return
    for key, held in attributes.pop(ARGUMENTS):
        yield key, _placed(attributes[key] if held is None else held, given)


def _placed(held: AnyValue, given: Sequence[AnyValue]) -> AnyValue:
    if isinstance(held, tuple):
        return [_placed(each, given) for each in held]
    return given[held.index] if isinstance(held, Input) else held


def infer_types(node: Foreign, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return the types that PyTorch infers on fake tensors, none where it cannot."""
    if not is_installed("torch") or any(each.concrete_shape is None for each in types):
        return ()
    torch = require("torch")
    try:
        call = _operator(torch, node)
        with torch._subclasses.FakeTensorMode():
            given = [
                torch.empty(each.concrete_shape, dtype=getattr(torch, each.dtype)) for each in types
            ]
            found = _called(call, node, given)
            return tuple(
                TensorType(tuple(map(int, each.shape)), str(each.dtype).removeprefix("torch."))
                for each in found
            )
    except Exception:  # Whatever a user's operator raises, its types are not known.
        return ()


def _operator(torch: AnyValue, node: Foreign) -> AnyValue:
    """Return the operator in PyTorch."""
    placed = [held for _, held in node.attributes.get(ARGUMENTS, ())]
    values = {**node.attributes, ARGUMENTS: placed}
    if node.domain in OWN_NAMESPACES and _has_text(values):
        raise RelayError(f"{node.full_name}: takes a text, and may open what that names")
    name, _, overload = node.name.partition(".")
    try:
        packet = getattr(getattr(torch.ops, node.domain), name)
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            raise AttributeError(node.name)
        return getattr(packet, overload) if overload and overload != _DEFAULT else packet
    except (AttributeError, RuntimeError) as error:
        raise RelayError(
            f"PyTorch has no operator {node.full_name}: import the library that registers it first"
        ) from error


def _has_text(value: AnyValue) -> bool:
    """Whether an argument is a text, or has one inside."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(_has_text, value))
    return isinstance(value, (str, bytes))


def _called(call: AnyValue, node: Foreign, given: Sequence[AnyValue]) -> list[AnyValue]:
    """Return what an operator gives for tensors, as a list."""
    pairs = list(_arguments(node, given))
    names = [key for key, _ in pairs]
    if any(not key or key.isdigit() for key in names):
        found = call(*(each for _, each in pairs))
    else:
        found = call(**dict(pairs))
    return list(found) if isinstance(found, (list, tuple)) else [found]


def run_foreign(node: Foreign, inputs: Sequence[Array | None]) -> list[Array]:
    """Return what PyTorch computes.

    Raises:
        MissingDependency: PyTorch is not installed.
        RelayError: It does not have the operator, or the operator fails.
    """
    torch = require("torch")
    call = _operator(torch, node)
    given = [None if each is None else torch.from_numpy(np.array(each)) for each in inputs]
    try:
        with torch.no_grad():
            return [each.detach().cpu().numpy() for each in _called(call, node, given)]
    except Exception as error:
        raise RelayError(f"{node.full_name}: PyTorch: {first_line(error)}") from error


def write_foreign(ctx: ExportContext, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
    """Write the call of an operator of a library: as it was, or of the framework's name.

    Raises:
        Unsupported: A name is none of Python's, or an attribute no argument.
    """
    own = node.framework == "torch"
    domain = node.domain or node.framework
    name = node.name if own else _plain(node.name)
    domain = domain if own else _plain(domain)
    if not all(part.isidentifier() for part in (domain, *name.split("."))):
        raise Unsupported(f"{node.full_name} is no name of an operator in Python")
    pairs = list(_arguments(node, operands))
    first = [each for key, each in pairs if not key or key.isdigit()]
    rest = {key: each for key, each in pairs if key and not key.isdigit()}
    for key, each in rest.items():
        if not key.isidentifier() or not _is_argument(each):
            raise Unsupported(f"attribute {key}={each!r:.100} is no argument of a call")
    terms = tuple(map(ctx.term, first))
    keywords = tuple((key, ctx.term(_plain_value(each))) for key, each in rest.items())
    call = Apply(f"torch.ops.{domain}.{name}", terms, keywords)
    if len(node.results) == 1:
        return ctx.assign(call)
    return ctx.assign_tuple(call, len(node.results))


def _plain(name: str) -> str:
    return _NOT_A_NAME.sub("_", name)


def _plain_value(value: AnyValue) -> AnyValue:
    if isinstance(value, tuple):
        return [_plain_value(each) for each in value]
    return value


def _is_argument(value: AnyValue) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_argument, value))
    return value is None or isinstance(value, (bool, int, float, str)) or hasattr(value, "term")


def bind_arguments(
    operands: Sequence[str],
    attributes: Mapping[str, AnyValue],
    arguments: Mapping[str, AnyValue],
    *,
    variadic: bool,
) -> tuple[list[AnyValue], dict[str, AnyValue]]:
    """Return the arguments of a node as a user's function takes them.

    What has the name of a parameter is that parameter; the others go to the tensors that are
    left, in order, and what is neither tensor nor list of them by its own name.

    Args:
        operands: The function's tensors; where there may be many, the last stands for them.
        attributes: Its attributes.
        arguments: What the node is given.
        variadic: Whether there may be many.
    """
    named = {key: each for key, each in arguments.items() if key in attributes}
    fixed = list(operands[:-1] if variadic else operands)
    slots: dict[str, AnyValue] = {
        key: each for key, each in arguments.items() if key in fixed and key not in named
    }
    rest: list[AnyValue] = []
    free = [key for key in fixed if key not in slots]
    open_ = [key for key in attributes if key not in named]
    for key, each in arguments.items():
        if key in named or key in slots:
            continue
        if _is_tensors(each) and free:
            slots[free.pop(0)] = each
        elif _is_tensors(each) and variadic:
            rest += each if isinstance(each, (list, tuple)) else [each]
        elif key.isdigit() and open_:
            named[open_.pop(0)] = each
        elif free and not variadic and each is None:
            slots[free.pop(0)] = each
        else:
            named[key] = each
    given = [slots.get(key) for key in fixed] + rest
    while given and given[-1] is None and not rest:
        given.pop()
    return given, named


def _is_tensors(value: AnyValue) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(each, Expr) for each in value)
    return isinstance(value, Expr)
