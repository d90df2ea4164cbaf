"""The functions of ``mx.onnx``, for scripts that were written against it.

``from serde.compat import mx2onnx`` takes the place of ``from mxnet import onnx as mx2onnx`` and
of ``from mxnet.contrib import onnx``. Files convert without MXNet.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.api import from_relay, to_relay
from serde.core import dtype_name, require
from serde.errors import OptionError
from serde.mxnet.aliases import ALIASES
from serde.mxnet.bridge import MxnetBridge
from serde.mxnet.ops import TABLE
from serde.mxnet.options import MxnetImportOptions
from serde.onnx.options import OnnxExportOptions
from serde.onnx.versions import LOWEST_TARGET
from serde.relay.ir.model import RelayModel

__all__ = ["export_model", "get_operator_support"]

_ENDINGS = (("_state_output", "1"), ("_statecell_output", "2"), ("_output", ""))
"""What MXNet's exporter put in the place of the end of an output's name."""


def export_model(
    sym: Any,
    params: Any,
    in_shapes: Sequence[Sequence[int]] | None = None,
    in_types: Any = np.float32,
    onnx_file_path: str = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[Sequence[int | str | None]] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Sequence[Sequence[int]] | None = None,
) -> str:
    """Write a model as an ONNX file.

    The version is the default of serde, or the newest that the package onnx has if that is older:
    what runs a model is often behind the newest onnx.

    Args:
        sym: Path of the symbol's file, or a ``Symbol``.
        params: Path of the parameter file with a path; with a ``Symbol`` its parameters as one
            dict, or as a list of arguments and auxiliary states.
        in_shapes: A shape for each input, in their order in the symbol; the label of the
            last node is no input.
        in_types: The dtype of all inputs, or a list of one for each.
        onnx_file_path: Where to write.
        verbose: Whether to log what was written.
        dynamic: Whether lengths of inputs may change.
        dynamic_input_shapes: With `dynamic`, shapes in which None or a name stands for a length
            that may change; without it all may.
        run_shape_inference: Whether the file declares the shapes of what lies between.
        input_type: The older name of `in_types`.
        input_shape: The older name of `in_shapes`.

    Returns:
        `onnx_file_path`.

    Raises:
        FormatError: A file is malformed.
        MissingDependency: onnx is not installed.
        OptionError: Shapes or dtypes do not fit the inputs.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
        ValueError: `sym` and `params` are neither two files nor two objects.
    """
    onnx = require("onnx")
    shapes = in_shapes if input_shape is None else input_shape
    types = in_types if input_type is None else input_type
    given = (isinstance(sym, (str, os.PathLike)), isinstance(params, (str, os.PathLike)))
    pair = isinstance(params, (list, tuple)) and len(params) == 2
    if given != (True, True) and (any(given) or not (isinstance(params, Mapping) or pair)):
        raise ValueError("Input sym and params should either be files or objects")
    names = _input_names(sym, params)
    options = _options(names, shapes, types, dynamic, dynamic_input_shapes)
    model = to_relay(sym, params=params, **options)
    if not set(options["input_shapes"]) <= set(model.meta.inputs):
        model = to_relay(sym, params=params, keep_labels=True, **options)
    opset = min(onnx.defs.onnx_opset_version(), OnnxExportOptions().opset)
    from_relay(_rename_outputs(model), format="onnx", path=onnx_file_path, opset=opset)
    if run_shape_inference:
        onnx.shape_inference.infer_shapes_path(onnx_file_path, onnx_file_path)
    if verbose:
        logging.info("Input shape of the model %s", shapes)
        logging.info("Exported ONNX file %s saved to disk", onnx_file_path)
    return onnx_file_path


def _input_names(sym: Any, params: Any) -> list[str]:
    """Return the variables without a value, but for the label of the last node."""
    model = MxnetBridge().load(sym, params, MxnetImportOptions())
    label = f"{model.graph.nodes[-1].name}_label"
    return [name for name in model.inputs if name != label]


def _options(
    names: Sequence[str],
    shapes: Sequence[Sequence[int]] | None,
    types: Any,
    dynamic: bool,
    dynamic_shapes: Sequence[Sequence[int | str | None]] | None,
) -> dict[str, Any]:
    """Return shapes and dtypes by the name of an input."""
    if dynamic_shapes is not None and not dynamic:
        raise OptionError("dynamic_input_shapes without dynamic=True")
    if shapes is None:
        raise OptionError("in_shapes is missing")
    dtypes = list(types) if isinstance(types, list) else [types] * len(shapes)
    if len(dtypes) != len(shapes):
        raise OptionError(f"{len(dtypes)} in_types for {len(shapes)} in_shapes")
    if len(shapes) < len(names):
        raise OptionError(f"{len(shapes)} in_shapes for the inputs {', '.join(names)}")
    wanted: Sequence[Sequence[int | str | None]] = shapes
    if dynamic:
        open_ = [[None] * len(shape) for shape in shapes]
        wanted = open_ if dynamic_shapes is None else dynamic_shapes
        if list(map(len, wanted)) != list(map(len, shapes)):
            raise OptionError("dynamic_input_shapes and in_shapes differ in number or rank")
    return {
        "input_shapes": {
            name: tuple(
                f"{name}_{axis}" if length is None else length for axis, length in enumerate(shape)
            )
            for name, shape in zip(names, wanted, strict=False)
        },
        "input_dtypes": {
            name: dtype_name(np.dtype(dtype)) for name, dtype in zip(names, dtypes, strict=False)
        },
    }


def _rename_outputs(model: RelayModel) -> RelayModel:
    """Return the model with its outputs called as MXNet's exporter called them."""
    outputs = [_output_name(name) for name in model.meta.outputs]
    taken = {*model.meta.inputs, *model.params}
    if len(set(outputs)) < len(outputs) or taken & set(outputs):
        return model
    return model.evolve(meta=replace(model.meta, outputs=tuple(outputs)))


def _output_name(name: str) -> str:
    for ending, replacement in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending) + replacement
    if name[-1:].isdigit() and name[:-1].endswith("_output"):
        return name[:-1].removesuffix("_output") + name[-1]
    return name


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Return the names of all operators of MXNet that convert, sorted.

    Args:
        opset_version: Version of ONNX's operators; below the lowest that is written there are
            none. What an operator becomes, not whether it converts, depends on it otherwise.
    """
    if opset_version is not None and opset_version < LOWEST_TARGET:
        return []
    names = {name for name, _ in TABLE.imported()}
    aliases = {alias for alias, name in ALIASES.items() if name in names}
    return sorted({"null", *names, *aliases})
