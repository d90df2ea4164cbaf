"""Convolutions, poolings and images in another layout, and what lies between them with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

from serde.core.records import dataclass, field
from serde.errors import RelayError, TypeInferenceError, Unsupported
from serde.relay.ir import Call, Expr, Function, Tuple, TupleGetItem, Var, layout_axes, tensor_type
from serde.relay.ir.registry import OpDef, call, get
from serde.relay.ir.traits import Elementwise, Layout, Reduction, SameAxes
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import children, has_kind, post_order, rebuild
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.layout_rules import (
    RULES,
    LaidOut,
    Order,
    convert_anchor,
    convert_elementwise,
    convert_reduction,
    convert_same_axes,
    transpose_to,
)

__all__ = ["TransposeToLayout", "channels_first"]


@dataclass(frozen=True)
class TransposeToLayout(FunctionPass):
    """Give operators that have a layout another one, by transposes of their operands.

    Values keep the new order of axes through operators that can follow it (elementwise ones,
    norms, softmax, concatenation, splits, reductions, pads, slices, and operators with a layout
    that are not named): a transpose stands only where something needs the old order, at most one
    for each value and order. The transposes of weights become part of the weights in
    :func:`fold_weights`. Sums over several axes may round differently in another order.

    Args:
        desired_layouts: For each operator the layout of data and, where there is a weight, that
            of the weight, as in ``{"nn.conv2d": ["NCHW", "default"]}``. ``"default"`` for data
            keeps the layout that comes in; for weights it, like nothing, is the one usual with
            the layout of data (``OIHW`` for ``NCHW``, ``HWIO`` for ``NHWC``).
        usual: Whether operators that are not named get the layout that is their default.

    Raises:
        RelayError: An operator has no layout, or its layouts have other axes.
        Unsupported: A layout splits an axis into blocks, such as ``NCHW16c``.
    """

    name: ClassVar[str] = "TransposeToLayout"

    desired_layouts: Mapping[str, tuple[str, ...]] = field(hash=False)
    usual: bool = False

    def __init__(self, desired_layouts: Mapping[str, Iterable[str]], usual: bool = False) -> None:
        wanted = {name: tuple(layouts) for name, layouts in desired_layouts.items()}
        for name, layouts in wanted.items():
            _check(name, layouts)
        object.__setattr__(self, "desired_layouts", MappingProxyType(wanted))
        object.__setattr__(self, "usual", usual)

    def transform(self, function: Function) -> Function:
        """Convert children first."""
        if self.usual and not self.desired_layouts:
            nodes = post_order(function) if has_kind(function, Layout, "transpose") else ()
            if not any(map(_orders_axes, nodes)):
                return function
        result = _Converter(self.desired_layouts, usual=self.usual).run(function)
        return result if isinstance(result, Function) else function


def _orders_axes(node: Expr) -> bool:
    """Whether a call is a transpose, or has its axes in another order than most do."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return False
    layout = node.op.trait(Layout)
    if layout is None:
        return node.op.name == "transpose"
    known = node.op.attributes
    keys = (key for key in (layout.attribute, "kernel_layout", "out_layout") if key in known)
    return any(node.attrs[key] != known[key].default for key in keys)


def channels_first() -> TransposeToLayout:
    """Return the pass that gives every operator its usual layout, channels after the batch."""
    return TransposeToLayout({}, usual=True)


def _check(name: str, layouts: tuple[str, ...]) -> None:
    layout_of = get(name).trait(Layout)
    if layout_of is None:
        raise RelayError(f"TransposeToLayout: {name} has no layout to convert")
    attribute = layout_of.attribute
    most = 2 if attribute == "data_layout" else 1
    if not 1 <= len(layouts) <= most:
        raise RelayError(
            f"TransposeToLayout: {name}: expected 1 to {most} layouts, found {layouts}"
        )
    for key, layout in zip((attribute, "kernel_layout"), layouts, strict=False):
        if layout == "default":
            continue
        if not layout.isalpha() or not layout.isupper():
            raise Unsupported(
                f"TransposeToLayout: {name}: {layout} splits an axis into blocks",
                hint="operators here compute on whole axes",
            )
        axes = get(name).attributes[key].default
        if sorted(layout) != sorted(axes):
            raise RelayError(f"TransposeToLayout: {name}: expected the axes {axes}, found {layout}")


