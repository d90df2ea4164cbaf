"""Exporter and parameter functions under the names that TVM gave them.

``relay.to_onnx``, ``relay.save_param_dict``, ``relay.load_param_dict``, ``relay.save_json``
and ``relay.load_json`` are these, as ``relay.frontend`` is :mod:`serde.compat.frontend`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any as AnyValue

from serde.api import from_relay, to_relay
from serde.core.optional import require
from serde.core.weights import as_weight
from serde.io.tvm_params import param_chunks, read_params
from serde.relay.ir import Expr, Function, IRModule, Type
from serde.relay.ir.ndarray import NDArray
from serde.relayfile.json_graph import read_node
from serde.relayfile.json_writer import write_graph

__all__ = ["load_json", "load_param_dict", "save_json", "save_param_dict", "to_onnx"]


def to_onnx(
    relay_ir: IRModule | Function,
    params: Mapping[str, AnyValue] | None,
    name: str,
    opset_version: int = 17,
    path: str | os.PathLike[str] | None = None,
    *,
    local_functions: bool = False,
) -> AnyValue:
    """Return a Relay module as an ``onnx.ModelProto`` and, with `path`, write it too.

    Args:
        relay_ir: A module or a function.
        params: Arrays by the name of a parameter of ``main``; the other parameters are inputs.
        name: Name of the ONNX graph.
        opset_version: Version of ONNX's operator set.
        path: Where to write.
        local_functions: Whether global, composite and fused functions, and those that external
            compilers run, become local functions of the ONNX model, from opset 15 on; otherwise
            their nodes go where they are called.

    Raises:
        OptionError: An argument cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    model = to_relay((relay_ir, dict(params or {})), format="relay")
    named = replace(model.meta, extra={**model.meta.extra, "name": name})
    model = model.evolve(meta=named)
    options: dict[str, AnyValue] = {"opset": opset_version, "local_functions": local_functions}
    if path is None:
        return from_relay(model, format="onnx", **options)
    written = from_relay(model, format="onnx", path=path, **options)
    return require("onnx").load(os.fspath(written))


def save_param_dict(params: Mapping[str, AnyValue]) -> bytearray:
    """Return arrays by name as the bytes of a parameter file, in their order.

    Raises:
        OptionError: A value is no array.
        RelayError: TVM's arrays cannot hold an element type.
    """
    weights = {name: as_weight(value) for name, value in params.items()}
    return bytearray(b"".join(param_chunks(weights)))


def load_param_dict(param_bytes: bytes | bytearray | memoryview) -> dict[str, NDArray]:
    """Return the arrays of a parameter file by name.

    They are arrays of NumPy that have TVM's ``numpy()`` and ``asnumpy()`` as well.

    Raises:
        FormatError: The bytes are not such a file.
    """
    weights = read_params(bytes(param_bytes))
    return {name: weight.array().view(NDArray) for name, weight in weights.items()}


def load_json(json_str: str | bytes) -> IRModule | Expr | Type:
    """Return what TVM's ``save_json`` wrote: a module, an expression, an operator or a type.

    A module gets its types inferred. A loose expression is as it was read:
    ``transform.InferTypeLocal`` finds its type.

    Args:
        json_str: The text.

    Raises:
        FormatError: It is no such text, or holds what the pivot lacks.

    Example:
        ``text = '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Op", "repr_str": "add"}]}'``
        ``relay.load_json(text) == relay.op.get("add")``
    """
    return read_node(json_str.encode() if isinstance(json_str, str) else json_str)


def save_json(node: IRModule | Expr | Type) -> str:
    """Return a module, an expression, an operator or a type as TVM 0.18's ``save_json`` writes it.

    TVM's ``load_json`` reads it, and ``load_json`` here. Types are written where they are known,
    spans are not. A call of an operator that TVM lacks becomes one of a ``Composite`` function.

    Args:
        node: What to save.

    Raises:
        RelayError: TVM has no counterpart of something in it, such as a sequence.

    Example:
        ``relay.load_json(relay.save_json(relay.op.get("add"))) == relay.op.get("add")``
    """
    return write_graph(node)
