"""The walk over programs that write to tensors, which makes them functional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import serde.relay as relay
from serde.core.report import Report
from serde.errors import Unsupported
from serde.relay.ir import DimLike, Expr, TensorType, Var
from serde.torch.aliases import (
    Handle,
    Storage,
    Values,
    View,
    functional_name,
    handles_in,
    is_in_place,
    out_names,
    writes_statistics,
)
from serde.torch.host import MOVES
from serde.torch.import_context import ImportContext
from serde.torch.import_walk import ImportWalk, base_name, known_name
from serde.torch.model import Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.ops.table import OPS
from serde.torch.views import Call, ViewOperator, shares_memory, view_operator
from serde.walk import Hole, Placeholder, importer

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["FILLS", "PASSES", "FunctionalWalk"]

_RESHAPES: Final = frozenset(
    f"aten::{name}_" for name in ["squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims"]
)
"""Operators that let a tensor look differently at its elements."""

FILLS: Final = frozenset(["aten::copy_", "aten::fill_", "aten::zero_"])
"""Operators whose result does not depend on what the tensor held."""

PASSES: Final = frozenset(["aten::detach_", "aten::requires_grad_"])
"""Operators that return their argument."""

_REFUSED: Final = frozenset(
    ["aten::set_", "aten::resize_", "aten::resize_as_", "aten::as_strided_"]
)


class FunctionalWalk(ImportWalk):
    """The walk in which every tensor is held by its memory."""

    def __init__(self, model: TorchModel, options: TorchImportOptions, report: Report) -> None:
        super().__init__(model, options, report)
        self._origins: dict[Expr, Storage] = {}
        self._escaped: set[Storage] = set()

    # Values that the program holds itself.

    def declare(
        self, entry: Input, shape: Sequence[DimLike] | None, dtype: str | None, scope: Values
    ) -> Var | None:
        """Return the variable for an input, whose elements lie one after the other."""
        variable = super().declare(entry, shape, dtype, scope)
        if variable is not None and not entry.number:
            self._hold(scope, entry.value, variable)
        return variable

    def read(self, graph: Graph, scope: Values) -> importer.Graph[Node]:
        """Return a graph as the walk sees it, its weights being held."""
        found = super().read(graph, scope)
        held: dict[str, Handle] = {}
        for value, name in graph.weights.items():
            if name in held:
                scope.values[value] = held[name]
            else:
                held[name] = self._hold(scope, value, scope.values[value])
                held[name].view.storage.weight = name
        return found

    def _hold(self, scope: Values, name: str, value: Expr) -> Handle:
        handle = scope.new(value, name, contiguous=True)
        handle.view.storage.given = True
        scope.values[name] = handle
        return handle

    # Graphs inside nodes.

    def evaluate_for(
        self,
        graph: Graph,
        scope: Values,
        args: Sequence[AnyValue],
        origins: Sequence[AnyValue] | None,
    ) -> list[AnyValue]:
        """Return the outputs of a graph for arguments that stand for others.

        Args:
            graph: The graph.
            scope: A scope made for it.
            args: A value for each of its inputs.
            origins: Values around the node that the arguments stand for; they themselves if None.
        """
        known = args if origins is None else origins
        held = [self._as_given(x, y, scope) for x, y in zip(args, known, strict=True)]
        outer = self._origins, self._escaped
        self._origins, self._escaped = {}, set()
        found = list(super().evaluate(graph, scope, held))
        self._origins, self._escaped = outer
        for each in handles_in([self.held(x, scope) for x in graph.outputs]):
            storage = each.view.storage
            known_around = {storage, *storage.maybe} - scope.states.keys()
            self._escaped |= known_around | (storage.maybe if storage.given else set())
        return found

    def evaluate(self, graph: Graph, scope: Values, args: Sequence[AnyValue]) -> list[Expr]:
        """Return the outputs of a graph for arguments, holes where there are gaps."""
        return self.evaluate_for(graph, scope, args, None)

    def _as_given(self, value: AnyValue, origin: AnyValue, scope: Values) -> AnyValue:
        """Return a handle for what a graph is given, which may be what it stands for."""
        if isinstance(value, (list, tuple)):
            pairs = zip(value, origin, strict=True)
            return type(value)(self._as_given(x, y, scope) for x, y in pairs)
        if not self._is_tensor(value):
            return value
        handle = scope.new(value, getattr(value, "name_hint", "argument"))
        storage = handle.view.storage
        storage.given = True
        if origin in self._origins:
            scope.link(storage, [self._origins[origin]])
        return handle

    def written(self, scope: Values) -> dict[str, Expr]:
        """Return what the program made of weights and inputs that it writes, as further outputs."""
        changed = [each for each, state in scope.states.items() if state.version]
        weights = [(each.weight, each) for each in changed if each.weight is not None]
        values = {each.value: each.name for each in self._model.inputs}
        inputs = [(values[x.name], x) for x in changed if x.weight is None and x.given]
        found: dict[str, Expr] = {}
        for source, storage in [*weights, *inputs]:
            name = f"{source}_new"
            while name in self._model.outputs:
                name += "_"
            found[name] = scope.whole(storage)
            self.report.notes.append(f"{source} is changed: its new value is the output {name}")
        return found

    def output(self, name: Argument, scope: Values) -> AnyValue:
        """Return an output of a graph, a hole where what its memory holds is not known."""
        try:
            return super().output(name, scope)
        except Unsupported as error:
            label = name.name if isinstance(name, Ref) else "output"
            self.report.add("output", f"{scope.prefix}{label}", error.reason, error.hint)
            return Hole()

    # Nodes.

    def held(self, argument: Argument, scope: Values) -> AnyValue:
        """Return an argument with handles as they are, and lists by identity."""
        if isinstance(argument, Ref):
            return scope.held(argument.name)
        if isinstance(argument, (list, tuple)):
            return [self.held(each, scope) for each in argument]
        return argument

    def compute(self, context: ImportContext, scope: Values) -> list[AnyValue]:
        """Return the values that a node gives, held by their memory."""
        node = context.source
        held = {name: self.held(each, scope) for name, each in node.arguments}
        op = node.op
        if op in MOVES or base_name(op) in MOVES:
            found = self.apply(context, op, held)
            return [self.hold(each, context.node, scope) for each in found]
        if not held and (base_name(op) in PASSES or is_in_place(op)):
            raise Unsupported("a write without a tensor")
        if base_name(op) in PASSES:
            return [first(held)]
        if is_in_place(op) and isinstance(first(held), Handle):
            return [self._run_in_place(context, op, held, scope)]
        if is_in_place(op):
            return self._run_on_list(context, op, held, scope)
        if writes_statistics(op, held):
            return self._run_statistics(context, op, held, scope)
        outs = out_names(op, list(held))
        if outs:
            return self._run_out(context, op, held, outs, scope)
        outer = self._origins, self._escaped
        self._origins, self._escaped = {}, set()
        if self.has_graphs(node):
            for handle in handles_in(list(held.values())):
                self._origins[scope.look(handle.view)] = handle.view.storage
        found = self.apply(context, op, {name: scope.resolve(each) for name, each in held.items()})
        escaped = self._escaped
        self._origins, self._escaped = outer
        results = self._hold_results(context, held, found, scope)
        for handle in handles_in(results) if escaped else []:
            scope.link(handle.view.storage, escaped)
        return results

    def has_graphs(self, node: Node) -> bool:
        """Whether there are graphs inside a node."""
        return bool(node.blocks) or any(isinstance(each, Graph) for _, each in node.arguments)

    def _run_on_list(
        self, context: ImportContext, op: str, held: Mapping[str, AnyValue], scope: Values
    ) -> list[AnyValue]:
        """Return a list that ``+=`` made longer; there is none where the target is a hole."""
        target, *others = held.values()
        if isinstance(target, list) and base_name(op) == "aten::add_":
            if len(others) != 1 or not isinstance(others[0], (list, tuple)):
                raise Unsupported("a list that is made longer by what is no list")
            target.extend(others[0])
            return [target]
        if isinstance(target, Placeholder):
            given = {name: scope.resolve(each) for name, each in held.items()}
            return [Hole()] if base_name(op) in FILLS else self._compute(context, op, given)
        raise Unsupported("a write to what is no tensor")

    # Results.

    def _is_tensor(self, value: AnyValue) -> bool:
        return (
            isinstance(value, Expr)
            and not isinstance(value, Placeholder)
            and value not in self.numbers
        )

    def hold(self, value: AnyValue, name: str, scope: Values) -> AnyValue:
        """Return values of which those that are tensors, and are not yet, are held."""
        if self._is_tensor(value):
            return scope.new(value, name)
        if isinstance(value, tuple):
            return tuple(self.hold(each, name, scope) for each in value)
        if isinstance(value, list):
            value[:] = [self.hold(each, name, scope) for each in value]
        if isinstance(value, dict):
            value.update({key: self.hold(each, name, scope) for key, each in value.items()})
        return value

    def _hold_results(
        self,
        context: ImportContext,
        held: Mapping[str, AnyValue],
        found: list[AnyValue],
        scope: Values,
    ) -> list[AnyValue]:
        """Return what an operator gave, of whose memory it is known whether it is another's."""
        op, base = context.source.op, first(held)
        operator = view_operator(op)
        if (
            operator is not None
            and isinstance(base, Handle)
            and (base.view.contiguous or not operator.maybe)
        ):
            return self._hold_views(context, operator, held, found, scope)
        shares: bool | None = operator is not None and None
        if operator is None and isinstance(base, Handle):
            same = len(found) == 1 and self._same(found[0], scope.resolve(base))
            contiguous = base.view.contiguous
            shares = shares_memory(op, held, same=same, contiguous=contiguous)
            if shares:
                return [Handle(base.view) for _ in found]
        plain = all(each.view.contiguous for each in handles_in(list(held.values())))
        results: list[AnyValue] = []
        for each in found:
            given = self.hold(each, context.node, scope)
            for handle in handles_in([given]):
                handle.view.contiguous = True if plain and _is_plain(op) else None
                if shares is None:
                    others = (x.view.storage for x in handles_in(list(held.values())))
                    scope.link(handle.view.storage, others)
            results.append(given)
        return results

    def _same(self, one: AnyValue, other: AnyValue) -> bool:
        return isinstance(one, Expr) and isinstance(other, Expr) and one.type == other.type

    def _hold_views(
        self,
        context: ImportContext,
        operator: ViewOperator,
        held: Mapping[str, AnyValue],
        found: list[AnyValue],
        scope: Values,
    ) -> list[AnyValue]:
        """Return what an operator gave as views."""
        base: Handle = first(held)
        rest = {name: scope.resolve(each) for name, each in list(held.items())[1:]}
        parts = found[0] if found and isinstance(found[0], (list, tuple)) else found
        axis = None if operator.axis is None else operator.axis(Call(context.source.op, rest))
        views: list[AnyValue] = []
        begin: AnyValue = 0
        for index, each in enumerate(parts):
            if not self._is_tensor(each):
                views.append(each)
                continue
            call = Call(context.source.op, rest, index, begin)
            if len(parts) > 1 and axis is not None and context.type(each).rank == self._rank(base):
                length = context.size(each, context.axis(each, axis))
                call = Call(context.source.op, rest, index, begin, length)
                begin = _sum(context, begin, length)
            views.append(Handle(self._view(context, operator, base.view, call, each, scope)))
        return [views] if parts is not found else views

    def _rank(self, base: Handle) -> int:
        type_ = base.view.first.type
        return type_.rank if isinstance(type_, TensorType) else -1

    def _view(
        self,
        context: ImportContext,
        operator: ViewOperator,
        base: View,
        call: Call,
        value: Expr,
        scope: Values,
    ) -> View:
        """Return a view that a node made of another."""
        several = not (len(context.source.outputs) == 1 and not context.source.gives_list)

        def look(level: Values, whole: Expr) -> Expr:
            inner = self._context(context, level)
            name = context.source.arguments[0][0]
            given = {name: whole, **self._lift(call.arguments, scope, level)}
            found = self.apply(inner, call.op, given)
            if several or isinstance(found[0], list):
                found = found[0] if isinstance(found[0], list) else found
                return self._tensor(found[call.index])
            return self._tensor(found[0])

        def put(level: Values, before: Expr, new: Expr) -> Expr:
            arguments = self._lift(call.arguments, scope, level)
            begin, length = (level.lift(x, scope, "length") for x in (call.begin, call.length))
            again = Call(call.op, arguments, call.index, begin, length)
            whole = operator.put(self._context(context, level), before, new, again)
            if new in self.quantized:
                self.quantized[whole] = self.quantized[new]
            return whole

        shape = self._shape(base)
        contiguous = operator.contiguous(base.contiguous, shape, call)
        found = base.child(
            scope, value, look, put, bijective=operator.bijective, contiguous=contiguous
        )
        found.keep(scope.state(base.storage)[0], scope, value)
        return found

    def _shape(self, view: View) -> Sequence[AnyValue]:
        return view.first.type.shape if isinstance(view.first.type, TensorType) else ()

    def _tensor(self, value: AnyValue) -> Expr:
        if not isinstance(value, Expr) or isinstance(value, Hole):
            raise Unsupported("a view that cannot be computed")
        return value

    def _context(self, context: ImportContext, scope: Values) -> ImportContext:
        return ImportContext(context.source, context.node, context.outputs, self, scope)

    def _lift(
        self, arguments: Mapping[str, AnyValue], home: Values, scope: Values
    ) -> dict[str, AnyValue]:
        """Return arguments of a node of a graph around another, there."""
        if home is scope:
            return dict(arguments)
        return {name: _lift(each, home, scope, name) for name, each in arguments.items()}

    # Writes.

    def _run_in_place(
        self, context: ImportContext, op: str, held: Mapping[str, AnyValue], scope: Values
    ) -> Handle:
        """Write what an operator gives to its first argument, and return that."""
        target: Handle = first(held)
        base = base_name(op)
        if base in _REFUSED:
            raise Unsupported("a tensor whose memory is exchanged")
        rest = {name: scope.resolve(each) for name, each in list(held.items())[1:]}
        name = next(iter(held))
        if base in _RESHAPES:
            return self._reshape(context, op, target, rest, scope)
        if base in FILLS and base not in self._custom:
            given = next(iter(rest.values()), 0)
            self._write(context, target, context.number(given), scope)
            return target
        before = scope.look(target.view)
        found = self._compute(context, op, {name: before, **rest})
        self._write(context, target, self._result(found), scope)
        return target

    def _compute(
        self, context: ImportContext, op: str, given: Mapping[str, AnyValue]
    ) -> list[AnyValue]:
        """Return what an operator writes; a user may have named it or its counterpart."""
        for own in (op, functional_name(op)):
            if own in self._custom or base_name(own) in self._custom:
                return self.apply(context, own, given)
        plain = _counterpart(op, list(given))
        return self._call_table(context, plain, _with_first_name(plain, given))

    def _result(self, found: list[AnyValue]) -> AnyValue:
        value = found[0] if found else Hole()
        return value[0] if isinstance(value, list) else value

    def _reshape(
        self,
        context: ImportContext,
        op: str,
        target: Handle,
        rest: Mapping[str, AnyValue],
        scope: Values,
    ) -> Handle:
        """Let a tensor look at its elements as a view does."""
        if target.view.scope is not scope:
            raise Unsupported("a tensor from around a block that gets another shape in it")
        plain = functional_name(op)
        operator = view_operator(plain)
        if operator is None:
            raise Unsupported("a view whose inverse is not known")
        name = context.source.arguments[0][0]
        found = self.apply(context, plain, {name: scope.look(target.view), **rest})
        value = self._tensor(self._result(found))
        target.view = self._view(context, operator, target.view, Call(plain, rest), value, scope)
        return target

    def _run_out(
        self,
        context: ImportContext,
        op: str,
        held: Mapping[str, AnyValue],
        outs: Sequence[str],
        scope: Values,
    ) -> list[AnyValue]:
        """Write the results of an operator to tensors that it is given for them."""
        given = {name: scope.resolve(each) for name, each in held.items() if name not in outs}
        found = self._compute(context, op, given)
        if len(found) == 1 and isinstance(found[0], list):
            found = found[0]
        targets = [held[name] for name in outs]
        if len(targets) == 1 and isinstance(targets[0], (list, tuple)):
            (targets,) = targets
        for target, value in zip(targets, found, strict=False):
            if isinstance(target, Placeholder):
                continue
            if not isinstance(target, Handle):
                raise Unsupported("a result that is written to no tensor")
            if isinstance(value, Expr) and self._is_empty(target, value):
                value = context.cast(value, context.type(target.view.first).dtype)
                target.view = scope.new(value, context.node, contiguous=True).view
            else:
                self._write(context, target, value, scope)
        return [targets] if context.source.gives_list else targets

    def _run_statistics(
        self, context: ImportContext, op: str, held: Mapping[str, AnyValue], scope: Values
    ) -> list[AnyValue]:
        """Normalise by statistics of a batch, and write the running ones."""
        if op == "aten::instance_norm":
            raise Unsupported("running statistics of instances, in training")
        given = {name: scope.resolve(each) for name, each in held.items()}
        given.pop("cudnn_enabled", None)
        plain = "aten::_native_batch_norm_legit_functional"
        found = self._call_table(context, plain, given)
        *results, mean, variance = found if len(found) > 2 else [Hole() for _ in range(5)]
        for name, value in (("running_mean", mean), ("running_var", variance)):
            target = held.get(name)
            if not isinstance(target, Handle):
                raise Unsupported(f"{name} that is no tensor")
            self._write(context, target, value, scope)
        count = 1 if op == "aten::batch_norm" else 3
        held_results = [self.hold(each, context.node, scope) for each in results[:count]]
        return [held_results] if context.source.gives_list else held_results

    def _is_empty(self, target: Handle, value: Expr) -> bool:
        """Whether a tensor without elements is made as large as what is written to it."""
        return 0 in self._shape(target.view) and value.type != target.view.first.type

    def _write(
        self, context: ImportContext, target: Handle, value: AnyValue, scope: Values
    ) -> None:
        """Write a value to a tensor, in its dtype and its shape."""
        if isinstance(value, Hole) or not isinstance(value, Expr):
            value = Hole()
            scope.put(target.view.storage, value)
            return
        like = target.view.first
        type_ = context.type(like)
        if (value in self.quantized) != (like in self.quantized):
            raise Unsupported("a write that quantises, or dequantises")
        value = context.cast(value, type_.dtype)
        if context.type(value).rank > type_.rank:
            raise Unsupported(f"a result of type {value.type!r} for a tensor of type {type_!r}")
        if context.type(value).shape != type_.shape:
            shape = type_.concrete_shape
            if shape is None:
                value = relay.broadcast_to_like(value, scope.look(target.view))
            else:
                value = relay.broadcast_to(value, shape)
            value = context.fold(value)
        scope.write(target.view, value)


