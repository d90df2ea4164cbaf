"""Numbers of TIR among the values of a function of Relax: lengths, or scalar tensors."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.import_context import ImportContext
from serde.relax.lengths import Lengths, Scalar
from serde.relax.reflection import dtype_of, handle_of, plain_value
from serde.relax.tir.calls import compute_number
from serde.relay.ir import Constant, Expr
from serde.relay.ir.dims import SymDim
from serde.relay.ir.types import TensorType
from serde.walk import Hole, Scope

__all__ = ["Numbers"]


class Numbers:
    """Reads numbers of TIR.

    Args:
        framework: TVM.
        lengths: What lengths are in the function that is read.
    """

    def __init__(self, framework: Framework, lengths: Lengths) -> None:
        self._framework = framework
        self._lengths = lengths

    def read(self, expr: AnyValue, scope: Scope[int, AnyValue], ctx: ImportContext) -> Scalar:
        """Return a number of TIR.

        Raises:
            Unsupported: It is no arithmetic of what is known.
        """
        if isinstance(expr, self._framework.PrimValue):
            expr = expr.value
        plain = plain_value(self._framework, expr)
        if isinstance(plain, (bool, int, float)):
            return Scalar(plain, dtype_of(expr))
        try:
            return Scalar(self._lengths.read(expr), dtype_of(expr))
        except Unsupported:
            if isinstance(expr, self._framework.tir.Var) or not self._framework.is_number(expr):
                raise
        used = map(handle_of, self._framework.tir.analysis.undefined_vars(expr))
        given = {each: scope.find(each) for each in used if scope.knows(each)}
        return self.scalar(ctx.fold(compute_number(self._framework, ctx, expr, given)))

    def scalar(self, value: AnyValue) -> AnyValue:
        """Return a scalar tensor as a number; any other value is itself."""
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            return value
        dtype = value.type.dtype
        if isinstance(value, Constant):
            return Scalar(value.data.item(), dtype)
        if dtype.startswith(("int", "uint")):
            return Scalar(self._lengths.computed(lambda: relay.cast(value, "int64")), dtype)
        return Scalar(value, dtype)

    def note(self, variable: AnyValue, value: AnyValue) -> AnyValue:
        """Return the value of a variable, which is a number if lengths may be made of it."""
        type_ = self._framework.type_of(variable)
        if not isinstance(type_, self._framework.PrimType) or isinstance(value, Hole):
            return value
        found, own = self.scalar(value), self._framework.number_of(variable)
        dim = found.value if isinstance(found, Scalar) else None
        if own is None or not isinstance(dim, (int, SymDim)) or found.dtype == "bool":
            return found
        self._lengths.same(own, dim)
        return Scalar(self._lengths.read(own), found.dtype)
