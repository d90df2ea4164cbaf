"""Passes that change layouts: into those that are asked for, or as functions of operators say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import MappingProxyType
from typing import ClassVar, Final

from serde.core.records import dataclass, field
from serde.errors import RelayError
from serde.relay.ir import Attrs, Call, Expr, Function, OpDef, TensorType, TupleType
from serde.relay.ir.attrs import get_op_attr
from serde.relay.tvm.passes.layout.rewriting import LayoutRewriter
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["AlterOpLayout", "ConvertLayout", "LayoutConfig"]


@dataclass(frozen=True)
class ConvertLayout(TypedPass):
    """Give operators the layouts that are asked for, and those between them with them.

    ``layout_transform`` stands where a layout begins and ends; operators between that can follow
    do. What an operator makes of a layout is its attribute ``FTVMConvertOpLayout``, how it follows
    one ``FInferCorrectLayout``; users may register others. Meaning is kept: an operator that
    cannot say its axes in a layout gets the old one.

    Args:
        desired_layouts: For each operator the layout of its data and, where it has a weight or
            regions, of these; ``"default"`` for a weight is the one usual with that of the data.
            Layouts in blocks make ``nn.contrib_conv2d_NCHWc`` of ``nn.conv2d``.

    Raises:
        RelayError: An operator does not take such layouts.
    """

    name: ClassVar[str] = "ConvertLayout"
    opt_level: ClassVar[int] = 3
    required: ClassVar[Sequence[str]] = ("InferType", "CanonicalizeOps")

    desired_layouts: Mapping[str, tuple[str, ...]] = field(hash=False)

    def __init__(self, desired_layouts: Mapping[str, Iterable[str]]) -> None:
        wanted = {name: tuple(map(str, layouts)) for name, layouts in desired_layouts.items()}
        object.__setattr__(self, "desired_layouts", MappingProxyType(wanted))

    def transform(self, function: Function) -> Function:
        """Convert calls, operands first."""
        return _Converter(self.desired_layouts).run(function)


class AlterOpLayout(TypedPass):
    """Let each operator be replaced by what its attribute ``FTVMAlterOpLayout`` makes of it.

    The attribute is a function of the call's attributes, its operands, their types (fields of
    tuples one by one) and the type of the result; it returns a call with as many operands, usually
    in other layouts, or None where the call stays. The operands that it gets are in the layouts
    that they have come to have; those that the new call says it needs are given to it afterwards.
    """

    name: ClassVar[str] = "AlterOpLayout"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Alter calls, operands first."""
        return _Alterer().run(function)


class _Converter(LayoutRewriter):
    def __init__(self, desired: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._desired = desired

    def change(self, node: Call, attrs: Attrs, args: Sequence[Expr]) -> Call | None:
        name = node.op.name if isinstance(node.op, OpDef) else ""
        wanted = self._desired.get(name)
        convert = None if wanted is None else get_op_attr(name, "FTVMConvertOpLayout")
        if wanted is None or convert is None:
            return None
        found: Call | None = convert(attrs, list(args), _tensor_types(node), list(wanted))
        return found

    def changes(self, definition: OpDef) -> bool:
        return False


class _Alterer(LayoutRewriter):
    def change(self, node: Call, attrs: Attrs, args: Sequence[Expr]) -> Call | None:
        name = node.op.name if isinstance(node.op, OpDef) else ""
        alter = get_op_attr(name, "FTVMAlterOpLayout")
        if alter is None:
            return None
        found: Call | None = alter(attrs, list(args), _tensor_types(node), node.type)
        return found

    def changes(self, definition: OpDef) -> bool:
        return get_op_attr(definition.name, "FTVMAlterOpLayout") is not None


def _tensor_types(node: Call) -> list[TensorType]:
    """Return the types of the operands of a call, fields of tuples one by one."""
    types: list[TensorType] = []
    for argument in node.args:
        parts = argument.type.fields if isinstance(argument.type, TupleType) else [argument.type]
        for part in parts:
            if not isinstance(part, TensorType):
                raise RelayError(f"{node!r}: expected tensors, found {part!r}")
            types.append(part)
    return types


class LayoutConfig:
    """Keeps some convolutions from :class:`ConvertLayout`: ``with LayoutConfig([0]): ...``.

    Args:
        skip_layers: Numbers of the convolutions that stay, counted from 0 in the order in which
            the pass meets them.
    """

    def __init__(self, skip_layers: Iterable[int] | None = None) -> None:
        self.skip_counter = 0
        self.skip_layers = list(skip_layers or ())
        self._tokens: list[Token[LayoutConfig | None]] = []

    @staticmethod
    def current() -> LayoutConfig | None:
        """Return the innermost one that is entered here, or None."""
        return _CURRENT.get()

    def check_skip(self) -> bool:
        """Return whether the next convolution stays, and count it."""
        skip = self.skip_counter in self.skip_layers
        self.skip_counter += 1
        return skip

    def reset(self) -> None:
        """Count from 0 again, and skip none."""
        self.skip_counter = 0
        self.skip_layers = []

    def __enter__(self) -> LayoutConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _CURRENT.reset(self._tokens.pop())


_CURRENT: Final[ContextVar[LayoutConfig | None]] = ContextVar("layout_config", default=None)
