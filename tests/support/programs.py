"""The programs of relay_golden.json, built as TVM's script built them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import serde.relay as relay
from serde.relay.ir.expr import Expr, Let, Var, astuple

FILE = Path(__file__).parent.parent / "golden" / "tvm" / "relay_golden.json"

Built = tuple[list[Var], Expr]


@cache
def programs() -> Mapping[str, Any]:
    """Return the recorded programs: text before and after inference."""
    return json.loads(FILE.read_text())["programs"]


@cache
def call_texts() -> Mapping[str, Any]:
    """Return the recorded single calls."""
    return json.loads(FILE.read_text())["calls"]


def _matrix(name: str = "a") -> Var:
    return relay.var(name, shape=(2, 3))


def _bn_whole_tuple() -> Built:
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    rest = [relay.var(name, shape=(4,)) for name in ("gamma", "beta", "mean", "var")]
    conv = relay.nn.conv2d(x, w, padding=(1, 1))
    return [x, w, *rest], astuple(relay.nn.batch_norm(conv, *rest).astuple())


def _shared_twice() -> Built:
    a = _matrix()
    return [a], relay.add(relay.exp(a), relay.exp(a))


def _identity() -> Built:
    a = _matrix()
    return [a], a


def _tuple_out() -> Built:
    a = _matrix()
    return [a], relay.Tuple([a, relay.exp(a), relay.const(1)])


def _tuple_one() -> Built:
    a = _matrix()
    return [a], relay.Tuple([a])


def _tuple_empty() -> Built:
    return [_matrix()], relay.Tuple([])


def _tuple_nested() -> Built:
    a = _matrix()
    return [a], relay.Tuple([relay.Tuple([a, a]), a])


def _scalar_types() -> Built:
    return [relay.var("i", shape=(), dtype="int64")], relay.const(2.5)


def _any_dim() -> Built:
    n = relay.var("n", shape=(relay.Any(), 3))
    return [n], relay.nn.softmax(n)


def _let() -> Built:
    a, inner = _matrix(), Var("l")
    return [a], Let(inner, relay.exp(a), relay.add(inner, inner))


def _let_chain() -> Built:
    a, q, r = _matrix(), Var("q"), Var("r")
    return [a], Let(q, relay.exp(a), Let(r, relay.log(q), relay.multiply(q, r)))


def _composite() -> Built:
    a, k = _matrix(), _matrix("k")
    function = relay.Function([k], relay.nn.relu(relay.exp(k)))
    return [a], function.with_attr("Composite", "my.exp_relu")(a)


def _primitive() -> Built:
    a, k = _matrix(), _matrix("k")
    function = relay.Function([k], relay.add(relay.exp(k), relay.const(1.0)))
    return [a], function.with_attr("Primitive", 1)(a)


def _closure() -> Built:
    a, k, f = _matrix(), _matrix("k"), Var("f")
    return [a], Let(f, relay.Function([k], relay.add(k, a)), f(relay.exp(a)))


def _let_recursion() -> Built:
    a, loop = _matrix(), Var("while_loop")
    i, acc = relay.var("i", shape=(), dtype="int32"), _matrix("acc")
    body = relay.If(
        relay.less(i, relay.const(10)),
        loop(relay.add(i, relay.const(1)), relay.add(acc, a)),
        relay.Tuple([i, acc]),
    )
    result = relay.TupleType([relay.TensorType((), "int32"), relay.TensorType((2, 3))])
    return [a], Let(loop, relay.Function([i, acc], body, result), loop(relay.const(1), a))


def _same_names() -> Built:
    first, second = (relay.var("data", shape=(2,)) for _ in range(2))
    return [first, second], relay.subtract(first, second)


def _meta_constant() -> Built:
    a = _matrix()
    value = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    return [a], relay.add(relay.multiply(a, value), value)


def _meta_two() -> Built:
    a = _matrix()
    value = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    return [a], relay.add(relay.multiply(a, value), relay.const(np.ones(3, dtype="float32")))


def _split_use() -> Built:
    a = _matrix()
    parts = relay.split(a, 3, axis=1)
    return [a], relay.concatenate([parts[0], parts[1], parts[2]], 0)


def _dropout_use() -> Built:
    a = _matrix()
    return [a], relay.add(relay.nn.dropout(a, 0.4), a)


def _odd_name() -> Built:
    a = _matrix("stage1.conv-0:out")
    return [a], relay.exp(a)


def _digit_name() -> Built:
    a = _matrix("0weight")
    return [a], relay.exp(a)


def _slash_name() -> Built:
    return [relay.var("a/b", shape=(2,))], relay.const(1)


_BUILDERS: dict[str, Callable[[], Built]] = {
    "any_dim": _any_dim,
    "bn_whole_tuple": _bn_whole_tuple,
    "closure": _closure,
    "composite": _composite,
    "digit_name": _digit_name,
    "dropout_use": _dropout_use,
    "identity": _identity,
    "let": _let,
    "let_chain": _let_chain,
    "let_recursion": _let_recursion,
    "meta_constant": _meta_constant,
    "meta_two": _meta_two,
    "odd_name": _odd_name,
    "primitive": _primitive,
    "same_names": _same_names,
    "scalar_types": _scalar_types,
    "shared_twice": _shared_twice,
    "slash_name": _slash_name,
    "split_use": _split_use,
    "tuple_empty": _tuple_empty,
    "tuple_nested": _tuple_nested,
    "tuple_one": _tuple_one,
    "tuple_out": _tuple_out,
}


def build_program(name: str) -> relay.IRModule:
    """Return a recorded program as a module, not yet inferred."""
    if name == "global_call":
        return _global_call()
    params, body = _BUILDERS[name]()
    return relay.IRModule({"main": relay.Function(params, body)})


def _global_call() -> relay.IRModule:
    a, k = _matrix(), _matrix("k")
    double = relay.GlobalVar("double")
    function = relay.Function([k], relay.add(k, k), relay.TensorType((2, 3)))
    main = relay.Function([a], double(double(a)))
    return relay.IRModule({double: function, relay.GlobalVar("main"): main})
