"""What rewriting and partitioning make of expressions, written out as text."""

from collections.abc import Callable

import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    FunctionPattern,
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
from serde.relay.ir.expr import Call, Expr, Function, Let
from serde.relay.ir.visit import post_order

_ = wildcard
NodeMap = dict[DFPattern, list[Expr]]
Build = Callable[[Expr, Expr, NodeMap], Expr]

HEAD = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], "
HEAD += "%z: Tensor[(2, 3), float32]) "


def main(text: str) -> Function:
    return relay.fromtext(f'#[version = "0.0.5"]\n{HEAD}{{ {text} }}')["main"]


def function(params: str, body: str, name: str, result: str = "Tensor[(2, 3), float32]") -> str:
    """The text of a function that partitioning makes, of parameters of one type."""
    typed = ", ".join(f"%{param}: Tensor[(2, 3), float32]" for param in params.split())
    return f'fn ({typed}, PartitionedFromPattern="{name}") -> {result} {{ {body} }}'


class Rewrite(DFPatternCallback):
    """Builds what stands for a match with a function."""

    def __init__(self, pattern: DFPattern, build: Build, **named: bool) -> None:
        super().__init__(**named)
        self.pattern = pattern
        self.build = build

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        return self.build(pre, post, node_map)


def subtracted(_pre: Expr, post: Expr, _nodes: NodeMap) -> Expr:
    assert isinstance(post, Call)
    return post.args[0] - post.args[1]


def unchanged(_pre: Expr, post: Expr, _nodes: NodeMap) -> Expr:
    return post


def first_of(pattern: DFPattern) -> Build:
    return lambda _pre, _post, nodes: nodes[pattern][0]


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


