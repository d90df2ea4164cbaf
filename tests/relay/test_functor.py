"""Visitors, mutators and what is bound in the place of variables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay import transform
from serde.relay.ir.visit import post_order


def program() -> relay.Function:
    """Return a function that has a node of every kind but a name of the module."""
    x = relay.var("x", shape=(2, 3))
    c = relay.var("c", shape=(), dtype="bool")
    a = relay.var("a", shape=(2, 3))
    f, s = relay.var("f"), relay.var("s")
    choice = relay.If(c, f(x), relay.negative(x))
    pair = relay.Tuple([choice, relay.add(choice, relay.const(1.0))])
    inner = relay.Let(
        s, relay.TupleGetItem(pair, 1), relay.multiply(s, relay.TupleGetItem(pair, 0))
    )
    return relay.Function([x, c], relay.Let(f, relay.Function([a], relay.exp(a)), inner))


class Kinds(relay.ExprVisitor):
    """Counts the nodes of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def visit(self, expr):
        if expr not in self.memo_map:
            self.seen[type(expr).__name__.replace("OpDef", "Op")] += 1
        return super().visit(expr)


def test_a_visitor_meets_every_node_once():
    kinds = Kinds()
    kinds.visit(program())
    expected = {"Function": 2, "Let": 2, "Var": 5, "If": 1, "Tuple": 1, "TupleGetItem": 2}
    expected |= {"Constant": 1, "Call": 5, "Op": 4}
    assert dict(kinds.seen) == expected


def test_operands_come_behind_the_callee():
    order = []

    class Order(relay.ExprVisitor):
        def visit_op(self, op):
            order.append(op.name)

        def visit_var(self, var):
            order.append(var.name_hint)

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    Order().visit(relay.Function([x, y], relay.add(relay.exp(y), x)))
    assert order == ["x", "y", "add", "exp"]


@pytest.mark.parametrize(
    "kind", ["call", "constant", "function", "if", "let", "op", "tuple", "tuple_getitem", "var"]
)
def test_a_functor_without_a_case_says_which(kind):
    class Partial(relay.ExprVisitor):
        pass

    setattr(Partial, f"visit_{kind}", relay.ExprFunctor.visit_call)
    with pytest.raises(NotImplementedError, match=f"Partial has no visit_{kind}"):
        Partial().visit(program())


@pytest.mark.parametrize("base", [relay.ExprMutator, relay.MixedModeMutator])
def test_a_mutator_that_changes_nothing_returns_the_same_object(base):
    function = program()
    assert base().visit(function) is function


@pytest.mark.parametrize("base", [relay.ExprMutator, relay.MixedModeMutator])
def test_a_mutator_replaces_constants_and_keeps_sharing(base):
    class Twice(base):
        def visit_constant(self, const):
            return relay.const(const.data * 2)

    function = program()
    changed = Twice().visit(function)
    run = relay.create_executor(mod=relay.IRModule.from_expr(changed)).evaluate()
    data = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    for chosen in (True, False):
        value = np.exp(data) if chosen else -data
        result = run(data, np.array(chosen)).numpy()
        np.testing.assert_allclose(result, (value + 2) * value, rtol=1e-6)
    assert len(post_order(changed)) == len(post_order(function))


def test_a_mutator_replaces_operators():
    class Subtract(relay.ExprMutator):
        def visit_op(self, op):
            return relay.subtract(relay.var("a"), relay.var("b")).op if op.name == "add" else op

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    found = Subtract().visit(relay.Function([x, y], relay.exp(relay.add(x, y))))
    assert relay.structural_equal(found, relay.Function([x, y], relay.exp(relay.subtract(x, y))))


def test_a_mutator_replaces_the_names_of_functions():
    class Other(relay.ExprMutator):
        def visit_global_var(self, gvar):
            return relay.GlobalVar("other")

    x = relay.var("x", shape=(2,))
    found = Other().visit(relay.Function([x], relay.GlobalVar("one")(x)))
    assert found.body.op.name_hint == "other"


def test_rewrites_get_the_node_before_and_after():
    met = []

    class Rewriter(relay.MixedModeMutator):
        def rewrite_call(self, pre, post):
            met.append((pre.op.name, post is pre))
            return relay.tanh(*post.args) if pre.op.name == "exp" else post

        def rewrite_tuple(self, pre, post):
            return relay.Tuple(list(reversed(post.fields)))

        def rewrite_tuple_getitem(self, pre, post):
            return relay.TupleGetItem(post.tuple_value, 1 - pre.index)

    x = relay.var("x", shape=(2,))
    pair = relay.Tuple([relay.exp(x), relay.negative(x)])
    found = Rewriter().visit(relay.Function([x], relay.add(relay.TupleGetItem(pair, 0), x)))
    swapped = relay.Tuple([relay.negative(x), relay.tanh(x)])
    expected = relay.Function([x], relay.add(relay.TupleGetItem(swapped, 1), x))
    assert relay.structural_equal(found, expected)
    assert met == [("exp", True), ("negative", True), ("add", False)]


def chain(length: int, *, lets: bool) -> relay.Function:
    x = relay.var("x", shape=(2,))
    names = [relay.var(f"v{i}", shape=(2,)) for i in range(length)]
    if not lets:
        body = x
        for _ in names:
            body = relay.exp(body)
        return relay.Function([x], body)
    body = names[-1]
    for i in reversed(range(length)):
        body = relay.Let(names[i], relay.exp(names[i - 1] if i else x), body)
    return relay.Function([x], body)


@pytest.mark.wide
@pytest.mark.parametrize("lets", [False, True])
def test_depth_is_no_limit_for_a_mixed_mode_mutator(lets):
    class Tanh(relay.MixedModeMutator):
        def rewrite_call(self, pre, post):
            return relay.tanh(*post.args)

    found = Tanh().visit(chain(50_000, lets=lets))
    counts = Counter(node.op.name for node in post_order(found) if isinstance(node, relay.Call))
    assert counts == {"tanh": 50_000}


@pytest.mark.wide
def test_a_visitor_says_that_a_graph_is_too_deep():
    with pytest.raises(RelayError, match="deeper than Python's stack; derive from MixedMode"):
        Kinds().visit(chain(50_000, lets=False))


def test_only_expressions_are_visited():
    with pytest.raises(TypeError, match="expected an expression, found 3"):
        Kinds().visit(3)


def test_bind_gives_values_to_parameters():
    x, y, z = (relay.var(name, shape=(2,)) for name in "xyz")
    function = relay.Function([x, y], relay.add(x, y))
    one = relay.const([1.0, 2.0], "float32")
    assert relay.structural_equal(relay.bind(function, {x: one}), relay.Function([y], one + y))
    brought = relay.bind(function, {x: relay.exp(z)})
    assert relay.structural_equal(brought, relay.Function([y, z], relay.exp(z) + y))
    assert relay.bind(function, {z: one}) is function
    assert relay.bind(x + y, {y: z}).args == (x, z)


def test_bind_refuses_variables_that_have_a_value():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    body = relay.Let(y, relay.exp(x), relay.add(y, y))
    with pytest.raises(RelayError, match="%y is bound inside"):
        relay.bind(relay.Function([x], body), {y: x})


def test_mutators_keep_types():
    mod = transform.InferType()(relay.IRModule.from_expr(program()))

    class Fresh(relay.MixedModeMutator):
        def rewrite_call(self, pre, post):
            return relay.Call(post.op, post.args, post.attrs, span=post.span)

    found = transform.InferType()(relay.IRModule.from_expr(Fresh().visit(mod["main"])))
    assert found["main"].checked_type == mod["main"].checked_type
