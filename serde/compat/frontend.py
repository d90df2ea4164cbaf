"""Importers under the names that TVM gave them; ``relay.frontend`` is this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.api import to_relay
from serde.bridge.formats import get_bridge
from serde.core import Report
from serde.errors import OptionError
from serde.relay.ir import Any, Constant, DimLike, Expr, Function, IRModule, RelayModel, SymDim
from serde.relay.ir.ndarray import NDArray
from serde.relay.ir.registry import call, is_call
from serde.relay.ir.visit import rewrite, rewrite_function
from serde.relay.transform.infer_type import InferType

__all__ = [
    "from_coreml", "from_exported_program", "from_mxnet", "from_nnef", "from_onnx", "from_pytorch",
    "from_tflite",
]  # fmt: skip

Shapes = Mapping[str, Sequence[DimLike]] | None
Converters = Mapping[str, Callable[..., AnyValue]] | None
InputInfo = tuple[str, AnyValue]


def from_coreml(model: AnyValue, shape: Shapes = None) -> tuple[IRModule, dict[str, NDArray]]:
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


def from_exported_program(
    exported_program: AnyValue,
    shape: Shapes = None,
    custom_convert_map: Converters = None,
    default_dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return a program of ``torch.export`` as a Relay module and its parameters.

    Args:
        exported_program: An ``ExportedProgram``, or a path of a ``.pt2`` archive.
        shape: Shapes of inputs by name, where they are not what the program declares.
        custom_convert_map: What operators become, by name, as :func:`from_pytorch` takes it.
        default_dtype: The dtype of numbers with a fraction.

    Raises:
        FormatError: The program is not sound.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    found = to_relay(
        exported_program,
        format="torch",
        input_shapes=dict(shape or {}),
        custom_convert_map=dict(custom_convert_map or {}),
        default_dtype=default_dtype,
    )
    return found.mod, _arrays(found)


def from_mxnet(
    symbol: AnyValue,
    shape: Shapes = None,
    dtype: str | Mapping[str, str] = "float32",
    arg_params: Mapping[str, AnyValue] | None = None,
    aux_params: Mapping[str, AnyValue] | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return an MXNet symbol, block or file as a Relay module and its parameters.

    Args:
        symbol: A Symbol, a HybridBlock, or a path as :func:`serde.to_relay` takes it.
        shape: Shape of each input by name.
        dtype: dtype of the inputs, one for all or by name.
        arg_params: Arrays by name; those that the block or file holds if left out; of a Symbol,
            which holds none, weights are then inputs.
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
    elif hasattr(symbol, "list_auxiliary_states"):
        shapes = {**_weight_shapes(symbol, shapes), **shapes}
    model = to_relay(symbol, params, format="mxnet", input_shapes=shapes, input_dtypes=dtypes)
    return model.mod, _arrays(model)


def _weight_shapes(symbol: AnyValue, shapes: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return the shapes that MXNet infers of a symbol's weights, which are inputs without values.

    Raises:
        OptionError: The shapes given do not fit each other.
    """
    names = (*symbol.list_arguments(), *symbol.list_auxiliary_states())
    known = {
        # MXNet takes 0 for a length that is not known.
        name: tuple(dim if isinstance(dim, int) else 0 for dim in shapes[name])
        for name in shapes.keys() & set(names)
    }
    try:
        arguments, _, states = symbol.infer_shape_partial(**known)
    except RuntimeError as error:
        raise OptionError(f"shape: {str(error).strip().splitlines()[-1]}") from None
    found = zip(names, (*(arguments or ()), *(states or ())), strict=False)
    return {name: shape for name, shape in found if shape and min(shape) > 0}


