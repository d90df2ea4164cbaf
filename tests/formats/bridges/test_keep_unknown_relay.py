"""``serde.foreign``: what a call holds, in both spellings of text; passes; kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.engine import foreign as engine
from serde.errors import OptionError, ParseError, RelayError, TypeInferenceError
from serde.relay import transform
from serde.relay.ir.dims import Any as AnyDim, symbol
from serde.relay.ir.expr import Call
from serde.relay.ir.foreign import (
    Empty,
    Foreign,
    Input,
    decode_attributes,
    encode_attributes,
    has_foreign,
    is_foreign,
)
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)
ONE = TensorType((2, 3), "float32")


def node(**changes: Any) -> Foreign:
    given = {"framework": "onnx", "name": "Wobble", "domain": "com.acme", "results": (ONE,)}
    return Foreign(**{**given, **changes})


def module(found: Foreign, *, uses: int = 1) -> relay.IRModule:
    """A function that calls an operator on its input, perhaps several times."""
    x = relay.var("x", ONE)
    body: Any = None
    for _ in range(uses):
        each: Any = found.build([x])
        if len(found.results) > 1:
            each = relay.TupleGetItem(each, 0)
        body = each if body is None else relay.add(body, each)
    return relay.IRModule.from_expr(relay.Function([x], body))


VALUES: dict[str, Any] = {
    "integer": 3,
    "negative": -(2**40),
    "float": 0.1,
    "float that is whole": 2.0,
    "tiny": 1e-38,
    "true": True,
    "none": None,
    "text": "fast",
    "quotes": "he said \"no\" and 'yes'",
    "backslash": "a\\b\n\t",
    "text beyond ASCII": "größe ☃",
    "percent and ampersand": "a=1&b=%22",
    "brackets": "%x)]}, result_types=[[",
    "bytes": b"\x00\xff\x10",
    "integers": (1, -2, 3),
    "floats": (1.0, 2.5),
    "texts": ("a", "b"),
    "nested": ((1, 2), (), ((3.5,),)),
    "empty list of floats": Empty("floats"),
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "dtype": np.dtype("float16"),
    "dimension": symbol("N"),
    "place of an operand": (Input(0), None, (Input(0), 2)),
    "object": {"a": 1, "b": (2.0, "c")},
}


@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
@pytest.mark.parametrize("title", VALUES)
def test_attributes_come_back_from_text(title: str, strict: bool) -> None:
    mod = module(node(attributes={"value": VALUES[title]}))
    again = relay.fromtext(mod.astext(strict=strict))
    assert relay.structural_equal(mod, again)
    (found,) = (n for n in post_order(again["main"]) if is_foreign(n))
    assert isinstance(found, Call)
    value = Foreign.of(found).attributes["value"]
    assert value == VALUES[title]
    assert type(value) is type(VALUES[title])


def test_an_empty_list_knows_what_would_be_in_it() -> None:
    found = decode_attributes(encode_attributes({"a": Empty("ints")}))["a"]
    assert isinstance(found, Empty)
    assert found.kind == "ints"


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16", "int64"])
@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
def test_arrays_come_back_from_text(dtype: str, strict: bool) -> None:
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    mod = module(node(attributes={"table": array}))
    again = relay.fromtext(mod.astext(strict=strict))
    (found,) = (n for n in post_order(again["main"]) if is_foreign(n))
    assert isinstance(found, Call)
    table = Foreign.of(found).attributes["table"]
    assert table.dtype == array.dtype
    np.testing.assert_array_equal(table, array)


def test_not_a_number_comes_back() -> None:
    assert math.isnan(decode_attributes(encode_attributes({"a": math.nan}))["a"])


RESULTS: dict[str, tuple[TensorType, ...]] = {
    "one": (ONE,),
    "scalar": (TensorType((), "int64"),),
    "two": (ONE, TensorType((4,), "bool")),
    "of a symbol": (TensorType((symbol("N"), 4), "float16"),),
    "open": (TensorType((AnyDim(), 1), "int32"),),
}


@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
@pytest.mark.parametrize("title", RESULTS)
def test_types_of_results_are_those_declared(title: str, strict: bool) -> None:
    results = RESULTS[title]
    call = node(results=results).build([relay.var("x", ONE)])
    assert call.type == (results[0] if len(results) == 1 else TupleType(results))
    x = relay.var("x", ONE)
    mod = relay.IRModule.from_expr(relay.Function([x], node(results=results).build([x])))
    again = relay.fromtext(mod.astext(strict=strict))
    assert again["main"].body.type == call.type


def test_the_dialect_says_it_all() -> None:
    mod = module(node(version=3, attributes={"gain": 1.5}))
    assert (
        'serde.foreign(%0, framework="onnx", name="Wobble", domain="com.acme", version=3, '
        'attributes="{\\"gain\\": 1.5}", result_types=[[[2, 3], "float32"]])'
    ) in mod.astext()


def test_strict_text_has_a_function_that_never_returns() -> None:
    text = module(node()).astext(strict=True)
    assert 'Composite="serde.foreign"' in text
    assert "let %unknown: fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] =" in text
    assert "serde.foreign(" not in text


def test_a_composite_of_another_body_is_not_raised() -> None:
    text = module(node()).astext(strict=True).replace("%unknown(%x0)", "exp(%x0)")
    again = relay.fromtext(text)
    assert not any(map(is_foreign, post_order(again["main"])))


BAD_ATTRIBUTES = {
    "no JSON": "gain=1.5",
    "a list": "[1]",
    "cut off": '{"a": 1',
    "an unknown tag": '{"a": {"$code": "1"}}',
    "no base64": '{"a": {"$bytes": "%%"}}',
    "an array of another size": '{"a": {"$array": ["float32", [3], "AAAA"]}}',
    "an array of a negative length": '{"a": {"$array": ["float32", [-1], ""]}}',
    "an array of no dtype": '{"a": {"$array": ["complicated", [0], ""]}}',
    "a float that is none": '{"a": {"$float": "1e999"}}',
    "an operand that is none": '{"a": {"$input": -1}}',
    "an operand that is true": '{"a": {"$input": true}}',
    "an empty list of no kind": '{"a": {"$empty": []}}',
    "lists without end": '{"a": ' + "[" * 50 + "]" * 50 + "}",
    "deeper than Python": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
}


BAD_ARGUMENTS = {
    "a number": ("onnx", "3", "expected a list, found 3"),
    "no pairs": ("onnx", "[1]", "expected a name and an argument, found 1"),
    "a pair without a name": ("torch", "[[1, 2]]", "expected a name and an argument"),
    "no such attribute": ("torch", '[["self", null]]', "self is no attribute"),
    "no such operand": ("nnef", '[["x", [{"$input": 1}]]]', "x: expected places of 1 operands"),
    "no operand": ("relay", "[5]", "expected places of 1 operands"),
}


@pytest.mark.parametrize("title", BAD_ARGUMENTS)
def test_arguments_that_cannot_be_are_refused(title: str) -> None:
    framework, arguments, message = BAD_ARGUMENTS[title]
    with pytest.raises(TypeInferenceError, match=message):
        relay.serde.foreign(
            [relay.var("x", ONE)],
            framework=framework,
            name="nn.relu",
            attributes=f'{{"$arguments": {arguments}}}',
            result_types=(((2, 3), "float32"),),
        )


@pytest.mark.parametrize("title", BAD_ATTRIBUTES)
def test_attributes_that_are_none_are_refused(title: str) -> None:
    with pytest.raises(RelayError):
        decode_attributes(BAD_ATTRIBUTES[title])
    with pytest.raises(TypeInferenceError, match="attributes"):
        relay.serde.foreign(
            [relay.var("x", ONE)],
            framework="onnx",
            name="Wobble",
            attributes=BAD_ATTRIBUTES[title],
            result_types=(((2, 3), "float32"),),
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"framework": ""}, "a framework and a name"),
        ({"name": ""}, "a framework and a name"),
        ({"results": ()}, "the types of its results, found none"),
        ({"absent": (2,)}, "absent inputs"),
        ({"absent": (1, 0)}, "absent inputs"),
        ({"absent": (0, 0)}, "absent inputs"),
        ({"attributes": {"a": object()}}, "expected a number, text"),
        ({"attributes": {"a": {1: 2}}}, "no names of attributes"),
    ],
)
def test_calls_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        node(**changes).build([relay.var("x", ONE)])


def test_text_with_a_wrong_attribute_is_refused() -> None:
    text = (
        module(node())
        .astext()
        .replace('attributes="{}"', "")
        .replace('domain="com.acme"', 'domain="com.acme", attributes="x"')
    )
    with pytest.raises((ParseError, TypeInferenceError), match="attributes"):
        relay.fromtext(text)


PASSES = {
    "merge equal nodes": transform.MergeEqualNodes(),
    "evaluate constants": transform.EvaluateConstants(),
    "decompose": transform.Decompose(frozenset()),
    "remove identities": transform.RemoveIdentities(),
    "fold shapes": transform.FoldShape(),
}


@pytest.mark.parametrize("title", PASSES)
def test_passes_leave_it_as_it_is(title: str) -> None:
    mod = module(node(), uses=2)
    after = PASSES[title].run(mod)[0]
    assert sum(map(is_foreign, post_order(after["main"]))) == 2


def test_a_call_on_constants_is_not_evaluated() -> None:
    call = node().build([relay.const(X)])
    mod = relay.IRModule.from_expr(relay.Function([], call))
    after = transform.EvaluateConstants().run(mod)[0]
    assert has_foreign(RelayModel(after, {}, ModelMeta((), ("y",), "relay", "")))


def test_what_is_not_used_goes() -> None:
    x = relay.var("x", ONE)
    unused = relay.var("u", ONE)
    body = relay.Let(unused, node().build([x]), relay.exp(x))
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    after = transform.RemoveDeadCode().run(mod)[0]
    assert not any(map(is_foreign, post_order(after["main"])))


def test_it_stays_in_its_own_precision() -> None:
    x = relay.var("x", ONE)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(node().build([relay.exp(x)]))))
    after = transform.ToFloat16(keep_io=True).run(mod)[0]
    (found,) = (n for n in post_order(after["main"]) if is_foreign(n))
    assert found.type == ONE
    (inputs,) = found.args  # type: ignore[attr-defined]
    assert inputs.type == TupleType([ONE])
    narrow = [n.type for n in post_order(after["main"]) if isinstance(n, Call)]
    assert TensorType((2, 3), "float16") in narrow


@pytest.fixture
def kernels() -> Iterator[None]:
    """Kernels that are registered during a test are gone behind it."""
    before = dict(engine._KERNELS)
    yield
    engine._KERNELS.clear()
    engine._KERNELS.update(before)


@pytest.mark.parametrize("name", ["Wobble", "com.acme::Wobble"])
@pytest.mark.parametrize("framework", ["onnx", "mxnet", "torch", "coreml", "nnef"])
def test_a_kernel_runs_it(name: str, framework: str, kernels: None) -> None:
    serde.register_kernel(name, lambda x, *, gain: x * np.float32(gain))
    mod = module(node(framework=framework, attributes={"gain": 2.5}))
    np.testing.assert_array_equal(run(mod["main"], [X]), X * np.float32(2.5))


def test_a_kernel_of_another_format_does_not(kernels: None) -> None:
    serde.register_kernel("Wobble", lambda x: x, format="nnef")
    with pytest.raises(RelayError, match="Wobble"):
        run(module(node(framework="coreml"))["main"], [X])


@pytest.mark.parametrize("framework", ["coreml", "nnef", "relayfile", "unheard of"])
def test_without_a_framework_nothing_runs_it(framework: str) -> None:
    with pytest.raises(RelayError, match="Wobble"):
        run(module(node(framework=framework))["main"], [X])


def test_a_kernel_gets_inputs_at_their_places(kernels: None) -> None:
    seen: list[Any] = []
    serde.register_kernel("Wobble", lambda *xs: seen.append(xs) or xs[0])
    run(module(node(absent=(1, 2)))["main"], [X])
    ((first, second, third),) = seen
    np.testing.assert_array_equal(first, X)
    assert second is third is None


def test_a_kernel_may_give_several(kernels: None) -> None:
    serde.register_kernel("Wobble", lambda x: (x.max(0), x.argmax(0)))
    results = (TensorType((3,), "float32"), TensorType((3,), "int64"))
    x = relay.var("x", ONE)
    found = run(relay.Function([x], node(results=results).build([x])), [X])
    np.testing.assert_array_equal(found[0], [1.0, 0.0, 3.0])
    np.testing.assert_array_equal(found[1], [0, 1, 0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.astype(np.float64), "declared to give"),
        (lambda x: x[:1], "declared to give"),
        (lambda x: x[None], "declared to give"),
        (lambda x: (), "declared to give"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda: 1, "TypeError"),
    ],
)
def test_kernels_that_do_not_fit_are_named(function: Any, message: str, kernels: None) -> None:
    serde.register_kernel("Wobble", function)
    with pytest.raises(RelayError, match=rf"com\.acme::Wobble.*{message}"):
        run(module(node())["main"], [X])


def test_a_length_that_is_open_may_be_any(kernels: None) -> None:
    serde.register_kernel("Wobble", lambda x: x[:1])
    results = (TensorType((AnyDim(), 3), "float32"),)
    np.testing.assert_array_equal(run(module(node(results=results))["main"], [X]), X[:1])


def test_what_is_no_function_is_no_kernel() -> None:
    with pytest.raises(OptionError, match="expected a function"):
        serde.register_kernel("Wobble", 3)  # type: ignore[arg-type]


def test_an_operator_of_relay_that_is_kept_whole_runs() -> None:
    found = Foreign(framework="relay", name="nn.softmax", attributes={"axis": 0}, results=(ONE,))
    exact = np.exp(X.astype(np.float64))
    want = exact / exact.sum(0)
    np.testing.assert_allclose(run(module(found)["main"], [X]), want, rtol=1e-6)


def test_a_function_of_relay_that_is_kept_whole_runs() -> None:
    p = relay.var("p", ONE)
    body = relay.Function([p], relay.negative(p))
    x = relay.var("x", ONE)
    found = Foreign(framework="relay", name="acme.negate", results=(ONE,)).build([x], body=body)
    np.testing.assert_array_equal(run(relay.Function([x], found), [X]), -X)
