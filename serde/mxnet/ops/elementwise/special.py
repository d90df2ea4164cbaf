"""Functions for which both sides have one operator: gamma, inverse error, shifted logarithms."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import in_floats
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr

SPECIAL = {
    "erfinv": ("erfinv",),
    "expm1": ("expm1", "_npi_expm1"),
    "lgamma": ("gammaln",),
    "log1p": ("log1p", "_npi_log1p"),
    "tgamma": ("gamma",),
}
"""Extension operator: MXNet's functions, of which the first is written."""


def _register(name: str, mxnet: tuple[str, ...]) -> None:
    build = getattr(relay.serde, name)

    @OPS.imports(*mxnet)
    def import_special(ctx: ImportContext, data: Expr) -> Expr:
        """The gamma function of an integer is one, which its decomposition may fall short of."""
        if name == "tgamma":
            return in_floats(ctx, build, data, rounded=True)
        return in_floats(ctx, build, data)

    @OPS.exports(f"serde.{name}")
    def export_special(ctx: ExportContext, data: Value) -> Value:
        return ctx.emit(mxnet[0], data)


for _name, _mxnet in SPECIAL.items():
    _register(_name, _mxnet)
