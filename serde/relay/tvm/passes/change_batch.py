"""Another length of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from serde.core.records import dataclass, field
from serde.errors import RelayError
from serde.relay.ir import DimLike, Expr, Function, TensorType, Var, infer_function, rewrite
from serde.relay.transform.base import TvmFunctionPass

__all__ = ["ChangeBatch"]


@dataclass(frozen=True)
class ChangeBatch(TvmFunctionPass):
    """Give variables another length along the axis of the batch, and infer types again.

    Args:
        data: For each variable that has a batch, the number of that axis.
        batch_size: The new length.

    Raises:
        RelayError: A variable is no tensor with such an axis.
        TypeInferenceError: The function needs the old length.
    """

    name: ClassVar[str] = "ChangeBatch"
    opt_level: ClassVar[int] = 1

    data: Mapping[Var, int] = field(hash=False)
    batch_size: DimLike = 16

    def transform(self, function: Function) -> Function:
        """Replace the variables, and what depends on their types."""
        resized = {variable: self._resized(variable) for variable in self.data}
        memo: dict[Expr, Expr] = dict(resized.items())
        body = rewrite(function.body, lambda _node, new: new, memo)
        params = [resized.get(param, param) for param in function.params]
        if body is function.body and not any(param in resized for param in function.params):
            return function
        return infer_function(function.evolve(params=params, body=body, ret_type=None))

    def _resized(self, variable: Var) -> Var:
        axis = self.data[variable]
        type_ = variable.type_annotation or variable.type
        if not isinstance(type_, TensorType) or not -type_.rank <= axis < type_.rank:
            raise RelayError(f"{variable!r} has no axis {axis} for a batch")
        shape: list[DimLike] = list(type_.shape)
        shape[axis] = self.batch_size
        return Var(variable.name_hint, TensorType(shape, type_.dtype), variable.span)
