"""What rewriting makes of expressions, written out as text."""

from collections.abc import Callable

import pytest
from support.pattern_texts import NodeMap, Rewrite, first_of, main, marks, subtracted, unchanged

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.dataflow_pattern import (
    DFPatternCallback,
    dominates,
    has_attr,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from serde.relay.ir.expr import Call, Expr, Let
from serde.relay.ir.visit import post_order

_ = wildcard
P, Q = wildcard(), wildcard()
ZERO = is_expr(relay.const(0)) | is_expr(relay.const(0.0))
ONE = is_expr(relay.const(1)) | is_expr(relay.const(1.0))


def simplifications() -> list[DFPatternCallback]:
    return [
        Rewrite(P + ZERO, first_of(P)),
        Rewrite(P - ZERO, first_of(P)),
        Rewrite(P * ONE, first_of(P)),
        Rewrite(P / ONE, first_of(P)),
    ]


REWRITES: dict[str, tuple[Callable[[], list[DFPatternCallback]], str, str]] = {
    "add": (lambda: [Rewrite(_() + _(), subtracted)], "add(%x, %y)", "subtract(%x, %y)"),
    "nothing": (lambda: [Rewrite(_() * _(), subtracted)], "add(%x, %y)", "add(%x, %y)"),
    "unchanged": (lambda: [Rewrite(_() + _(), unchanged)], "add(%x, %y)", "add(%x, %y)"),
    "twice": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "%0 = add(%x, %y); tanh(add(%0, %z))",
        "%0 = subtract(%x, %y); tanh(subtract(%0, %z))",
    ),
    "shared": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "%0 = add(%x, %y); multiply(%0, %0)",
        "%0 = subtract(%x, %y); multiply(%0, %0)",
    ),
    "in a function": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "let %f = fn (%a: Tensor[(2, 3), float32]) { add(%a, %a) }; %f(%x)",
        "let %f = fn (%a: Tensor[(2, 3), float32]) { subtract(%a, %a) }; %f(%x)",
    ),
    "in a let": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "let %a = add(%x, %y); let %b = add(%a, %z); %b",
        "let %a = subtract(%x, %y); let %b = subtract(%a, %z); %b",
    ),
    "in branches": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "if (True) { add(%x, %y) } else { add(%y, %x) }",
        "if (True) { subtract(%x, %y) } else { subtract(%y, %x) }",
    ),
    "in a tuple": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "(add(%x, %y), %z)",
        "(subtract(%x, %y), %z)",
    ),
    "in a field": (
        lambda: [Rewrite(_() + _(), subtracted)],
        "%0 = (add(%x, %y), %z); %0.1",
        "%0 = (subtract(%x, %y), %z); %0.1",
    ),
    "chain of rewrites": (
        lambda: [Rewrite(_() + _(), subtracted), Rewrite(P - Q, lambda a, b, n: n[P][0] * n[Q][0])],
        "tanh(add(%x, %y))",
        "tanh(multiply(%x, %y))",
    ),
    "later before earlier": (
        lambda: [Rewrite(P - Q, lambda a, b, n: n[P][0] * n[Q][0]), Rewrite(_() + _(), subtracted)],
        "tanh(add(%x, %y))",
        "tanh(multiply(%x, %y))",
    ),
    "to a fixpoint": (
        lambda: [Rewrite(is_op("tanh")(is_op("tanh")(P)), lambda a, b, n: relay.tanh(n[P][0]))],
        "tanh(tanh(tanh(tanh(%x))))",
        "tanh(%x)",
    ),
    "once": (
        lambda: [
            Rewrite(
                is_op("tanh")(is_op("tanh")(P)),
                lambda a, b, n: relay.tanh(n[P][0]),
                rewrite_once=True,
            )
        ],
        "tanh(tanh(tanh(tanh(%x))))",
        "tanh(tanh(%x))",
    ),
    "grows once": (
        lambda: [
            Rewrite(is_op("exp")(_()), lambda a, post, n: relay.tanh(post), rewrite_once=True)
        ],
        "exp(%x)",
        "tanh(exp(%x))",
    ),
    "once beside always": (
        lambda: [
            Rewrite(is_op("exp")(_()), lambda a, post, n: relay.tanh(post), rewrite_once=True),
            *simplifications(),
        ],
        "exp(add(add(%x, 0f), 0f))",
        "tanh(exp(%x))",
    ),
    "once, waits for a match": (
        lambda: [
            Rewrite(is_op("exp")(_()), lambda a, post, n: relay.tanh(post), rewrite_once=True),
            Rewrite(_() + _(), lambda a, post, n: relay.exp(post.args[0])),
        ],
        "add(%x, %y)",
        "tanh(exp(%x))",
    ),
    "with types": (
        lambda: [Rewrite(_().has_shape((2, 3)) + _(), subtracted, require_type=True)],
        "add(%x, %y)",
        "subtract(%x, %y)",
    ),
    "x + 0": (simplifications, "add(%x, 0f)", "%x"),
    "0 + x": (simplifications, "add(0f, %x)", "%x"),
    "x - 0": (simplifications, "subtract(%x, 0f)", "%x"),
    "0 - x": (simplifications, "subtract(0f, %x)", "subtract(0f, %x)"),
    "x * 1": (simplifications, "multiply(%x, 1f)", "%x"),
    "1 * x": (simplifications, "multiply(1f, %x)", "%x"),
    "x / 1": (simplifications, "divide(%x, 1f)", "%x"),
    "1 / x": (simplifications, "divide(1f, %x)", "divide(1f, %x)"),
    "x + 1": (simplifications, "add(%x, 1f)", "add(%x, 1f)"),
    "several": (simplifications, "add(divide(add(%x, 0f), 1f), multiply(%y, 1f))", "add(%x, %y)"),
    "inlined": (
        lambda: [Rewrite(has_attr({"Composite": "id"})(P), first_of(P))],
        '%0 = fn (%a: Tensor[(2, 3), float32], Composite="id") { %a }; abs(%0(%x))',
        "abs(%x)",
    ),
    "not inlined": (
        lambda: [Rewrite(has_attr({"Composite": "id"})(P), first_of(P))],
        '%0 = fn (%a: Tensor[(2, 3), float32], Composite="no") { %a }; abs(%0(%x))',
        '%0 = fn (%a: Tensor[(2, 3), float32], Composite="no") { %a }; abs(%0(%x))',
    ),
    "another operator": (
        lambda: [Rewrite(is_op("add"), lambda a, b, n: is_op("power").expr)],
        "tanh(add(%x, %y))",
        "tanh(power(%x, %y))",
    ),
    "let": (
        lambda: [Rewrite(is_let(is_var(), P, _()), first_of(P))],
        "let %a = add(%x, %y); %a",
        "add(%x, %y)",
    ),
    "if": (
        lambda: [Rewrite(is_if(is_constant(), P, _()), first_of(P))],
        "if (True) { %x } else { %y }",
        "%x",
    ),
    "field of a tuple": (
        lambda: [Rewrite(is_tuple_get_item(is_tuple((_(), P)), 1), first_of(P))],
        "%0 = (%x, tanh(%y)); %0.1",
        "tanh(%y)",
    ),
    "both of a conjunction": (
        lambda: [Rewrite(P & is_op("tanh")(Q), first_of(Q))],
        "exp(tanh(%x))",
        "exp(%x)",
    ),
    "inner node used outside": (
        lambda: [Rewrite(is_op("exp")(is_op("tanh")(P)), first_of(P))],
        "%0 = tanh(%x); add(exp(%0), %0)",
        "%0 = tanh(%x); add(exp(%0), %0)",
    ),
    "diamonds": (
        lambda: [
            Rewrite(
                dominates(is_op("tanh")(P), is_op("exp")(_()), _() + _()),
                lambda a, b, n: relay.tanh(n[P][0]),
            )
        ],
        "%0 = tanh(%x); %1 = add(exp(%0), exp(exp(%0))); %2 = tanh(%1); add(exp(%2), exp(%2))",
        "tanh(tanh(%x))",
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewrite(name: str) -> None:
    callbacks, before, after = REWRITES[name]
    relay.assert_structural_equal(rewrite(callbacks(), main(before)), main(after))


def test_what_no_callback_changes_is_the_same_object() -> None:
    given = main("add(%x, %y)")
    assert rewrite(Rewrite(_() * _(), subtracted), given) is given
    assert Rewrite(_() + _(), unchanged).rewrite(given) is given


def test_callbacks_that_undo_each_other_are_refused() -> None:
    back = Rewrite(P - Q, lambda _a, _b, nodes: nodes[P][0] + relay.tanh(nodes[Q][0]))
    with pytest.raises(RelayError, match="100 rounds"):
        rewrite([Rewrite(_() + _(), subtracted), back], main("add(%x, %y)"))


def test_a_callback_without_a_pattern_is_refused() -> None:
    with pytest.raises(RelayError, match="no pattern"):
        rewrite(DFPatternCallback(), main("%x"))


def test_a_callback_gets_the_match_before_and_after() -> None:
    seen = []

    def note(pre: Expr, post: Expr, nodes: NodeMap) -> Expr:
        seen.append((pre, post, nodes[P][0]))
        return relay.exp(nodes[P][0])

    given = main("tanh(tanh(%x))")
    rewrite(Rewrite(is_op("tanh")(P), note), given)
    inner, outer = seen
    assert inner == (given.body.args[0], given.body.args[0], given.params[0])
    assert outer[0] is given.body
    assert outer[1].args[0] is outer[2]
    assert outer[2].op.name == "exp"


def test_functions_called_by_name_are_typed_by_the_module() -> None:
    mod = relay.fromtext(
        '#[version = "0.0.5"]\n'
        "def @f(%a: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { tanh(%a) }\n"
        "def @main(%x: Tensor[(2, 3), float32]) { exp(@f(%x)) }"
    )
    pattern = is_op("exp")(P.has_shape((2, 3)))
    found = rewrite(Rewrite(pattern, first_of(P), require_type=True), mod["main"], mod)
    assert found.body.op.name_hint == "f"


@pytest.mark.parametrize(("once", "left"), [(True, 2), (False, 0)])
def test_fields_are_removed_until_one_is_left(once: bool, left: int) -> None:
    def shorter(_pre: Expr, post: Expr, _nodes: NodeMap) -> Expr:
        fields = post.args[0].fields[:-1]
        return relay.concatenate(relay.Tuple(fields), axis=0) if fields else post.args[0].fields[0]

    x, y, z = (relay.var(name) for name in "xyz")
    given = relay.concatenate(relay.Tuple([x, y, z]), axis=0)
    found = rewrite(Rewrite(is_op("concatenate")(None), shorter, rewrite_once=once), given)
    expected = relay.concatenate(relay.Tuple([x, y, z][:left]), axis=0) if left else x
    relay.assert_structural_equal(found, expected)


@pytest.mark.slow
def test_a_hundred_thousand_nodes() -> None:
    x = relay.var("x", shape=(2, 3))
    deep: Expr = x
    for _index in range(50_000):
        deep = relay.tanh(deep + relay.const(0.0))
    assert is_op("tanh")(_() + is_constant()).match(deep)
    found = rewrite(Rewrite(P + ZERO, first_of(P)), deep)
    assert sum(isinstance(node, Call) for node in post_order(found)) == 50_000
    parts = is_op("tanh")(_() + _()).partition(deep)
    assert len(marks(parts)) == 50_000


@pytest.mark.slow
def test_a_hundred_thousand_lets() -> None:
    x = relay.var("x", shape=(2, 3))
    names = [relay.var(f"v{index}", shape=(2, 3)) for index in range(100_000)]
    body: Expr = names[-1]
    for before, name in zip(reversed([x, *names[:-1]]), reversed(names), strict=True):
        body = Let(name, relay.tanh(before), body)
    found = rewrite(Rewrite(is_op("tanh")(P), lambda _a, _b, n: relay.exp(n[P][0])), body)
    assert not any(isinstance(n, Call) and n.op.name == "tanh" for n in post_order(found))
