"""Importers under the names that TVM gave them; ``relay.frontend`` is this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

from serde.api import to_relay
from serde.bridge import get_bridge
from serde.errors import OptionError
from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Constant, Expr, Function
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.visit import rewrite
from serde.weights import Array

__all__ = ["from_coreml", "from_mxnet", "from_onnx"]

Shapes = Mapping[str, Sequence[DimLike]] | None


def from_coreml(model: AnyValue, shape: Shapes = None) -> tuple[IRModule, dict[str, Array]]:
    """Return a Core ML model as a Relay module and its parameters.

    Args:
        model: A path, or an ``MLModel`` of coremltools, as :func:`serde.to_relay` takes them.
        shape: Shapes of inputs by name, where they are not what the model declares.

    Raises:
        FormatError: The model is not sound.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    found = to_relay(model, format="coreml", input_shapes=dict(shape or {}))
    return found.mod, _arrays(found)


def from_mxnet(
    symbol: AnyValue,
    shape: Shapes = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Mapping[str, AnyValue] | None = None,
    aux_params: Mapping[str, AnyValue] | None = None,
) -> tuple[IRModule, dict[str, Array]]:
    """Return an MXNet symbol, block or file as a Relay module and its parameters.

    Args:
        symbol: A Symbol, a HybridBlock, or a path as :func:`serde.to_relay` takes it.
        shape: Shape of each input by name.
        dtype: dtype of the inputs, one for all or by name.
        arg_params: Arrays by name; those that the block or file holds if left out.
        aux_params: Auxiliary states by name.

    Raises:
        OptionError: An input's shape is missing.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    shapes = dict(shape or {})
    dtypes = dict.fromkeys(shapes, dtype) if isinstance(dtype, str) else dict(dtype)
    params = None
    if arg_params is not None or aux_params is not None:
        params = (arg_params or {}, aux_params or {})
    model = to_relay(symbol, params, format="mxnet", input_shapes=shapes, input_dtypes=dtypes)
    return model.mod, _arrays(model)


def from_onnx(
    model: AnyValue,
    shape: Shapes = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, AnyValue] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> tuple[IRModule, dict[str, Array]]:
    """Return an ONNX model as a Relay module and its parameters.

    Args:
        model: A ``ModelProto``, or a path or bytes as :func:`serde.to_relay` takes them.
        shape: Shapes of inputs by name, where they are not what the model declares.
        dtype: dtype by name of inputs whose type the model does not declare; the dtype of
            inputs that it declares holds, as in TVM.
        opset: Version of ONNX's operator set to take instead of what the model names.
        freeze_params: Put the parameters into the module as constants; those returned are
            then none.
        convert_config: Must be empty: how products are spelled is not an option here.
        export_node_renamed_model_path: Where to write the model with a name for every node.

    Raises:
        FormatError: The model is not sound.
        OptionError: An option names no input, or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    if convert_config:
        raise OptionError(f"convert_config has no {next(iter(convert_config))!r}")
    dtypes = {} if isinstance(dtype, str) else dict(dtype)
    if export_node_renamed_model_path is not None:
        bridge = get_bridge("onnx")
        native = bridge.load(model, None, bridge.bind_import({}))
        _name_nodes(native.proto.graph)
        bridge.save(native, Path(export_node_renamed_model_path), bridge.bind_export({}))
        model = export_node_renamed_model_path
    found = to_relay(
        model,
        format="onnx",
        input_shapes=dict(shape or {}),
        input_dtypes=dtypes,
        source_opset=opset,
    )
    if not freeze_params:
        return found.mod, _arrays(found)
    return _freeze_weights(found), {}


def _name_nodes(graph: AnyValue) -> None:
    """Give each node without a name its operator and its place."""
    for place, node in enumerate(graph.node):
        node.name = node.name or f"{node.op_type}_{place}"


def _freeze_weights(model: RelayModel) -> IRModule:
    """Return the module with the weights as constants."""
    constants: dict[Expr, Expr] = {
        param: Constant(model.params[param.name_hint].array(), param.span)
        for param in model.main.params
        if param.name_hint in model.params
    }
    body = rewrite(model.main.body, lambda _node, new: new, constants)
    main = Function(model.inputs(), body)
    return model.mod.with_functions({model.mod.get_global_var("main"): main})


def _arrays(model: RelayModel) -> dict[str, Array]:
    """Return the values of the weights, in the order of the parameters of ``main``."""
    names = [param.name_hint for param in model.main.params if param.name_hint in model.params]
    return {name: model.params[name].array() for name in names}