TANH_OF_ADD = is_op("tanh")(_() + _())
CONCATENATE = is_op("concatenate")(is_tuple(None))
PARTITIONS: dict[str, tuple[DFPattern, str, str]] = {
    "one": (
        TANH_OF_ADD,
        "tanh(add(%x, %y))",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')}; %0(%x, %y)",
    ),
    "none": (TANH_OF_ADD, "tanh(%x)", "tanh(%x)"),
    "below": (
        TANH_OF_ADD,
        "exp(tanh(add(%x, %y)))",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')}; exp(%0(%x, %y))",
    ),
    "in a row": (
        TANH_OF_ADD,
        "tanh(add(tanh(add(%x, %y)), %z))",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')};"
        f"%1 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')};"
        "%1(%0(%x, %y), %z)",
    ),
    "one input twice": (
        TANH_OF_ADD,
        "tanh(add(%x, %x))",
        f"%0 = {function('a', 'tanh(add(%a, %a))', 'add_tanh_')}; %0(%x)",
    ),
    "used inside": (
        TANH_OF_ADD,
        "%0 = add(%x, %y); multiply(tanh(%0), %0)",
        "%0 = add(%x, %y); multiply(tanh(%0), %0)",
    ),
    "used by another match": (
        TANH_OF_ADD,
        "%0 = add(%x, %y); multiply(tanh(%0), tanh(%0))",
        "%0 = add(%x, %y); multiply(tanh(%0), tanh(%0))",
    ),
    "used by what comes back": (
        (_() + _()) * _(),
        "%0 = add(%x, %y); multiply(%0, sigmoid(%0))",
        f"%1 = {function('a b c', 'multiply(add(%a, %b), %c)', 'add_multiply_')};"
        "%0 = add(%x, %y); %1(%x, %y, sigmoid(%0))",
    ),
    "order of the pattern": (
        _() * (_() - _()),
        "multiply(subtract(%x, %y), %z)",
        f"%0 = {function('a b c', 'multiply(subtract(%b, %c), %a)', 'subtract_multiply_')};"
        "%0(%z, %x, %y)",
    ),
    "parallel branches": (
        is_op("add")(_() * _(), _() + _()),
        "%0 = tanh(%x); add(multiply(%y, %0), add(%0, %z))",
        f"%1 = {function('l m r', 'add(multiply(%l, %m), add(%m, %r))', 'multiply_add_add_')};"
        "%1(%y, tanh(%x), %z)",
    ),
    "tuple of one": (
        CONCATENATE,
        "%0 = (%x,); concatenate(%0)",
        "%1 = fn (%a: Tensor[(2, 3), float32], "
        'PartitionedFromPattern="Tuple_concatenate_") '
        "{ %0 = (%a,); concatenate(%0) }; %1(%x)",
    ),
    "tuple of two": (
        CONCATENATE,
        "%0 = (%x, %y); concatenate(%0)",
        "%1 = fn (%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32], "
        'PartitionedFromPattern="Tuple_concatenate_") '
        "{ %0 = (%a, %b); concatenate(%0) }; %1(%x, %y)",
    ),
    "any arguments": (
        is_op("maximum")(None),
        "maximum(%x, %y)",
        f"%0 = {function('a b', 'maximum(%a, %b)', 'maximum_')}; %0(%x, %y)",
    ),
    "constant for a wildcard": (
        TANH_OF_ADD,
        "tanh(add(%x, 2f))",
        "%0 = fn (%a: Tensor[(2, 3), float32], %b: float32, "
        'PartitionedFromPattern="add_tanh_") { tanh(add(%a, %b)) };'
        "%0(%x, 2f)",
    ),
    "constant for a constant": (
        is_op("tanh")(_() + is_constant()),
        "tanh(add(%x, 2f))",
        f"%0 = {function('a', 'tanh(add(%a, 2f))', 'add_tanh_')}; %0(%x)",
    ),
    "constant for its expression": (
        is_op("tanh")(_() + is_expr(relay.const(2.0))),
        "tanh(add(%x, 2f))",
        f"%0 = {function('a', 'tanh(add(%a, 2f))', 'add_tanh_')}; %0(%x)",
    ),
    "constant for a var": (
        is_op("tanh")(_() + is_var()),
        "tanh(add(multiply(%x, %y), 2f))",
        "tanh(add(multiply(%x, %y), 2f))",
    ),
    "constant or var, constant": (
        is_op("tanh")(_() - (is_constant() | is_var())),
        "tanh(subtract(%x, 2f))",
        f"%0 = {function('a', 'tanh(subtract(%a, 2f))', 'subtract_tanh_')};%0(%x)",
    ),
    "constant or var, var": (
        is_op("tanh")(_() - (is_constant() | is_var())),
        "tanh(subtract(%x, %y))",
        f"%0 = {function('a b', 'tanh(subtract(%a, %b))', 'subtract_tanh_')};%0(%x, %y)",
    ),
    "var or constant, constant": (
        is_op("tanh")(_() - (is_var() | is_constant())),
        "tanh(subtract(%x, 2f))",
        f"%0 = {function('a', 'tanh(subtract(%a, 2f))', 'subtract_tanh_')};%0(%x)",
    ),
    "option taken": (
        (_() + _()).optional(is_op("tanh")),
        "tanh(add(%x, %y))",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')}; %0(%x, %y)",
    ),
    "option not taken": (
        (_() + _()).optional(is_op("tanh")),
        "exp(add(%x, %y))",
        f"%0 = {function('a b', 'add(%a, %b)', 'add_')}; exp(%0(%x, %y))",
    ),
    "diamond": (
        dominates(_() * _(), is_op("exp")(_()), _() + _()),
        "%0 = multiply(%x, %y); add(exp(exp(%0)), exp(%0))",
        "%1 = "
        + function(
            "a b", "%0 = multiply(%a, %b); add(exp(exp(%0)), exp(%0))", "multiply_exp_exp_exp_add_"
        )
        + "; %1(%x, %y)",
    ),
    "conjunction": (
        TANH_OF_ADD & _().has_shape((2, 3)),
        "tanh(add(%x, %y))",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')}; %0(%x, %y)",
    ),
    "if": (
        is_if(_(), _(), _()),
        "if (True) { %x } else { %y }",
        "%0 = fn (%c: bool, %a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32], "
        'PartitionedFromPattern="If_") { if (%c) { %a } else { %b } }; %0(True, %x, %y)',
    ),
    "in branches": (
        TANH_OF_ADD,
        "if (True) { tanh(add(%x, %y)) } else { %z }",
        f"if (True) {{ %0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')}; "
        "%0(%x, %y) } else { %z }",
    ),
    "in a let": (
        TANH_OF_ADD,
        "let %v = tanh(add(%x, %y)); exp(%v)",
        f"%0 = {function('a b', 'tanh(add(%a, %b))', 'add_tanh_')};let %v = %0(%x, %y); exp(%v)",
    ),
    "not across lets": (
        TANH_OF_ADD,
        "let %v = add(%x, %y); tanh(%v)",
        "let %v = add(%x, %y); tanh(%v)",
    ),
    "quotient in another order": (
        _() * _() / _(),
        "multiply(%x, divide(%y, %z))",
        f"%0 = {function('a b c', 'multiply(%b, divide(%a, %c))', 'divide_multiply_')};"
        "%0(%y, %x, %z)",
    ),
    "same value asked for": (
        is_op("add")(P, is_op("exp")(P)),
        "add(exp(%x), %x)",
        f"%0 = {function('a', 'add(exp(%a), %a)', 'exp_add_')}; %0(%x)",
    ),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PARTITIONS)
def test_partition(name: str) -> None:
    pattern, before, after = PARTITIONS[name]
    relay.assert_structural_equal(pattern.partition(main(before)), main(after))


@pytest.mark.parametrize("name", PARTITIONS)
def test_what_was_partitioned_is_not_partitioned_again(name: str) -> None:
    pattern, before, _after = PARTITIONS[name]
    once = pattern.partition(main(before))
    assert pattern.partition(once) is once


