"""Private functions of a module, which loops are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any as AnyValue, Final

from serde.relax.export_context import Block, ExportContext, Symbols, Value
from serde.relax.values import BRANCH
from serde.relay.ir.types import TensorType

__all__ = ["PrivateFunction", "bind_results", "cast_shape", "outline"]

_DECLARED: Final = "serde.declared"
"""Attribute that keeps TVM from taking two functions without bodies for one."""


class PrivateFunction:
    """A function that only its module calls, whose parameters and results are tensors.

    Args:
        ctx: Where it is called.
        name: What it is called like.
        params: Relay types of its parameters, whose symbols are its own.

    Attributes:
        params: Its parameters.
        scope: What is bound in it.
    """

    def __init__(self, ctx: ExportContext, name: str, params: Sequence[TensorType]) -> None:
        self.scope = Block()
        self._ctx = ctx
        self._name = name
        self._symbols = Symbols(ctx.framework)
        self._reference: AnyValue = None
        self.params: list[Value] = []
        with self.inside():
            variable = ctx.framework.relax.Var
            self.params = [
                Value(variable(f"p{index}", ctx.relax_type(each, define=True)), each)
                for index, each in enumerate(params)
            ]
            self._symbols.add(self.scope, self.params)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Write into the function meanwhile."""
        ctx = self._ctx
        before, ctx.symbols = ctx.symbols, self._symbols
        # TVM forgets lengths that no parameter of the scope shows.
        ctx.builder.begin_scope([each.expr for each in self.params])
        try:
            with ctx.inside(self.scope):
                yield
        finally:
            ctx.builder.end_scope()
            ctx.symbols = before

    def declare(self, results: Sequence[AnyValue]) -> None:
        """Give the types of its results, which Relax has for them, so that it can call itself."""
        framework, builder = self._ctx.framework, self._ctx.builder
        variables = [each.expr for each in self.params]
        type_ = framework.TupleType(list(results)) if len(results) > 1 else results[0]
        made = framework.relax.Function.create_empty(variables, type_)
        made = made.with_attr(_DECLARED, builder.get_unique_name(self._name))
        self._reference = builder.add_func(made, self._name)

    def end(self, results: Sequence[Value]) -> None:
        """End the function with what it gives.

        Raises:
            Unsupported: TVM refuses it.
        """
        variables = [each.expr for each in self.params]
        with self.inside():
            made = self._ctx.function(variables, self.scope, results, {})
        if self._reference is None:
            self._reference = self._ctx.builder.add_func(made, self._name)
        else:
            self._ctx.builder.update_func(self._reference, made)

    def call(self, args: Sequence[Value], outputs: int) -> list[Value]:
        """Write a call where the context is, and return its results."""
        ctx = self._ctx
        made = ctx.framework.relax.Call(self._reference, [ctx.expr(each) for each in args])
        return bind_results(ctx, made, outputs)


def bind_results(ctx: ExportContext, expr: AnyValue, outputs: int) -> list[Value]:
    """Bind a call or a conditional, and the fields of its result where those are several."""
    return [ctx.bind(expr)] if outputs == 1 else list(ctx.bind_tuple(expr, outputs))


def outline(ctx: ExportContext, block: Block, results: Sequence[Value]) -> AnyValue:
    """Return what is bound in a branch as an expression that calls a function of its own.

    TVM plans the memory of a function as if all of it were run: what one branch allocates it
    gives to another, or to what follows. So no branch allocates anything itself.
    """
    framework, relax = ctx.framework, ctx.framework.relax
    body = ctx.sequence(block, results)
    if not any(_allocates(ctx, each.value) for each in block.bindings):
        return body
    free = list(relax.analysis.free_vars(body))
    args = list(free)
    made = ctx.function(free, block, results, {})
    lengths = list(relax.analysis.free_symbolic_vars(made))
    if lengths:
        free.append(relax.Var("lengths", framework.ShapeType(lengths)))
        args.append(relax.ShapeExpr(lengths))
        made = ctx.function(free, block, results, {})
    own = ctx.builder.add_func(relax.utils.copy_with_new_vars(made), BRANCH)
    inner = Block(block.parent)
    with ctx.inside(inner):
        called = ctx.bind(relax.Call(own, args))
    return ctx.sequence(inner, [called])


def _allocates(ctx: ExportContext, expr: AnyValue) -> bool:
    relax = ctx.framework.relax
    return isinstance(expr, relax.Call) and not isinstance(expr.op, relax.GlobalVar)


def cast_shape(ctx: ExportContext, x: Value, lengths: Sequence[AnyValue]) -> Value:
    """Return a tensor whose lengths TVM knows: those given, of which new variables take theirs."""
    framework = ctx.framework
    type_ = framework.TensorType(ctx.wide(lengths), framework.type_of(x.expr).dtype)
    variable = framework.relax.Var("rows", type_)
    ctx.scope.bindings.append(framework.relax.MatchCast(variable, x.expr, type_))
    return Value(variable)
