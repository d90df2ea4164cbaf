"""Contexts of converters that see the values of small tensors while the graph grows."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.limits import MAX_INLINE_BYTES
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr
from serde.walk.assembly import Assembly
from serde.walk.table import ImportContext
from serde.weights import Array

__all__ = ["FoldingContext"]


class FoldingContext(ImportContext):
    """What a converter may reach, values of tensors that do not depend on inputs included."""

    def __init__(self, version: int, node: str, outputs: int, assembly: Assembly) -> None:
        super().__init__(version, node, outputs)
        self._assembly = assembly

    def known(self, x: Expr) -> Array | None:
        """Return the value of a tensor that is small and does not depend on inputs, or None."""
        return self._assembly.known(x)

    def constant(self, x: Expr) -> Array:
        """Return the value of a tensor that does not depend on inputs, weights included.

        Raises:
            Unsupported: It is computed when the model runs, or large.
        """
        found = self._assembly.known(x)
        if found is not None:
            return found
        weight = self._assembly.weight(x)
        if weight is None:
            raise Unsupported("needs a constant, found a value computed at run time")
        if weight.nbytes > MAX_INLINE_BYTES:
            raise Unsupported(f"needs a small constant, found a weight of {weight.nbytes} bytes")
        return weight.array()

    def is_constant(self, x: Expr) -> bool:
        """Whether :meth:`constant` returns the value of `x`."""
        if self._assembly.known(x) is not None:
            return True
        weight = self._assembly.weight(x)
        return weight is not None and weight.nbytes <= MAX_INLINE_BYTES

    def ints(self, x: Expr) -> tuple[int, ...]:
        """Return the elements of a constant tensor of integers.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        return tuple(int(item) for item in self.constant(x).reshape(-1))

    def dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of an integer tensor over symbols; None if one is not known.

        They may be negative integers where the tensor holds codes.
        """
        found = self.partial_dims(x)
        return None if found is None or any(isinstance(dim, Any) for dim in found) else found

    def partial_dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the same with anonymous dimensions where only some elements are known."""
        found = self._assembly.dims(x)
        return self.ints(x) if found is None and self.is_constant(x) else found

    def fold(self, x: Expr) -> Expr:
        """Return what stands for an expression that was just built: a constant if it is one."""
        return self._assembly.fold(x)
