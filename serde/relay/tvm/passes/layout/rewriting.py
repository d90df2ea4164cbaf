"""The walk that gives calls other layouts, and brings values back where others need the old ones.

A value that has changed is known with the layout that it had and the one that it has. A call that
says how it follows layouts takes it as it is, or has it brought into the layout that it needs; all
others get it in its old layout. Each value is brought into another layout once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import Attrs, Call, Expr, Function, Tuple, TupleGetItem, astuple, infer_function
from serde.relay.ir.deferral import defer_types
from serde.relay.ir.layout import LayoutPlan, TensorLayout
from serde.relay.ir.registry import OpDef, call, infer_call, set_type
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import children, post_order, rebuild
from serde.relay.tvm.passes.layout.inference import InferCorrectLayoutOutput, Inference, Layouts
from serde.relay.tvm.passes.layout.rules import inference_of

__all__ = ["LayoutRewriter"]


@dataclass(frozen=True, slots=True)
class _Value:
    """What a tensor became.

    Attributes:
        expr: It in its new layout.
        old: The layout that it had, or None where nothing is known.
        new: The layout that it has.
    """

    expr: Expr
    old: TensorLayout | None = None
    new: TensorLayout | None = None


@dataclass(frozen=True, slots=True)
class _Fields:
    """What the fields of a tuple became."""

    items: tuple[_Value | _Fields, ...]


_State = _Value | _Fields


class LayoutRewriter(ABC):
    """Rewrites a function; what it makes of a call is for others to say."""

    def __init__(self) -> None:
        self._states: dict[Expr, _State] = {}
        self._plain: dict[_State, Expr] = {}
        self._moved: dict[tuple[Expr, str, str], Expr] = {}

    @abstractmethod
    def change(self, node: Call, attrs: Attrs, args: Sequence[Expr]) -> Call | None:
        """Return what stands for a call, built on operands in any layout; None if it stays."""

    @abstractmethod
    def changes(self, definition: OpDef) -> bool:
        """Whether calls of an operator whose layouts are not known are asked about, too."""

    def run(self, function: Function) -> Function:
        """Return what a function becomes; the function itself if nothing changes.

        Raises:
            RelayError: What a call became does not fit it.
        """
        if function.body.type is None:
            function = infer_function(function)
        for node in post_order(function):
            self._states[node] = self._visit(node)
        result = self._realize(self._states[function])
        return result if isinstance(result, Function) else function

    def _visit(self, node: Expr) -> _State:
        if isinstance(node, Tuple):
            items = tuple(self._states[field] for field in node.fields)
            return _Fields(items) if items else _Value(node)
        if isinstance(node, TupleGetItem):
            state = self._states[node.tuple_value]
            if isinstance(state, _Fields):
                return state.items[node.index]
        if isinstance(node, Call) and isinstance(node.op, OpDef):
            found = self._rewrite(node, node.op)
            if found is not None:
                return found
        below = children(node)
        parts = [self._realize(self._states[child], child) for child in below]
        return _Value(rebuild(node, parts) if below else node)

    def _realize(self, state: _State, node: Expr | None = None) -> Expr:
        """Return a value in its old layout; a tuple whose fields did not change as it was."""
        if isinstance(state, _Value):
            if state.old is None or state.new is None:
                return state.expr
            return self._transform(state.expr, state.new, state.old)
        if state not in self._plain:
            fields = [self._realize(item) for item in state.items]
            same = isinstance(node, Tuple) and all(
                a is b for a, b in zip(fields, node.fields, strict=True)
            )
            self._plain[state] = node if same and node is not None else Tuple(fields)
        return self._plain[state]

    def _transform(self, raw: Expr, source: TensorLayout, target: TensorLayout) -> Expr:
        """Return a value in another layout, with axes of length 1 in front where it lacks some."""
        if source == target:
            return raw
        key = (raw, source.name, target.name)
        if key not in self._moved:
            self._moved[key] = _bring(raw, source, target)
        return self._moved[key]

    def _rewrite(self, node: Call, definition: OpDef) -> _State | None:
        """Return what a call becomes, or None where its operands are needed as they were."""
        inputs, args = self._operands(node)
        types = [argument.type for argument in node.args]
        if any(type_ is None for type_ in types):
            return None
        infer = inference_of(definition)
        old = [each.old for each in inputs]
        first = None if infer is None else _infer(infer, node.attrs, None, old, types)
        if first is None:
            return self._change_plainly(node) if self.changes(definition) else None
        _require_count("operands", first.input_layouts, inputs)
        current = list(first.input_layouts)
        came = [each.new or layout for each, layout in zip(inputs, current, strict=True)]
        had = [each.old or layout for each, layout in zip(inputs, current, strict=True)]
        made = self._make(node, Attrs(dict(first.new_attrs)), args)
        if not isinstance(made.op, OpDef):
            return None
        again = inference_of(made.op)
        second = None if again is None else _infer(again, made.attrs, came, had, types)
        if second is None:
            return None
        _require_count("results", second.output_layouts, first.output_layouts)
        _require_count("operands", second.input_layouts, inputs)
        moves = zip(inputs, current, second.input_layouts, strict=True)
        return self._rebuild(node, made, list(moves), first, second)

    def _operands(self, node: Call) -> tuple[list[_Value], list[Expr]]:
        """Return the tensors among the operands, fields of tuples one by one; and the operands."""
        inputs: list[_Value] = []
        args: list[Expr] = []
        for argument in node.args:
            state = self._states[argument]
            if isinstance(state, _Value):
                inputs.append(state)
                args.append(state.expr)
                continue
            items = [
                item if isinstance(item, _Value) else _Value(self._realize(item))
                for item in state.items
            ]
            inputs += items
            same = isinstance(argument, Tuple) and all(
                item.expr is field for item, field in zip(items, argument.fields, strict=True)
            )
            args.append(argument if same else Tuple([item.expr for item in items]))
        return inputs, args

    def _change_plainly(self, node: Call) -> _State | None:
        args = [self._realize(self._states[argument], argument) for argument in node.args]
        made = self._make(node, node.attrs, args)
        return _Value(_finish(node, made, made.args, made.attrs))

    def _make(self, node: Call, attrs: Attrs, args: Sequence[Expr]) -> Call:
        with defer_types():
            found = self.change(node, attrs, args)
        if found is None:
            return Call(node.op, args, attrs=attrs, span=node.span)
        made = astuple(found)
        if not isinstance(made, Call):
            raise RelayError(f"a call may become another call only, found {made!r}")
        for argument in made.args:
            _give_types(argument)
        return made

    def _rebuild(
        self,
        node: Call,
        made: Call,
        moves: Sequence[tuple[_Value, TensorLayout | None, TensorLayout | None]],
        first: InferCorrectLayoutOutput,
        second: InferCorrectLayoutOutput,
    ) -> _State | None:
        """Return the new call on operands in the layouts that it needs."""
        pending = iter(moves)
        args: list[Expr] = []
        for argument in made.args:
            if isinstance(argument, Tuple):
                fields = [self._move(field, next(pending)) for field in argument.fields]
                same = all(a is b for a, b in zip(fields, argument.fields, strict=True))
                args.append(argument if same else Tuple(fields))
            else:
                move = next(pending, None)
                if move is None:
                    raise RelayError(f"{made!r} has more operands than {node!r}")
                args.append(self._move(argument, move))
        if next(pending, None) is not None:
            raise RelayError(f"{made!r} has fewer operands than {node!r}")
        result = _finish(node, made, args, second.new_attrs)
        if isinstance(node.type, TupleType):
            pairs = zip(first.output_layouts, second.output_layouts, node.type.fields, strict=True)
            items = []
            for index, (old, new, type_) in enumerate(pairs):
                value = _Value(TupleGetItem(result, index), old, new)
                if not _fits(value, type_):
                    return None
                items.append(value)
            if result is node and all(item.old == item.new for item in items):
                return _Value(node)
            return _Fields(tuple(items))
        value = _Value(result, first.output_layouts[0], second.output_layouts[0])
        return value if _fits(value, node.type) else None

    def _move(
        self, argument: Expr, move: tuple[_Value, TensorLayout | None, TensorLayout | None]
    ) -> Expr:
        """Return an operand in the layout that the call needs.

        The producer of a value and its user may name its axes otherwise: then it goes back into
        what the producer had, and from what the user takes that for into what the user needs.
        """
        value, had, needed = move
        if had is None or needed is None:
            raise RelayError(f"the layout of {argument!r} is not known")
        if value.old is None:
            return self._transform(argument, had, needed)
        source = value.new or value.old
        if value.old == had:
            return self._transform(argument, source, needed)
        return self._transform(self._transform(argument, source, value.old), had, needed)


def _bring(raw: Expr, source: TensorLayout, target: TensorLayout) -> Expr:
    missing = target.rank - source.rank
    if missing > 0:
        if isinstance(raw.type, TensorType) and all(dim == 1 for dim in raw.type.shape):
            return raw
        source = source.expand(target)
        raw = call("expand_dims", raw, axis=0, num_newaxis=missing)
        if source == target:
            return raw
    if not source.converts_to(target):
        raise RelayError(f"layout {source} does not convert to {target}")
    return call("layout_transform", raw, src_layout=source.name, dst_layout=target.name)


def _infer(
    infer: Inference, attrs: Attrs, new: Layouts | None, old: Layouts, types: Sequence[Type | None]
) -> InferCorrectLayoutOutput | None:
    """Return what an inference says, or None where it does not know a layout."""
    found = infer(attrs, new, old, types)
    inputs = tuple(map(_as_layout, found.input_layouts))
    results = tuple(map(_as_layout, found.output_layouts))
    if None in inputs or None in results:
        return None
    return InferCorrectLayoutOutput(inputs, results, found.new_attrs)


def _as_layout(given: AnyValue) -> TensorLayout | None:
    return TensorLayout(given) if isinstance(given, str) else given


def _require_count(what: str, found: Sequence[object], wanted: Sequence[object]) -> None:
    if len(found) != len(wanted):
        raise RelayError(f"expected layouts of {len(wanted)} {what}, found {len(found)}")


def _finish(node: Call, made: Call, args: Sequence[Expr], attrs: Mapping[str, AnyValue]) -> Call:
    """Return the new call, typed; `node` itself if it is the same."""
    definition = made.op
    bound = definition.bind(attrs) if isinstance(definition, OpDef) else made.attrs
    same = all(a is b for a, b in zip(args, node.args, strict=False))
    if definition is node.op and same and len(args) == len(node.args) and bound == node.attrs:
        return node
    return set_type(Call(definition, args, attrs=bound, span=node.span))


def _fits(value: _Value, type_: Type | None) -> bool:
    """Whether a value, back in its old layout, has its old type."""
    if value.old is None or value.new is None or value.old == value.new:
        return True
    found = value.expr.type
    if not isinstance(found, TensorType) or not isinstance(type_, TensorType):
        return True
    try:
        plan = LayoutPlan(found.shape, value.new.name, value.old.name)
    except TypeInferenceError:
        return False
    pairs = zip(plan.shape, type_.shape, strict=True)
    return all(type(a) is not int or type(b) is not int or a == b for a, b in pairs)


def _give_types(root: Expr) -> None:
    """Type what a callback has built on operands of its own that had no types yet."""
    stack = [(root, iter(children(root)))]
    seen = {root}
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each.type is None and each not in seen), None)
        if child is not None:
            seen.add(child)
            stack.append((child, iter(children(child))))
            continue
        stack.pop()
        if node.type is None and isinstance(node, Call):
            node.type = infer_call(node)
        elif node.type is None and isinstance(node, Tuple):
            node.type = Tuple(node.fields).type
        elif node.type is None and isinstance(node, TupleGetItem):
            node.type = TupleGetItem(node.tuple_value, node.index).type