def _counterpart(op: str, given: Sequence[str]) -> str:
    """Return the operator that computes what one writes, and takes arguments of these names."""
    plain = functional_name(op)
    base = base_name(plain)
    others = (each for each, _ in OPS.imported() if base_name(each) == base)
    for name in (known_name(plain), base, *others):
        accepted = _accepted(name)
        if accepted is not None and accepted.issuperset(given[1:]):
            return name
    return known_name(plain)


def _accepted(op: str) -> set[str] | None:
    """Return the names of arguments that a converter takes; None where there is none."""
    found = OPS.importer(op, 1)
    return None if found is None else {*found.operands, *found.attributes, *found.ignored}


def _with_first_name(op: str, given: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return arguments of which the first, which in place may have another name, has its own."""
    converter = OPS.importer(op, 1)
    name = next(iter(given), "")
    if converter is None or not converter.operands or name in (_accepted(op) or ()):
        return dict(given)
    return {converter.operands[0] if each == name else each: x for each, x in given.items()}


def first(held: Mapping[str, AnyValue]) -> AnyValue:
    """Return the first argument."""
    return next(iter(held.values()), None)


def _lift(value: AnyValue, home: Values, scope: Values, name: str) -> AnyValue:
    if isinstance(value, (list, tuple)):
        return type(value)(_lift(each, home, scope, name) for each in value)
    return scope.lift(value, home, name)


def _sum(context: ImportContext, one: AnyValue, other: AnyValue) -> AnyValue:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return context.fold(relay.add(context.number(one), context.number(other)))


def _is_plain(op: str) -> bool:
    """Whether the elements of a result lie one after the other where those of the arguments do."""
    return base_name(op).removeprefix("aten::") in _PLAIN


_PLAIN: Final = frozenset(
    """
    _convolution _to_copy abs adaptive_avg_pool2d add addmm arange avg_pool2d batch_norm bmm cat
    clone conv1d conv2d conv3d convolution div embedding empty empty_like exp full full_like gelu
    group_norm instance_norm layer_norm lift_fresh lift_fresh_copy linear log_softmax masked_fill
    matmul max_pool2d mm mul neg new_empty new_full new_ones new_zeros ones ones_like pow relu
    rsqrt sigmoid silu softmax sqrt stack sub tanh where zeros zeros_like
    """.split()  # noqa: SIM905
)
