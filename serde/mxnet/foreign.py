"""MXNet operators that Relay does not know: a ``Custom`` of a user's, or one of a fork."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np

from serde.core import Array, dtype_name, is_installed, require
from serde.engine.base import first_line
from serde.errors import RelayError, Unsupported
from serde.mxnet.model import Node
from serde.relay.ir import Empty, Expr, Foreign, Input, TensorType

if TYPE_CHECKING:
    from serde.mxnet.export_context import ExportContext

__all__ = ["CUSTOM", "foreign_node", "own_attributes", "run_foreign", "user_names", "write_foreign"]

CUSTOM: Final = "Custom"
"""MXNet's operator for those that users write in Python, which ``op_type`` names."""

_OP_TYPE: Final = "op_type"
_CACHED: Final = "CachedOp"
"""A class among MXNet's operators."""
_IS_CUSTOM: Final = "$custom"
"""Attribute that tells that an operator is a ``Custom``."""


def user_names(node: Node, op: str) -> tuple[str, ...]:
    """Return what users call the operator of a node."""
    own = node.attrs.get(_OP_TYPE) if node.op == CUSTOM else None
    return (op, node.op) if own is None else (own, f"{CUSTOM}::{own}")


def own_attributes(node: Node) -> dict[str, str]:
    """Return the attributes of a node, of a ``Custom`` without what names it."""
    return {name: text for name, text in node.attrs.items() if not _names(node, name)}


def _names(node: Node, attribute: str) -> bool:
    return node.op == CUSTOM and attribute == _OP_TYPE


def foreign_node(node: Node, inputs: Sequence[Expr | None], *, told: bool = False) -> Foreign:
    """Return what a node is, with the types that MXNet infers where the operator is registered.

    Args:
        node: The node.
        inputs: What it reads.
        told: Whether the user says the types, so that MXNet is not asked.

    Raises:
        Unsupported: It has graphs inside, or names no operator.
    """
    if node.subgraphs:
        raise Unsupported(f"{node.op} has graphs inside, which are not kept")
    name: str = node.op
    attributes: dict[str, AnyValue] = dict(own_attributes(node))
    if node.op == CUSTOM:
        if _OP_TYPE not in node.attrs:
            raise Unsupported("a Custom without op_type")
        name = node.attrs[_OP_TYPE]
        attributes[_IS_CUSTOM] = True
    found = Foreign(framework="mxnet", name=name, attributes=attributes)
    if told:
        return found
    types = [None if each is None else each.type for each in inputs]
    known = [each for each in types if isinstance(each, TensorType) and each.concrete_shape]
    results = infer_types(found, known) if len(known) == len(types) else ()
    return Foreign(**{**vars(found), "results": results})


def infer_types(node: Foreign, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return the types that MXNet infers, none where it does not have the operator."""
    if not is_installed("mxnet"):
        return ()
    mxnet = require("mxnet")
    names = [f"x{index}" for index in range(len(types))]
    try:
        symbol = _call(mxnet.sym, node)(*map(mxnet.sym.var, names), **_texts(node), name="node")
        own = symbol.list_arguments()
        if len(own) != len(types):
            return ()  # Some are auxiliary states, of which MXNet asks nobody the shape.
        shapes = {name: each.concrete_shape for name, each in zip(own, types, strict=True)}
        dtypes = {name: np.dtype(each.dtype) for name, each in zip(own, types, strict=True)}
        _, found, _ = symbol.infer_shape(**shapes)
        _, kinds, _ = symbol.infer_type(**dtypes)
    except (mxnet.base.MXNetError, AttributeError, TypeError, ValueError):
        return ()
    if not found or not kinds:
        return ()
    pairs = zip(found, kinds, strict=True)
    return tuple(TensorType(shape, dtype_name(np.dtype(kind))) for shape, kind in pairs)


def _call(module: AnyValue, node: Foreign) -> Callable[..., AnyValue]:
    if _is_custom(node):
        return lambda *args, **attrs: module.Custom(*args, op_type=node.name, **attrs)
    if not hasattr(module.op, node.name) or node.name == _CACHED:
        # Such as `load`, a function beside the operators, which would open what a file names.
        raise AttributeError(f"MXNet has no operator {node.name}")
    found: Callable[..., AnyValue] = getattr(module.op, node.name)
    return found


def _is_custom(node: Foreign) -> bool:
    return bool(node.attributes.get(_IS_CUSTOM))


def _texts(node: Foreign) -> dict[str, str]:
    return {name: str(value) for name, value in node.plain_attributes.items()}


def run_foreign(node: Foreign, inputs: Sequence[Array | None]) -> list[Array]:
    """Return what MXNet computes.

    Raises:
        MissingDependency: MXNet is not installed.
        RelayError: It does not have the operator, or the operator fails.
    """
    mxnet = require("mxnet")
    np_shape = any(not each.shape or 0 in each.shape for each in inputs if each is not None)
    with mxnet.util.np_shape(np_shape):
        arrays = [mxnet.nd.array(x, dtype=x.dtype) for x in inputs if x is not None]
        try:
            found = _call(mxnet.nd, node)(*arrays, **_texts(node))
            several = found if isinstance(found, (list, tuple)) else [found]
            return [each.asnumpy() for each in several]
        except (mxnet.base.MXNetError, AttributeError, TypeError, ValueError) as error:
            raise RelayError(
                f"{node.full_name}: MXNet does not run it: {first_line(error)} (import the module "
                "that registers it first)"
            ) from error


def write_foreign(ctx: ExportContext, node: Foreign, operands: Sequence[AnyValue]) -> AnyValue:
    """Write an operator that Relay does not know: as it was, or as a ``Custom`` of its name.

    Raises:
        Unsupported: MXNet has no inputs that are left out, or no text for an attribute.
    """
    if any(each is None for each in operands):
        raise Unsupported(f"{node.full_name} leaves out an input, which MXNet's operators do not")
    attributes = {name: _text(name, each) for name, each in node.plain_attributes.items()}
    op = node.name
    if node.framework != "mxnet" or _is_custom(node):
        op = CUSTOM
        attributes[_OP_TYPE] = node.name
    found = ctx.emit_tuple(op, *operands, outputs=len(node.results), **attributes)
    return found if len(node.results) > 1 else found[0]


def _text(name: str, value: AnyValue) -> AnyValue:
    """Return the value of an attribute, of which MXNet keeps the text."""
    if _has_none(value):
        raise Unsupported(f"attribute {name}={value!r:.100} has no text in MXNet")
    return value


def _has_none(value: AnyValue) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_none, value))
    return isinstance(value, (bytes, dict, np.ndarray, Input, Empty))
