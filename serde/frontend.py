"""Importers under the names that TVM gave them; ``relay.frontend`` is this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.api import to_relay
from serde.relay.dims import DimLike
from serde.relay.model import RelayModel
from serde.relay.module import IRModule
from serde.weights import Array

__all__ = ["from_mxnet"]

Shapes = Mapping[str, Sequence[DimLike]] | None


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


def _arrays(model: RelayModel) -> dict[str, Array]:
    """Return the values of the weights, in the order of the parameters of ``main``."""
    names = [param.name_hint for param in model.main.params if param.name_hint in model.params]
    return {name: model.params[name].array() for name in names}
