"""Branches and loops as graphs of a TFLite file: LiteRT judges them, and what is read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.differential_judges import JUDGES, evaluate

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import Any as AnyDim, symbol
from serde.relay.ir.expr import Expr, If, Tuple, TupleGetItem, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
YES, NO = np.array(True), np.array(False)

BRANCHES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "what both take": (
        "%c: bool, %x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]",
        [(YES, X, X[1]), (NO, X, X[1])],
    ),
    "a branch in a branch": (
        "%c: bool, %x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]",
        [(c, X, w) for c in (YES, NO) for w in X],
    ),
    "two results of open length": (
        "%c: bool, %x: Tensor[(n, 3), float32]", [(YES, X), (NO, X), (NO, X[:1])]
    ),
    "an input as it is": ("%c: bool, %x: Tensor[(n, 3), float32]", [(YES, X), (NO, X)]),
    "a constant": ("%c: bool, %x: Tensor[(3), float32]", [(YES, X[0]), (NO, X[1])]),
    "codes with a scale": ("%c: bool, %x: Tensor[(2, 3), float32]", [(YES, X), (NO, X)]),
}  # fmt: skip

BODIES = {
    "what both take": "let %y = exp(%x); if (%c) { add(%y, %w) } else { multiply(%y, %x) }",
    "a branch in a branch": (
        "let %y = exp(%x); "
        "if (%c) { if (greater(sum(%w), 1.5f)) { add(%y, %w) } else { %x } } else { %y }"
    ),
    "two results of open length": (
        "if (%c) { (reshape(%x, newshape=[-1]), %x) } "
        "else { (reshape(exp(%x), newshape=[-1]), exp(%x)) }"
    ),
    "an input as it is": "if (%c) { %x } else { negative(%x) }",
    "a constant": 'if (%c) { %x } else { full(2.5f, shape=[3], dtype="float32") }',
    "codes with a scale": (
        'let %q = qnn.quantize(%x, 0.01f, 3, out_dtype="int8"); '
        'let %d = qnn.dequantize(%q, 0.01f, 3, out_dtype="float32"); '
        'if (%c) { qnn.dequantize(%q, 0.01f, 3, out_dtype="float32") } else { exp(%d) }'
    ),
}


def model_of(parameters: str, body: str) -> RelayModel:
    text = f'#[version = "0.0.5"]\ndef @main({parameters}) {{ {body} }}'
    mod = relay.transform.InferType()(relay.fromtext(text))
    names = tuple(each.name_hint for each in mod["main"].params)
    return RelayModel(mod, {}, ModelMeta(names, ("y", "z")[: body.count("newshape") or 1]))


def check(model: RelayModel, feeds: list[tuple[Any, ...]], folder: Path) -> None:
    judge = JUDGES["tflite"]
    path = judge.write(model, folder)
    again = judge.read(path, model)
    for values in feeds:
        named = dict(zip(model.meta.inputs, values, strict=True))
        for found, read, expected in zip(
            judge.run(path, model, list(values)), evaluate(again, named), evaluate(model, named),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            np.testing.assert_allclose(read, expected, rtol=1e-5)


@pytest.mark.wide
@pytest.mark.parametrize("case", BRANCHES)
def test_branches(case: str, tmp_path: Path) -> None:
    parameters, feeds = BRANCHES[case]
    check(model_of(parameters, BODIES[case]), feeds, tmp_path)


def scalar(dtype: str = "int64", name: str = "i") -> Var:
    return relay.var(name, shape=(), dtype=dtype)


def model_with(variables: list[Var], body: Expr) -> RelayModel:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(variables, body)))
    fields = getattr(body.type, "fields", (None,))
    names = tuple(each.name_hint for each in variables)
    return RelayModel(mod, {}, ModelMeta(names, tuple(f"y{i}" for i in range(len(fields)))))


def test_a_loop_that_grows_what_it_carries_and_stacks(tmp_path: Path) -> None:
    """How often it runs, an input tells; one state stays, and one of open length grows."""
    x, n = relay.var("x", shape=(2, 3)), scalar(name="n")
    number, kept, extra = scalar(), relay.var("kept", shape=(2, 3)), relay.var("extra", shape=(3,))
    long = relay.var("long", shape=(AnyDim(), 3))
    later = relay.concatenate([long, relay.expand_dims(extra, 0)], 0)
    row = relay.multiply(extra, relay.cast(number, "float32"))
    body = relay.Function([number, kept, long, extra], Tuple([relay.const(True), kept, later, row]))
    loop = call("serde.loop", n, None, [x, x], [relay.sum(relay.exp(x), axis=[0])], body=body)
    model = model_with([x, n], Tuple([TupleGetItem(loop, i) for i in range(3)]))
    check(model, [(X, np.array(i)) for i in (0, 1, 4)], tmp_path)


def test_a_loop_in_a_branch_of_a_loop(tmp_path: Path) -> None:
    """The inner one takes a weight, the number of the outer one, and a length that is open."""
    length = symbol("n")
    x, weight = relay.var("x", shape=(length, 3)), relay.const(X)
    number, state = scalar(), relay.var("s", shape=(length, 3))
    inner_number, inner, around = scalar(), relay.var("t", shape=(length, 3)), scalar(name="o")
    ones = relay.ones_like(inner)
    step = relay.add(relay.add(inner, ones), relay.cast(around, "float32"))
    step = relay.add(step, relay.sum(weight, axis=[0]))
    go = relay.less(relay.sum(step), relay.const(1e3))
    short = relay.Function([inner_number, inner, around], Tuple([go, step]))
    nested = call("serde.loop", None, relay.const(True), [state], [number], body=short)
    even = relay.equal(relay.floor_mod(number, relay.const(2, "int64")), relay.const(0, "int64"))
    chosen = If(even, TupleGetItem(nested, 0), relay.negative(state))
    body = relay.Function([number, state], Tuple([relay.const(True), chosen, relay.sum(chosen)]))
    loop = call("serde.loop", relay.const(3, "int64"), None, [x], [], body=infer_function(body))
    model = model_with([x], Tuple([TupleGetItem(loop, i) for i in range(2)]))
    check(model, [(X,), (X[:1],)], tmp_path)


def test_a_loop_that_nothing_ends_is_refused(tmp_path: Path) -> None:
    x, number, state = relay.var("x", shape=(2,)), scalar(), relay.var("s", shape=(2,))
    body = relay.Function([number, state], Tuple([relay.const(True), relay.exp(state)]))
    loop = call("serde.loop", None, None, [x], [], body=body)
    with pytest.raises(UnsupportedModelError, match="a loop that nothing ends"):
        serde.export_model(model_with([x], TupleGetItem(loop, 0)), format="tflite")