def from_nnef(
    model: AnyValue, freeze_vars: bool = False, custom_convert_map: Converters = None
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return an NNEF model as a Relay module and its parameters.

    Args:
        model: A folder, text or archive, or an ``nnef.Graph``, as :func:`serde.to_relay` takes
            them.
        freeze_vars: Put the variables into the module as constants; those returned are then none.
        custom_convert_map: What fragments become, by name: functions of a list of Relay
            expressions and a dict of further arguments.

    Raises:
        FormatError: The model is not sound.
        UnsupportedModelError: Some operations cannot be converted.
    """
    found = to_relay(model, format="nnef", custom_convert_map=dict(custom_convert_map or {}))
    if not freeze_vars:
        return found.mod, _arrays(found)
    return _freeze_weights(found), {}


def from_onnx(
    model: AnyValue,
    shape: Shapes = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, AnyValue] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return an ONNX model as a Relay module and its parameters.

    Args:
        model: A ``ModelProto``, or a path or bytes as :func:`serde.to_relay` takes them.
        shape: Shapes of inputs by name, where they are not what the model declares.
        dtype: dtype by name of inputs whose type the model does not declare; the dtype of
            inputs that it declares holds, as in TVM.
        opset: Version of ONNX's operator set to take instead of what the model names.
        freeze_params: Put the parameters into the module as constants; those returned are
            then none.
        convert_config: With ``{"use_nt_batch_matmul": True}`` products of batches take their
            right side transposed, as TVM has it by default; else they take it as it is.
        export_node_renamed_model_path: Where to write the model with a name for every node.

    Raises:
        FormatError: The model is not sound.
        OptionError: An option names no input, or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    for name, value in (convert_config or {}).items():
        if name != "use_nt_batch_matmul":
            raise OptionError(f"convert_config has no {name!r} of {value!r}")
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
    if (convert_config or {}).get("use_nt_batch_matmul"):
        main = rewrite_function(found.mod["main"], _transpose_right)
        found = found.evolve(mod=InferType()(found.mod.with_main(main, checked=False)))
    if not freeze_params:
        return found.mod, _arrays(found)
    return _freeze_weights(found), {}


def _transpose_right(_old: Expr, new: Expr) -> Expr:
    if not is_call(new, "nn.batch_matmul") or new.attrs.transpose_b:
        return new
    right = call("transpose", new.args[1], axes=(0, 2, 1))
    return call("nn.batch_matmul", new.args[0], right, **{**dict(new.attrs), "transpose_b": True})


_TORCH_DTYPES = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}
"""dtypes by the names of PyTorch's types of tensors."""


def from_pytorch(
    script_module: AnyValue,
    input_infos: Sequence[InputInfo],
    custom_convert_map: Converters = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return a module of TorchScript as a Relay module and its parameters.

    Args:
        script_module: A scripted or traced module, or a path of an archive of one.
        input_infos: For each input in order what it is called in Relay, and its shape or its
            shape and dtype: ``[("data", (1, 3, 224, 224)), ("ids", ((1, 8), "int64"))]``.
        custom_convert_map: What operators become, by name such as ``"aten::relu"``: functions
            of a list of Relay expressions and a list of their dtypes.
        default_dtype: The dtype of inputs that tell none, and of numbers with a fraction.
        use_parser_friendly_name: Whether names of parameters have ``_`` instead of ``.``.
        keep_quantized_weight: Whether weights of quantised layers are parameters of integers.
            They are so in any case: what TVM returns for False are the same values as floats.

    Raises:
        FormatError: The archive is not sound.
        OptionError: The infos are not as many as the inputs, or one is neither of the two.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    bridge = get_bridge("torch")
    options = bridge.bind_import(
        {"custom_convert_map": dict(custom_convert_map or {}), "default_dtype": default_dtype}
    )
    native = bridge.load(script_module, None, options)
    if len(native.inputs) != len(input_infos):
        names = ", ".join(each.name for each in native.inputs)
        raise OptionError(
            f"input_infos: expected {len(native.inputs)} ({names}), found {len(input_infos)}"
        )
    inputs = [
        replace(each, name=name, **_shape_and_dtype(name, info, each.dtype or default_dtype))
        for each, (name, info) in zip(native.inputs, input_infos, strict=True)
    ]
    native = replace(native, inputs=inputs)
    if use_parser_friendly_name:
        native = _with_friendly_names(native)
    report = Report()
    found = bridge.to_relay(native, options, report=report)
    return found.mod, _arrays(found)


def from_tflite(
    model: AnyValue, shape_dict: Shapes = None, dtype_dict: Mapping[str, str] | None = None
) -> tuple[IRModule, dict[str, NDArray]]:
    """Return a TFLite model as a Relay module and its parameters.

    Args:
        model: A path, or the bytes of a file; of an object of the package ``tflite`` its bytes.
        shape_dict: Shapes of inputs by name; those that the model declares are the default.
        dtype_dict: dtypes of inputs by name; they can only be those that the model declares.

    Raises:
        FormatError: The file is not sound.
        UnsupportedModelError: Some operators cannot be converted.
    """
    tables = getattr(model, "_tab", None)
    source = model if tables is None else bytes(tables.Bytes)
    shapes, dtypes = dict(shape_dict or {}), dict(dtype_dict or {})
    found = to_relay(source, format="tflite", input_shapes=shapes, input_dtypes=dtypes)
    return found.mod, _arrays(found)


def _shape_and_dtype(name: str, info: AnyValue, dtype: str) -> dict[str, AnyValue]:
    """Return what an info says: a shape, or a shape and a dtype."""
    if len(info) == 2 and isinstance(info[1], str) and not isinstance(info[0], (int, str)):
        info, dtype = info
        dtype = dtype.removeprefix("torch.")
    if not all(isinstance(each, (int, str, Any, SymDim)) for each in info):
        raise OptionError(f"input_infos: {name}: expected a shape or (shape, dtype), found {info}")
    return {"shape": tuple(info), "dtype": _TORCH_DTYPES.get(dtype, dtype)}


def _with_friendly_names(native: AnyValue) -> AnyValue:
    """Return a PyTorch program whose weights have names without dots."""
    weights = {name.replace(".", "_"): each for name, each in native.weights.items()}
    graph = replace(
        native.graph,
        weights={value: name.replace(".", "_") for value, name in native.graph.weights.items()},
    )
    return replace(native, weights=weights, graph=graph)


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


def _arrays(model: RelayModel) -> dict[str, NDArray]:
    """Return the values of the weights, in the order of the parameters of ``main``."""
    names = [param.name_hint for param in model.main.params if param.name_hint in model.params]
    return {name: model.params[name].array().view(NDArray) for name in names}


if not TYPE_CHECKING:  # For a checker of types a name that is not here is a mistake.

    def __getattr__(name: str) -> AnyValue:
        raise AttributeError(
            f"relay.frontend.{name} is not in serde: the tools of Keras, TensorFlow, Paddle and "
            "the like write ONNX or TFLite, which from_onnx and from_tflite read"
        )
