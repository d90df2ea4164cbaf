"""Importers that return modules of Relax; ``serde.relax.frontend`` has them by their formats."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.api import export_model, to_relay

__all__ = ["from_nnef"]


def from_nnef(model: AnyValue, keep_params_in_input: bool = False) -> AnyValue:
    """Return an NNEF model as a module of Relax.

    Args:
        model: A folder, text or archive, or an ``nnef.Graph``, as :func:`serde.to_relay` takes
            them.
        keep_params_in_input: Whether ``main`` takes the variables behind the inputs, with their
            values in its attribute ``params``, from where
            ``tvm.relax.frontend.detach_params`` takes them; they are constants otherwise.

    Returns:
        A ``tvm.IRModule``.

    Raises:
        FormatError: The model is not sound.
        MissingDependency: TVM is not installed, or as a release that is not known.
        UnsupportedModelError: Some operations cannot be converted.
    """
    found = to_relay(model, format="nnef")
    return export_model(found, format="relax", freeze_vars=not keep_params_in_input)
