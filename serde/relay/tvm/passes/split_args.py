"""Long concatenations in parts that a kernel of few arguments can take."""

from __future__ import annotations

from typing import ClassVar

from serde.core.records import dataclass
from serde.relay.ir import Call, Expr, Function, TensorType, Tuple, Type, call, rewrite
from serde.relay.tvm.passes.typed import TypedPass, is_call

__all__ = ["SplitArgs"]


@dataclass(frozen=True)
class SplitArgs(TypedPass):
    """Concatenate many tensors part by part, so that no kernel has too many arguments.

    Each part begins with what the parts before made, and ``annotation.stop_fusion`` keeps it from
    being fused with them. A tensor counts for one argument, and if lengths of it are not known for
    its lengths and one for each that is not known, too.

    Args:
        max_function_args: Arguments that a kernel may have, its result included; 0 for any number.
    """

    name: ClassVar[str] = "SplitArgs"
    opt_level: ClassVar[int] = 1

    max_function_args: int

    def transform(self, function: Function) -> Function:
        """Split concatenations, operands first."""
        if self.max_function_args == 0:
            return function
        found = rewrite(function, self._split)
        return found if isinstance(found, Function) else function

    def _split(self, _old: Expr, node: Expr) -> Expr:
        if not isinstance(node, Call) or not is_call(node, "concatenate"):
            return node
        fields = node.args[0]
        if not isinstance(fields, Tuple):
            return node
        counts = [_arguments(field.type) for field in fields.fields]
        limit = self.max_function_args - _arguments(node.type, lengths_only=True)
        if sum(counts) < limit:
            return node
        axis = node.attrs["axis"]
        part: list[Expr] = []
        used = 0
        for field, count in zip(fields.fields, counts, strict=True):
            if part and used + count > limit:
                part = [_join(part, axis)]
                used = count
            part.append(field)
            used += count
        return _join(part, axis)


def _join(part: list[Expr], axis: int) -> Expr:
    return call("concatenate", call("annotation.stop_fusion", Tuple(part)), axis=axis)


def _arguments(type_: Type | None, *, lengths_only: bool = False) -> int:
    """Return how many arguments a tensor is for a kernel.

    Args:
        type_: Its type.
        lengths_only: Whether those that are not known count among its lengths alone.
    """
    if not isinstance(type_, TensorType):
        return 1
    unknown = sum(type(dim) is not int for dim in type_.shape)
    if not unknown:
        return 1
    return 1 + type_.rank + (0 if lengths_only else unknown)
