"""The operator that stands for one that Relay does not know."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import ARGUMENTS, Apply, Blank, Dim, Foreign, Input, value_types
from serde.relay.ir.expr import Call, Expr, Function, Let, Var, astuple
from serde.relay.ir.foreign import (
    FOREIGN,
    PIVOT_FRAMEWORK,
    check_arguments,
    decode_attributes,
    result_type,
)
from serde.relay.ir.registry import Array, call, relay_op, sample, set_type, tensor
from serde.relay.ir.traits import BitLevel, Float32, Foreign as ForeignTrait
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type

_ENGINE: Final = "serde.engine.foreign"
"""Runs operators by the frameworks that they come from; it stands above, so it is found by name."""

ResultTypes = tuple[tuple[tuple[Dim, ...], str], ...]


def _foreign_type(
    inputs: Sequence[TensorType],
    *,
    framework: str,
    name: str,
    attributes: str,
    absent: tuple[int, ...],
    result_types: ResultTypes,
    **_: AnyValue,
) -> Type | tuple[TensorType, ...]:
    """What it gives is what it says; nobody here knows better."""
    if not framework or not name:
        raise TypeInferenceError("a foreign operator needs a framework and a name")
    try:
        check_arguments(decode_attributes(attributes), framework, len(inputs) + len(absent))
    except RelayError as error:
        raise TypeInferenceError(str(error)) from None
    if not result_types:
        raise TypeInferenceError(f"{name}: expected the types of its results, found none")
    places = range(len(inputs) + len(absent))
    if list(absent) != sorted(set(absent)) or not set(absent) <= set(places):
        raise TypeInferenceError(f"{name}: absent inputs {absent} of {len(places)}")
    try:
        return result_type([TensorType(shape, dtype) for shape, dtype in result_types])
    except TypeError as error:
        raise TypeInferenceError(f"{name}: {error}") from None


def _never(inputs: Sequence[Expr], *, result_types: ResultTypes, **_attrs: AnyValue) -> Expr:
    """A function of these types that calls itself for ever: TVM's text has no other unknown one."""
    types = [TensorType(shape, dtype) for shape, dtype in result_types]
    result = types[0] if len(types) == 1 else TupleType(types)
    params = [Var(f"x{index}", each.type) for index, each in enumerate(inputs)]
    unknown = Var("unknown", FuncType([each.checked_type for each in params], result))
    again = set_type(Call(unknown, params))
    first = set_type(Call(unknown, inputs))
    return Let(unknown, Function(params, again, ret_type=result), first)


def _sample_attributes(**attributes: AnyValue) -> dict[str, AnyValue]:
    shape = (2, 3)
    return {"framework": PIVOT_FRAMEWORK, "result_types": ((shape, "float32"),), **attributes}


@relay_op(
    FOREIGN,
    infer=_foreign_type,
    traits=(ForeignTrait, BitLevel, Float32("range")),
    decompose=_never,
    samples=[
        sample([(2, 3)], **_sample_attributes(name="nn.softmax", attributes='{"axis": 0}')),
        sample(
            [(2, 3, 4), tensor((3,), "int64", low=0, high=4)],
            framework=PIVOT_FRAMEWORK,
            name="topk",
            attributes='{"k": 2, "dtype": {"$dtype": "int32"}, "$arguments": [{"$input": 0}]}',
            result_types=(((2, 3, 2), "float32"), ((2, 3, 2), "int32")),
        ),
    ],
)
def foreign(
    inputs: tuple[Array, ...],
    *, framework: str, name: str, domain: str = "", version: int = 0, attributes: str = "{}",
    absent: tuple[int, ...] = (), result_types: tuple[tuple[tuple[Dim, ...], str], ...],
    body: Function | None = None,
) -> Generator[Apply | Blank, AnyValue, Array | tuple[Array, ...]]:  # fmt: skip
    """What an operator gives that Relay does not know, computed by the framework it comes from.

    Args:
        inputs: Its tensors.
        framework: Name of the format that it comes from; ``"relay"`` for operators and functions
            of Relay that are kept whole.
        name: Its name there.
        domain: Whose operator it is, such as ``com.acme``.
        version: Version of the operators of that domain, 0 where they have none.
        attributes: What it is given beside tensors, as an object of JSON.
        absent: Which of the inputs that its node lists are left out.
        result_types: Shape and dtype of each result.
        body: What computes it, where it is a function of Relay.

    Returns:
        One tensor, or a tuple of several.
    """
    attrs = {
        "framework": framework, "name": name, "domain": domain, "version": version,
        "attributes": attributes, "absent": absent, "result_types": result_types,
    }  # fmt: skip
    node = Foreign.of_attributes(attrs)
    if framework == PIVOT_FRAMEWORK:
        function = _function(node, inputs) if body is None else body
        # Its values may be wider than declared: the interpreter says in which floats it computes.
        _require(node, [each for each in value_types(function.body.type) if each is not None])
        found = yield Apply(function, inputs)
        values = found if isinstance(found, tuple) else (found,)
    else:
        run_foreign = importlib.import_module(_ENGINE).run_foreign
        values = tuple(map(np.asarray, run_foreign(attrs, [*map(np.asarray, inputs)])))
        _require(node, [TensorType(each.shape, dtype_name(each.dtype)) for each in values])
    return values[0] if len(node.results) == 1 else values[: len(node.results)]


def _function(node: Foreign, inputs: Sequence[Array]) -> Function:
    """Return a function of one operator of Relay that is kept whole."""
    params = [
        Var(f"x{index}", TensorType(each.shape, dtype_name(each.dtype)))
        for index, each in enumerate(inputs)
    ]
    attributes = dict(node.attributes)
    given = attributes.pop(ARGUMENTS, tuple(map(Input, range(len(params)))))
    arguments = [_operand(each, params) for each in given]
    return Function(params, astuple(call(node.name, *arguments, **attributes)))


def _operand(given: AnyValue, params: Sequence[Var]) -> AnyValue:
    if isinstance(given, tuple):
        return tuple(_operand(each, params) for each in given)
    return None if given is None else params[given.index]


def _require(node: Foreign, found: Sequence[AnyValue]) -> None:
    """Raise if results are of other types than the call declares; more of them may be there."""
    if len(found) < len(node.results) or not all(map(_fits, node.results, found)):
        raise RelayError(
            f"{node.full_name} of {node.framework}: declared to give {list(node.results)}, "
            f"gives {list(found)}"
        )


def _fits(declared: TensorType, found: AnyValue) -> bool:
    """Whether a result is what is declared; lengths that are symbols may be any."""
    if not isinstance(found, TensorType):
        return False
    if declared.dtype != found.dtype or declared.rank != found.rank:
        return False
    pairs: Mapping[AnyValue, AnyValue] | AnyValue = zip(declared.shape, found.shape, strict=True)
    return all(not isinstance(wanted, int) or wanted == length for wanted, length in pairs)
