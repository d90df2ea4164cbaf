"""What partitioning makes of expressions, written out as text."""

import pytest
from support.pattern_texts import Rewrite, function, main, marks

import serde.relay as relay
from serde.relay.dataflow_pattern import (
    DFPattern,
    FunctionPattern,
    dominates,
    is_constant,
    is_expr,
    is_if,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from serde.relay.ir.expr import Function
from serde.relay.ir.visit import post_order

_ = wildcard
P, Q = wildcard(), wildcard()

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