class _Converter:
    """Knows in which order the axes of each converted value are."""

    def __init__(self, desired: Mapping[str, tuple[str, ...]], *, usual: bool) -> None:
        self._desired = desired
        self._wanted = set(map(_wanted_order, desired.items()))
        self._usual = usual
        self._values: dict[Expr, LaidOut] = {}
        self._orders: dict[tuple[Expr, Order], Expr] = {}

    def run(self, root: Expr) -> Expr:
        """Return what `root` has become."""
        for node in post_order(root):
            self._values[node] = self._convert(node)
        return self.plain(root)

    def order(self, node: Expr) -> Order | None:
        """Return the order of the axes of a tensor if it is not the old one, else None."""
        order = self._values[node].order
        return order if isinstance(order, tuple) and order != tuple(range(len(order))) else None

    def plain(self, node: Expr) -> Expr:
        """Return what a node has become, its axes in the old order."""
        laid = self._values[node]
        if laid.fields is not None:
            key = (node, ())
            if key not in self._orders:
                fields = [TupleGetItem(laid.expr, index) for index in range(len(laid.fields))]
                restored = [
                    item if order is None else transpose_to(item, _inverse(order))
                    for item, order in zip(fields, laid.fields, strict=True)
                ]
                self._orders[key] = Tuple(restored)
            return self._orders[key]
        if laid.order is None:
            return laid.expr
        return self.at(node, tuple(range(len(laid.order))))

    def at(self, node: Expr, order: Order) -> Expr:
        """Return a tensor with its old axes in this order; one transpose for each order."""
        laid = self._values[node]
        if laid.order is None or laid.order == order:
            return laid.expr if laid.order == order else transpose_to(self.plain(node), order)
        key = (node, order)
        if key not in self._orders:
            axes = tuple(laid.order.index(axis) for axis in order)
            self._orders[key] = transpose_to(laid.expr, axes)
        return self._orders[key]

    def _convert(self, node: Expr) -> LaidOut:
        if isinstance(node, TupleGetItem):
            laid = self._values[node.tuple_value]
            if laid.fields is not None:
                item = TupleGetItem(laid.expr, node.index, node.span)
                return LaidOut(item, laid.fields[node.index] or _identity(item.type))
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.type is not None:
            laid_call = self._convert_call(node, node.op)
            if laid_call is not None:
                return laid_call
        below = children(node)
        new = rebuild(node, [self.plain(child) for child in below]) if below else node
        return LaidOut(new, _identity(new.type))

    def _convert_call(self, node: Call, definition: OpDef) -> LaidOut | None:
        """Return the call in another order of axes, or None where it stays in the old one."""
        try:
            laid = self._rule(node, definition)
        except TypeInferenceError:
            return None
        return None if laid is None or not _fits(node.type, laid) else laid

    def _rule(self, node: Call, definition: OpDef) -> LaidOut | None:
        layout, same = definition.trait(Layout), definition.trait(SameAxes)
        if layout is not None:
            usual = definition.attributes[layout.attribute].default if self._usual else "default"
            return convert_anchor(self, node, layout, self._desired.get(definition.name, (usual,)))
        if same is not None:
            return convert_same_axes(self, node, same)
        if definition.has(Elementwise):
            return convert_elementwise(self, node)
        if definition.has(Reduction):
            return convert_reduction(self, node)
        if definition.name == "transpose" and not self._usual:
            found = self._relabel(node)
            if found is not None:
                return found
        rule = RULES.get(definition.name)
        return None if rule is None else rule(self, node)

    def _relabel(self, node: Call) -> LaidOut | None:
        """Return a transpose of an input, or one back from the order wanted, as what it is of."""
        source, rank = node.args[0], tensor_type(node).rank
        axes = node.attrs["axes"] or tuple(reversed(range(rank)))
        order = _inverse(tuple(axis % rank for axis in axes))
        if self.order(source) or not (isinstance(source, Var) or order in self._wanted):
            return None
        plain = self.plain(source)
        self._orders[node, tuple(range(rank))] = rebuild(node, [plain])
        return LaidOut(plain, order)

    def build(self, node: Call, args: Iterable[Expr], **attrs: object) -> Expr:
        """Return `node` with other operands and some attributes changed."""
        name = node.op.name if isinstance(node.op, OpDef) else ""
        return call(name, *args, span=node.span, **{**node.attrs, **attrs})


def _wanted_order(item: tuple[str, tuple[str, ...]]) -> Order:
    """Return the order of axes that a layout has which an operator is to get."""
    name, (wanted, *_) = item
    layout = get(name).trait(Layout)
    default = wanted if layout is None else get(name).attributes[layout.attribute].default
    return layout_axes(default, wanted) if len(wanted) > 3 and wanted.isupper() else ()


def _identity(type_: Type | None) -> Order | None:
    return tuple(range(type_.rank)) if isinstance(type_, TensorType) else None


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _fits(old: Type | None, laid: LaidOut) -> bool:
    """Whether what a rule built has the old type, axes in the new order."""
    new = laid.expr.type
    if isinstance(old, TensorType) and isinstance(new, TensorType) and laid.order is not None:
        if old.rank != new.rank or old.dtype != new.dtype:
            return False
        pairs = zip(laid.order, new.shape, strict=True)
        return all(type(dim) is not int or old.shape[axis] == dim for axis, dim in pairs)
    return isinstance(old, TupleType) and isinstance(new, TupleType) and laid.fields is not None
