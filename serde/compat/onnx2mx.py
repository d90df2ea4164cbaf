"""The functions of ``mxnet.contrib.onnx``, for scripts that were written against it.

``from serde.compat import onnx2mx as onnx_mxnet`` takes the place of
``from mxnet.contrib import onnx as onnx_mxnet``.
"""

from __future__ import annotations

import os
from typing import Any

from serde.api import import_model as _import_model, import_to_gluon as _import_to_gluon
from serde.core.optional import require

__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]

PathLike = str | os.PathLike[str]


def import_model(model_file: PathLike) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return an ONNX file as a symbol, its learned parameters and its auxiliary states.

    Batch normalisations are kept, as MXNet's importer kept them.

    Raises:
        FormatError: The file is malformed.
        MissingDependency: MXNet or onnx is not installed.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    symbol, params = _import_model(model_file, format="onnx", keep_batch_norm=True)
    return symbol, dict(params.arg), dict(params.aux)


def import_to_gluon(model_file: PathLike, ctx: Any) -> Any:
    """Return an ONNX file as a Gluon ``SymbolBlock``.

    Args:
        model_file: The file.
        ctx: Device, or list of devices, that the parameters go to.

    Raises:
        FormatError: The file is malformed.
        MissingDependency: MXNet or onnx is not installed.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    return _import_to_gluon(model_file, format="onnx", ctx=ctx)


def get_model_metadata(model_file: PathLike) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return names and shapes of what goes in and comes out of an ONNX file.

    Returns:
        Under ``input_tensor_data`` the inputs that have no value in the file, under
        ``output_tensor_data`` the outputs. A length without a number is 0.

    Raises:
        MissingDependency: onnx is not installed.
    """
    onnx = require("onnx")
    graph = onnx.load(os.fspath(model_file), load_external_data=False).graph
    given = {tensor.name for tensor in graph.initializer}
    return {
        "input_tensor_data": [
            _describe_input(each) for each in graph.input if each.name not in given
        ],
        "output_tensor_data": [_describe_input(each) for each in graph.output],
    }


def _describe_input(value: Any) -> tuple[str, tuple[int, ...]]:
    return value.name, tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
