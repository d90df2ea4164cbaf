"""Functions that do nothing but make turns of a loop, as the exporter writes them.

A function is read as a term: what it gives, of its parameters. It is such a function where that
term is the one that the exporter would have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

from serde.core.records import dataclass, replace
from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.reflection import attributes_of, handle_of, name_of, plain_value, tensor_of
from serde.relax.values import BRANCH
from serde.relay.ir import Call, Expr, Function, FuncType, TensorType, Var, call, get
from serde.relay.ir.visit import children, post_order, rewrite

__all__ = ["Loops", "Repetition", "transpose_outside"]

Term: TypeAlias = tuple[AnyValue, ...]

_OPERATORS: Final = ("relax.add", "relax.subtract", "relax.equal")
_ONE: Final[Term] = ("constant", 1)


@dataclass(frozen=True, slots=True)
class Repetition:
    """What a function does that makes turns.

    Attributes:
        turn: Name of the function of one turn.
        carried: How many parameters of that go round; others are the same in all turns.
        count: How many turns are made; None where the first argument says so.
        asks: Whether the second result of a turn tells to go on, and the first argument of the
            function is a level: the turns are two to the power of that at most.
        bounded: Whether the level bounds them.
    """

    turn: str
    carried: int
    count: int | None = None
    asks: bool = False
    bounded: bool = True


class Loops:
    """The functions of a module that make turns of loops.

    Args:
        framework: TVM.
        functions: The functions of Relax by name.
    """

    def __init__(self, framework: Framework, functions: Mapping[str, AnyValue]) -> None:
        self._framework = framework
        self._functions = functions
        self._found: dict[str, Repetition | None] = {}

    def find(self, name: str) -> Repetition | None:
        """Return what a function does, None for one that does something else."""
        if name not in self._found:
            self._found[name] = None
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> Repetition | None:
        reader = _Reader(self._framework, self._functions)
        term = reader.read(self._functions[name])
        others = sorted(reader.called - {name})
        if term is None or len(others) != 1 or others[0] not in self._functions:
            return None
        inner = others[0]
        outputs = self._outputs(name)
        if self._outputs(inner) != outputs:
            return None
        params = [("param", index) for index in range(len(self._functions[name].params))]
        for carried in range(1, outputs + 1):
            form = _Form(params, carried, outputs)
            if term == form.twice(inner):
                return self._doubled(inner, carried)
            if carried > 1 and term == form.turns(name, inner):
                return Repetition(inner, carried, asks=True)
            if carried > 1 and term == form.further(name, inner):
                known = self.find(inner)
                if known is not None and known.asks and known.carried == carried:
                    return replace(known, bounded=False)
        return None

    def _doubled(self, inner: str, carried: int) -> Repetition:
        known = self.find(inner)
        if known is None or known.count is None or known.carried != carried:
            return Repetition(inner, carried, 2)
        return replace(known, count=2 * known.count)

    def _outputs(self, name: str) -> int:
        type_ = self._framework.result_type(self._functions[name])
        return len(type_.fields) if isinstance(type_, self._framework.TupleType) else 1


class _Form:
    """The terms that the exporter writes.

    Args:
        params: The parameters of the function.
        carried: How many go round.
        outputs: How many results there are.
    """

    def __init__(self, params: Sequence[Term], carried: int, outputs: int) -> None:
        self._params = list(params)
        self._carried = carried
        self._outputs = outputs

    def _item(self, whole: Term, index: int) -> Term:
        return _item(whole, index) if self._outputs > 1 else whole

    def _call_again(self, name: str, first: Term, params: Sequence[Term], *level: Term) -> Term:
        """Return a call of what another gives."""
        states = [self._item(first, index) for index in range(self._carried)]
        return ("call", name, (*level, *states, *params[self._carried :]))

    def _joined(self, first: Term, second: Term) -> Term:
        """Return the states of the second, and the rows of both."""
        fields = [self._item(second, index) for index in range(self._carried)]
        for index in range(self._carried, self._outputs):
            fields.append(("join", self._item(first, index), self._item(second, index)))
        return _tuple(fields) if self._outputs > 1 else fields[0]

    def twice(self, inner: str) -> Term:
        """Return two calls of `inner`."""
        first: Term = ("call", inner, tuple(self._params))
        return self._joined(first, self._call_again(inner, first, self._params))

    def turns(self, own: str, turn: str) -> Term:
        """Return one turn at level 0, else two calls of the function itself."""
        level, *params = self._params
        below: Term = ("relax.subtract", level, _ONE)
        first: Term = ("call", own, (below, *params))
        second = self._call_again(own, first, params, below)
        more: Term = ("if", self._item(first, 1), self._joined(first, second), first)
        one: Term = ("call", turn, tuple(params))
        return ("if", ("relax.equal", level, ("constant", 0)), one, more)

    def further(self, own: str, turns: str) -> Term:
        """Return the turns of a level, then those of higher ones."""
        level, *params = self._params
        first: Term = ("call", turns, tuple(self._params))
        second = self._call_again(own, first, params, ("relax.add", level, _ONE))
        return ("if", self._item(first, 1), self._joined(first, second), first)


def _item(whole: Term, index: int) -> Term:
    return whole[1][index] if whole[0] == "tuple" else ("item", whole, index)


def _tuple(fields: Iterable[Term]) -> Term:
    """Return a tuple; one of all fields of another is that."""
    fields = tuple(fields)
    whole = fields[0][1] if fields and fields[0][0] == "item" else None
    if whole is not None and fields == tuple(("item", whole, n) for n in range(len(fields))):
        return whole
    return ("tuple", fields)


class _OtherError(Exception):
    """There is something else in a function."""


class _Reader:
    """Reads one function.

    Attributes:
        called: Names of the functions that it calls.
    """

    def __init__(self, framework: Framework, functions: Mapping[str, AnyValue]) -> None:
        self._framework = framework
        self._functions = functions
        self._values: dict[int, Term] = {}
        self._inside: list[str] = []
        self.called: set[str] = set()

    def read(self, function: AnyValue) -> Term | None:
        """Return what it gives, None where that is something else."""
        for index, each in enumerate(function.params):
            self._values[handle_of(each)] = ("param", index)
        try:
            return self._term(function.body)
        except _OtherError:
            return None

    def _term(self, expr: AnyValue) -> Term:
        framework, relax = self._framework, self._framework.relax
        if isinstance(expr, relax.SeqExpr):
            for block in expr.blocks:
                for binding in block.bindings:
                    self._values[handle_of(binding.var)] = self._term(binding.value)
            return self._term(expr.body)
        if isinstance(expr, framework.variables) and handle_of(expr) in self._values:
            return self._values[handle_of(expr)]
        if isinstance(expr, relax.Tuple):
            return _tuple(map(self._term, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return _item(self._term(expr.tuple_value), int(expr.index))
        if isinstance(expr, relax.If):
            branches = map(self._term, (expr.cond, expr.true_branch, expr.false_branch))
            return ("if", *branches)
        if isinstance(expr, relax.Call):
            return self._call(expr)
        if isinstance(expr, relax.ShapeExpr):
            return ("shape",)
        return ("constant", self._number(expr))

    def _call(self, call: AnyValue) -> Term:
        args = tuple(map(self._term, call.args))
        if isinstance(call.op, self._framework.relax.GlobalVar):
            return self._call_function(name_of(call.op), args)
        op = str(getattr(call.op, "name", ""))
        if op in _OPERATORS:
            return (op, *args)
        if op != "relax.concat" or attributes_of(self._framework, call).get("axis") != 0:
            raise _OtherError
        if args[0][0] != "tuple":
            raise _OtherError
        return ("join", *args[0][1])

    def _call_function(self, name: str, args: Sequence[Term]) -> Term:
        """Return a call, or what a branch gives that is a function of its own."""
        function = self._functions.get(name)
        if not name.startswith(BRANCH) or function is None or name in self._inside:
            self.called.add(name)
            return ("call", name, tuple(args))
        self._inside.append(name)
        for param, value in zip(function.params, args, strict=False):
            self._values[handle_of(param)] = value
        found = self._term(function.body)
        self._inside.pop()
        return found

    def _number(self, expr: AnyValue) -> int:
        """Return a scalar of int64."""
        if not isinstance(expr, self._framework.Constant):
            raise _OtherError
        held = plain_value(self._framework, tensor_of(expr))
        data = held.numpy() if hasattr(held, "numpy") else None
        if data is None or data.shape or data.dtype.name != "int64":
            raise _OtherError
        return int(data)


def transpose_outside(
    ctx: ExportContext, body: Function, captures: Sequence[Value]
) -> tuple[Function, tuple[Value, ...]]:
    """Return a body whose dense layers take their weights as Relax multiplies by them.

    Relax has no layer that takes a weight transposed, so each turn would transpose it.

    Args:
        ctx: Where the loop is written.
        body: Its body.
        captures: Values of the last parameters of that.

    Returns:
        The body, and what it captures.
    """
    first = len(body.params) - len(captures)
    params, given = list(body.params), list(captures)
    layers: dict[Expr, Var] = {}
    for index, value in enumerate(captures, start=first):
        found = _layers_of(body, params[index])
        if not found:
            continue
        type_ = ctx.type(value)
        turned = TensorType(type_.shape[::-1], type_.dtype)
        given[index - first] = ctx.typed(ctx.emit("permute_dims", value), turned)
        own = body.params[index].checked_type
        shape = own.shape[::-1] if isinstance(own, TensorType) else turned.shape
        params[index] = Var(params[index].name_hint, TensorType(shape, type_.dtype))
        layers.update(dict.fromkeys(found, params[index]))
    if not layers:
        return body, tuple(captures)

    def multiply(node: Expr, new: Expr) -> Expr:
        weight = layers.get(node)
        if weight is None or not isinstance(new, Call):
            return new
        attributes = {key: new.attrs[key] for key in ("units", "out_dtype") if key in new.attrs}
        made = call("nn.matmul", new.args[0], weight, **attributes)
        made.span = new.span
        return made

    result = rewrite(body.body, multiply)
    made = Function(params, result, body.ret_type)
    made.type = FuncType([each.checked_type for each in params], result.checked_type)
    return made, tuple(given)


def _layers_of(body: Function, weight: Var) -> list[Call]:
    """Return the dense layers whose weight a parameter is; none where it is anything else too."""
    dense, found = get("nn.dense"), []
    for node in post_order(body.body):
        uses = sum(child is weight for child in children(node))
        if not uses:
            continue
        if not isinstance(node, Call) or node.op is not dense or uses > 1:
            return []
        if node.args[1] is not weight or getattr(node.args[0].type, "rank", -1) != 2:
            return []
        found.append(node)
    return found
