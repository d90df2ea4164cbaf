"""What a target takes of operators, as data: legality, refusals and registration."""

from __future__ import annotations

import math
from typing import Any

import pytest

import serde.relay as relay
from serde.errors import RelayError, Unsupported
from serde.relay.ir.expr import Call, Expr
from serde.relay.transform import Decompose
from serde.walk.pairs import one_of, writes
from serde.walk.table import ConverterTable
from serde.walk.takes import (
    CONSTANT,
    FLOATS,
    HELD,
    RESULT,
    SIGNED,
    Takes,
    all_are,
    at,
    between,
    dtypes,
    like,
    ranks,
)


def x(dtype: str = "float32", shape: tuple[int, ...] = (2, 3, 4, 5)) -> Expr:
    return relay.var("x", shape=shape, dtype=dtype)


def pool(padding: int = 0, dilation: int = 1) -> Call:
    return relay.nn.max_pool2d(x(), (2, 2), padding=padding, dilation=dilation)


@pytest.mark.parametrize(
    ("node", "facts", "fault"),
    [
        (relay.abs(x()), {"data": FLOATS}, None),
        (relay.abs(x("int8")), {"data": FLOATS}, "data: takes floats; found int8"),
        (relay.abs(x("uint8")), {"data": SIGNED}, "data: takes signed numbers; found uint8"),
        (
            relay.abs(x("float64")),
            {"data": dtypes("float16", "float32")},
            "data: takes float16 and float32; found float64",
        ),
        (relay.abs(x()), {"data": (FLOATS, ranks(3, 4))}, None),
        (
            relay.abs(x(shape=(2,))),
            {"data": (FLOATS, ranks(3, 4))},
            "data: takes rank 3 to 4; found rank 1",
        ),
        (
            relay.abs(x(shape=())),
            {"data": ranks(1, math.inf)},
            "data: takes rank 1 or more; found rank 0",
        ),
        (relay.abs(x()), {RESULT: dtypes("int8")}, "result: takes int8; found float32"),
        (relay.serde.elu(x("float64"), alpha=0.5), {"alpha": HELD}, None),
        (
            relay.serde.elu(x("float64"), alpha=0.1),
            {"alpha": HELD},
            "alpha: takes a number that float32 holds, of float64; found 0.1",
        ),
        (
            relay.serde.elu(x(), alpha=3.0),
            {"alpha": between(0, 1)},
            "alpha: takes 0 to 1; found 3.0",
        ),
        (pool(), {"dilation": all_are(1), "padding": between(0, math.inf)}, None),
        (pool(dilation=2), {"dilation": all_are(1)}, "dilation: takes all 1; found (2, 2)"),
        (relay.nn.lrn(x(), 3, axis=-3), {"axis": at(1)}, None),
        (relay.nn.lrn(x(), 3, axis=2), {"axis": at(1)}, "axis: takes 1; found 2"),
        (
            relay.serde.gelu(x(), approximate="tanh"),
            {"approximate": one_of("none", "erf")},
            "approximate: takes 'none' or 'erf'; found 'tanh'",
        ),
        (relay.nn.dense(x(shape=(2, 3)), x(shape=(4, 3))), {"out_dtype": like("data")}, None),
        (
            relay.nn.dense(x("int8", (2, 3)), x("int8", (4, 3)), out_dtype="int32"),
            {"out_dtype": like("data")},
            "out_dtype: takes the dtype of data; found int32",
        ),
        (
            relay.trilu(x(shape=(2, 3)), relay.var("k", shape=(), dtype="int32"), True),
            {"k": CONSTANT},
            "k: takes a constant; found TensorType[(), int32]",
        ),
    ],
)  # fmt: skip
def test_facts(node: Call, facts: dict[str, Any], fault: str | None) -> None:
    taken = Takes(**facts)
    assert taken.holds(node) is (fault is None)
    found = taken.fault(node)
    assert found == (fault or "") or "a constant" in found


def test_none_stands_for_an_operand_that_is_left_out() -> None:
    resize = relay.serde.resize(x(), None, None, None, size=(2, 3, 4, 5))
    assert Takes(roi=None).holds(resize)
    assert not Takes(data=None).holds(resize)


def test_facts_print() -> None:
    taken = Takes(data=(FLOATS, ranks(4)), axis=at(-1), mode=one_of("a", "b"), mask=None)
    assert str(taken) == "data: floats, rank 4; axis: -1; mode: 'a' or 'b'; mask: None"


def test_a_call_that_is_not_taken_is_made_of_others() -> None:
    table = ConverterTable("toy")
    table.pairs(writes("Relu", "nn.relu", takes=Takes(data=FLOATS)), writes("Max", "maximum"))
    passed = Decompose(lambda node: table.can_export(node, 1), table.expansion)
    for dtype, name in (("float32", "nn.relu"), ("int8", "maximum")):
        mod = relay.IRModule.from_expr(relay.Function([v := x(dtype)], relay.nn.relu(v)))
        body: Any = passed(relay.transform.InferType()(mod))["main"].body
        assert body.op.name == name


def test_what_nothing_makes_legal_is_refused_with_what_is_taken() -> None:
    table = ConverterTable("toy")
    table.pairs(writes("Abs", "abs", takes=Takes(data=dtypes("float16", "float32"))))
    with pytest.raises(Unsupported, match="data: takes float16 and float32; found float64"):
        table.bind_export(relay.abs(x("float64")), 1)


def test_an_attribute_that_nothing_names_holds_its_default() -> None:
    table = ConverterTable("toy")

    @table.exports("serde.elu")
    def export_elu(ctx: Any, data: Any) -> Any: ...

    assert table.can_export(relay.serde.elu(x(), alpha=1.0), 1)
    assert not table.can_export(relay.serde.elu(x(), alpha=0.5), 1)


def test_registration_refuses_names_that_the_operator_has_not() -> None:
    table = ConverterTable("toy")
    with pytest.raises(RelayError, match=r"serde\.elu has no operand or attribute beta"):

        @table.exports("serde.elu", takes=Takes(beta=HELD))
        def export_elu(ctx: Any, data: Any, *, alpha: float) -> Any: ...

    with pytest.raises(TypeError, match="float7"):
        dtypes("float7")
