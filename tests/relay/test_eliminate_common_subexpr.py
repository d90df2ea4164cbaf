"""EliminateCommonSubexpr: which calls become one, in text."""

from __future__ import annotations

import pytest
from support.pass_texts import check_bodies, parse, tensor

import serde.relay as relay
from serde.relay.ir.expr import Call, Expr, Function
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import post_order
from serde.relay.transform import EliminateCommonSubexpr

X = f"%x: {tensor(2, 3)}, %y: {tensor(2, 3)}"
EACH = EliminateCommonSubexpr()


@pytest.mark.parametrize(
    "call",
    [
        "exp(%x)", "add(%x, %y)", "add(%x, 1f)", "nn.relu(%x)", "sum(%x, axis=[1])",
        'cast(%x, dtype="int32")', "concatenate((%x, %y))", "concatenate((%x, 2f * %y))",
        "transpose(%x, axes=[1, 0])", "clip(%x, a_min=0f, a_max=1f)", "where(less(%x, %y), %x, %y)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("rest", ["({}, {})", "add({}, {})", "multiply(negative({}), {})"])
def test_equal_calls_are_one(call: str, rest: str) -> None:
    before, after = rest.format(call, call), f"%0 = {call};\n{rest.format('%0', '%0')}"
    if "2f * %y" in call:
        shared = "%0 = multiply(2f, %y);\n%1 = (%x, %0);\n%2 = concatenate(%1);\n"
        after = shared + rest.format("%2", "%2")
    check_bodies(EACH, X, before, after)


@pytest.mark.parametrize(
    "body",
    [
        "(exp(%x), exp(%y))",
        "(add(%x, %y), add(%y, %x))",
        "(add(%x, 1f), add(%x, 2f))",
        "(sum(%x, axis=[0]), sum(%x, axis=[1]))",
        "(clip(%x, a_min=0f, a_max=1f), clip(%x, a_min=0f, a_max=2f))",
        '(ones(shape=[2, 3], dtype="float32"), ones(shape=[2, 3], dtype="float32"))',
        "(concatenate((%x, %y)), concatenate((%y, %x)))",
        "((%x, %y), (%x, %y))",
        "%0 = fn (%a: float32) { exp(%a) };\n(%0(1f), %0(1f))",
    ],
)
def test_others_are_not(body: str) -> None:
    check_bodies(EACH, X, body, body)


def test_dropouts_are_two() -> None:
    body = "%0 = nn.dropout(%x);\n%1 = nn.dropout(%x);\n%2 = %0.0;\n%3 = %1.0;\n(%2, %3)"
    check_bodies(EACH, X, body, body, numbers=False)


def test_fields_of_one_tuple_are_one() -> None:
    before = (
        "%0 = split(%x, indices_or_sections=3, axis=1);\n%1 = %0.1;\n%2 = %0.1;\n%3 = %0.2;\n"
        "(exp(%1), exp(%2), exp(%3))"
    )
    after = (
        "%0 = split(%x, indices_or_sections=3, axis=1);\n%1 = %0.1;\n%2 = exp(%1);\n%3 = %0.2;\n"
        "(%2, %2, exp(%3))"
    )
    check_bodies(EACH, X, before, after)


def test_chains_are_merged_upwards() -> None:
    chain = "tanh(add(exp({0}), 1f))"
    before = f"subtract({chain.format('%x')}, multiply({chain.format('%x')}, 2f))"
    after = f"%0 = {chain.format('%x')};\nsubtract(%0, multiply(%0, 2f))"
    check_bodies(EACH, X, before, after)


def _skips(*names: str):
    def fskip(expr: Expr) -> bool:
        return isinstance(expr, Call) and isinstance(expr.op, OpDef) and expr.op.name in names

    return fskip


@pytest.mark.parametrize(
    ("skipped", "after"),
    [
        ([], "%0 = exp(%x);\n%1 = add(%0, 1f);\n(%1, %1)"),
        (["add"], "%0 = exp(%x);\n(add(%0, 1f), add(%0, 1f))"),
        (["exp"], "(add(exp(%x), 1f), add(exp(%x), 1f))"),
        (["exp", "add"], "(add(exp(%x), 1f), add(exp(%x), 1f))"),
    ],
)
def test_what_is_skipped_stays(skipped: list[str], after: str) -> None:
    each = EliminateCommonSubexpr(_skips(*skipped))
    check_bodies(each, X, "(add(exp(%x), 1f), add(exp(%x), 1f))", after)


@pytest.mark.parametrize("keyword", [True, False])
def test_fields_are_skipped_too(keyword: bool) -> None:
    def fskip(expr: Expr) -> bool:
        return isinstance(expr, relay.TupleGetItem)

    each = EliminateCommonSubexpr(fskip=fskip) if keyword else EliminateCommonSubexpr(fskip)
    mod = parse(f"def @main({X}) {{ %0 = (%x, %y); %1 = %0.0; %2 = %0.0; (exp(%1), exp(%2)) }}")
    assert each(mod)["main"].body.fields[0] is not each(mod)["main"].body.fields[1]


@pytest.mark.wide
def test_many_equal_calls() -> None:
    x = relay.var("x", shape=(2,))
    ends = [relay.add(relay.exp(x), relay.const(1.0)) for _ in range(5_000)]
    mod = relay.IRModule.from_expr(Function([x], relay.Tuple(ends)))
    after = EACH(mod)["main"]
    assert len([node for node in post_order(after) if isinstance(node, Call)]) == 2