@pytest.mark.parametrize("name", PARTITIONS)
def test_partition_verifies(name: str) -> None:
    pattern, before, _after = PARTITIONS[name]
    mod = relay.IRModule.from_expr(pattern.partition(main(before)))
    relay.verify(relay.transform.InferType()(mod))


def marks(expr: Expr) -> list[dict[str, object]]:
    return [node.attrs for node in post_order(expr) if isinstance(node, Function) and node.attrs]


def test_attributes_are_added_to_functions() -> None:
    found = TANH_OF_ADD.partition(main("tanh(add(%x, %y))"), {"Composite": "sum"})
    assert marks(found) == [{"PartitionedFromPattern": "add_tanh_", "Composite": "sum"}]


def test_parameters_have_tvms_names() -> None:
    found = TANH_OF_ADD.partition(main("multiply(tanh(add(%x, %y)), tanh(add(%y, %z)))"))
    functions = [node for node in post_order(found.body) if isinstance(node, Function)]
    names = {tuple(param.name_hint for param in each.params) for each in functions}
    assert names == {("FunctionVar_0_0", "FunctionVar_0_1"), ("FunctionVar_1_0", "FunctionVar_1_1")}


@pytest.mark.parametrize("wanted", [True, False])
def test_a_check_decides(wanted: bool) -> None:
    given = main("tanh(add(%x, %y))")
    found = TANH_OF_ADD.partition(given, check=lambda pre: pre is given.body and wanted)
    assert (found is not given) is wanted


def test_two_patterns_one_after_another() -> None:
    given = main("add(tanh(add(%x, %y)), %z)")
    first = TANH_OF_ADD.partition(given, {"Composite": "a"})
    found = (_() + _()).partition(first, {"Composite": "b"})
    names = {mark["Composite"]: mark["PartitionedFromPattern"] for mark in marks(found)}
    assert names == {"a": "add_tanh_", "b": "add_"}


def test_a_called_function_is_moved_whole() -> None:
    x, y, b = (relay.var(name, shape=(2, 3)) for name in "xyb")
    p, q = (relay.var(name, shape=(2, 3)) for name in "pq")
    inner = Function([p, q], p * q)
    pattern = FunctionPattern([P, Q], P * Q)(_(), _()) + _()
    found = pattern.partition(inner(x, y) + b)
    assert found.op.attrs["PartitionedFromPattern"] == "multiply_FunctionCall_add_"
    assert found.args == (x, y, b)
    assert found.op.body.args[0].op is inner


@pytest.mark.parametrize("body", [_() * _(), _()], ids=["body", "any body"])
def test_a_called_function_of_any_parameters_is_moved_whole(body: DFPattern) -> None:
    x, b, p = (relay.var(name, shape=(2, 3)) for name in "xbp")
    found = (FunctionPattern(None, body)(None) + _()).partition(Function([p], p * p)(x) + b)
    assert found.op.attrs["PartitionedFromPattern"] == "multiply_FunctionCall_add_"
    assert found.args == (x, b)


def test_a_pattern_of_a_function_moves_nothing() -> None:
    given = main("%x")
    with pytest.warns(UserWarning, match="not called"):
        assert FunctionPattern(None, _()).partition(given) is given


def test_fields_of_one_tuple_overlap() -> None:
    x, w = relay.var("x", shape=(1, 3, 4, 4)), [relay.var(name, shape=(3,)) for name in "gbmv"]
    norm = relay.nn.batch_norm(x, *w)
    given = norm[0] + norm[0]
    pattern = is_tuple_get_item(is_op("nn.batch_norm")(_(), _(), _(), _(), _()), 0)
    assert pattern.partition(given) is given


@pytest.mark.parametrize("pattern", [_(), is_var(), is_op("add"), is_constant()])
def test_a_leaf_moves_nothing(pattern: DFPattern) -> None:
    given = main("add(%x, 2f)")
    assert pattern.partition(given.body) is given.body


@pytest.mark.parametrize("way", ["argument", "left", "right"])
def test_a_pattern_that_recurs_covers_the_whole_chain(way: str) -> None:
    below, end = wildcard(), _() + _()
    if way == "argument":
        chain = is_op("tanh")(below)
        below.redirect_to(chain | end)
    else:
        chain = is_op("tanh")(below | end if way == "left" else end | below)
        below.redirect_to(chain)
    once = Rewrite(chain, lambda _pre, post, _nodes: relay.exp(post), rewrite_once=True)
    found = rewrite(once, main("tanh(tanh(tanh(add(%x, %y))))"))
    relay.assert_structural_equal(found, main("exp(tanh(tanh(tanh(add(%x, %y)))))"))


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
    parts = TANH_OF_ADD.partition(deep)
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
