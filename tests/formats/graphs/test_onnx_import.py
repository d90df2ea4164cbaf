"""ONNX models as Relay: inputs, weights, names, functions, subgraphs, and unsound graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from support.onnx_suite import interpret

import serde
import serde.relay as relay
from serde.core.limits import Limits
from serde.errors import FormatError, LimitError, OptionError, UnsupportedModelError
from serde.onnx.import_context import ImportContext
from serde.onnx.ops import TABLE, TABLES
from serde.onnx.versions import CHANGES, Change
from serde.walk.table import ConverterTable

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def model_of(text: str, head: str = HEAD) -> onnx.ModelProto:
    return parser.parse_model(head + text)


def run(proto: Any, **inputs: np.ndarray) -> list[np.ndarray]:
    model = serde.to_relay(proto)
    relay.verify(model.mod)
    return interpret(model, inputs)


def test_dimensions_keep_their_names() -> None:
    model = serde.to_relay(model_of("g (float[N,3,?] x) => (float[N,3,M] y) { y = Abs (x) }"))
    assert model.main.params[0].type == relay.TensorType(("N", 3, "?"), "float32")
    assert (model.meta.inputs, model.meta.outputs) == (("x",), ("y",))
    assert model.meta.source_version == "opset 17"
    assert model.meta.extra["name"] == "g"


def test_shapes_and_dtypes_can_be_given() -> None:
    proto = model_of("g (float[N,3] x) => (float[N,3] y) { y = Abs (x) }")
    model = serde.to_relay(proto, input_shapes={"x": (2, 3)}, input_dtypes={"x": "float64"})
    assert model.main.body.type == relay.TensorType((2, 3), "float64")
    with pytest.raises(OptionError, match="expected 2 axes, found 1"):
        serde.to_relay(proto, input_shapes={"x": (2,)})
    with pytest.raises(OptionError, match="no input is called z"):
        serde.to_relay(proto, input_shapes={"z": (2,)})


def test_an_input_without_axes_needs_a_shape() -> None:
    proto = model_of("g (float[N] x) => (float[N] y) { y = Abs (x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(OptionError, match="the shape of x is missing"):
        serde.to_relay(proto)
    assert serde.to_relay(proto, input_shapes=(4,)).main.body.type == relay.TensorType((4,))


def weighted(value: np.ndarray, *, as_input: bool) -> onnx.ModelProto:
    proto = model_of("g (float[2,3] x) => (float[2,3] y) { y = Add (x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(value, "w"))
    if as_input:
        declared = helper.make_tensor_value_info("w", TensorProto.FLOAT, list(value.shape))
        proto.graph.input.append(declared)
    return proto


@pytest.mark.parametrize("as_input", [False, True])
def test_initializers_are_weights(as_input: bool) -> None:
    value = np.arange(3, dtype=np.float32)
    proto = weighted(value, as_input=as_input)
    model = serde.to_relay(proto)
    assert [each.name_hint for each in model.main.params] == ["x", "w"]
    np.testing.assert_array_equal(model.params["w"].array(), value)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(proto, x=x)[0], x + value)


def test_initializers_can_stay_inputs() -> None:
    proto = weighted(np.arange(3, dtype=np.float32), as_input=True)
    model = serde.to_relay(proto, keep_initializers_as_inputs=True)
    assert model.meta.inputs == ("x", "w")
    assert model.params == {}


def test_weights_of_a_file_stay_there(tmp_path: Path) -> None:
    value = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    proto = model_of("g (float[1000,3] x) => (float[1000,3] y) { y = Add (x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(value, "w"))
    onnx.save(proto, tmp_path / "m.onnx")
    model = serde.to_relay(tmp_path / "m.onnx")
    assert model.params["w"].source is not None
    np.testing.assert_array_equal(model.params["w"].array(), value)


def test_sparse_initializers_are_filled_up() -> None:
    proto = model_of("g (float[2,3] x) => (float[2,3] y) { y = Add (x, w) }")
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    indices = numpy_helper.from_array(np.array([1, 5], np.int64), "w_indices")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    expected = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
    np.testing.assert_array_equal(run(proto, x=np.zeros((2, 3), np.float32))[0], expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_narrow_weights(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = np.array([[1, 2], [3, 0]]).astype(getattr(ml_dtypes, dtype))
    proto = model_of("g (float[2,2] x) => (float[2,2] y) { c = Cast<to=1>(w) y = Add (x, c) }")
    proto.graph.initializer.append(numpy_helper.from_array(value, "w"))
    found = run(proto, x=np.zeros((2, 2), np.float32))
    np.testing.assert_array_equal(found[0], value.astype(np.float32))


def test_strings_are_refused() -> None:
    proto = model_of("g (string[2] x) => (string[2] y) { y = Identity (x) }")
    with pytest.raises(UnsupportedModelError, match="strings has no counterpart"):
        serde.to_relay(proto)


def test_gaps_are_reported_together() -> None:
    proto = model_of(
        "g (float[2] x) => (float[2] y)"
        " { a = Foo (x) b = com.other.Abs (a) c = Abs <size = 3> (b) y = Add (c) }",
        '<ir_version: 8, opset_import: ["" : 17, "com.other" : 1]>',
    )
    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(proto)
    assert {(each.op, each.node) for each in caught.value.report.issues} == {
        ("Foo", "a"),
        ("com.other.Abs", "b"),
        ("Abs", "c"),
        ("Add", "y"),
    }


def test_what_no_output_needs_is_left_out() -> None:
    proto = model_of("g (float[2] x) => (float[2] y) { a = Foo (x) y = Abs (x) }")
    np.testing.assert_array_equal(run(proto, x=np.array([-1, 2], np.float32))[0], [1, 2])


FUNCTION = """
g (float[2] x) => (float[2] y) { y = own.shifted <by = 3.0> (x) }
<domain: "own", opset_import: ["" : 17, "own" : 1]>
shifted <by, twice: int = 1> (a) => (c)
{ k = Constant <value_float: float = @by> () b = Add (a, k) c = own.doubled (b) }
<domain: "own", opset_import: ["" : 13]>
doubled (a) => (b) { b = Add (a, a) }
"""
OWN = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'


def test_functions_of_the_model_are_expanded() -> None:
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(model_of(FUNCTION, OWN), x=x)[0], (x + 3) * 2)


def test_a_function_may_stand_for_an_operator_of_its_domain_only() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.Abs (x) }
    <domain: "own", opset_import: ["" : 17]> Abs (a) => (b) { b = Neg (a) }"""
    np.testing.assert_array_equal(run(model_of(text, OWN), x=np.ones(2, np.float32))[0], [-1, -1])


def test_a_function_that_calls_itself_is_unsound() -> None:
    text = """g (float[2] x) => (float[2] y) { y = own.f (x) }
    <domain: "own", opset_import: ["own" : 1]> f (a) => (b) { b = own.h (a) }
    <domain: "own", opset_import: ["own" : 1]> h (a) => (b) { b = own.f (a) }"""
    with pytest.raises(FormatError, match="'f' calls itself"):
        serde.to_relay(model_of(text, OWN))


BRANCHES = """g (float[2] x, bool[1] c) => (float[2] y, float[2] z) {
  d = Neg (x)
  y, z = If (c) <
    then_branch = a () => (float[2] t, float[2] u) { t = Add (x, d)  u = Abs (d) },
    else_branch = b () => (float[2] e, float[2] f) { e = Mul (d, d)  f = Identity (x) }
  >
}"""


@pytest.mark.parametrize("condition", [True, False])
def test_branches_see_what_is_around_them(condition: bool) -> None:
    x = np.array([2, -3], np.float32)
    y, z = run(model_of(BRANCHES), x=x, c=np.array([condition]))
    np.testing.assert_array_equal(y, x - x if condition else x * x)
    np.testing.assert_array_equal(z, np.abs(x) if condition else x)


def test_gaps_of_all_branches_are_reported() -> None:
    text = BRANCHES.replace("Abs", "Foo").replace("Mul", "Bar")
    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(model_of(text))
    assert {each.node for each in caught.value.report.issues} == {"y/then/u", "y/else/e"}


def nested(depth: int) -> onnx.ModelProto:
    """A model of functions that call one another, `depth` of them."""
    body = "\n".join(
        f'<domain: "own", opset_import: ["own" : 1]> f{i} (a) => (b) {{ b = own.f{i + 1} (a) }}'
        for i in range(depth)
    )
    last = f'<domain: "own", opset_import: ["" : 17]> f{depth} (a) => (b) {{ b = Abs (a) }}'
    return model_of(f"g (float[2] x) => (float[2] y) {{ y = own.f0 (x) }}\n{body}\n{last}", OWN)


def test_nesting_is_bounded() -> None:
    depth = Limits().depth
    found = run(nested(depth - 1), x=np.array([-1, 2], np.float32))
    np.testing.assert_array_equal(found[0], [1, 2])
    with pytest.raises(LimitError, match=f"--limit depth={depth + 1} allows it"):
        serde.to_relay(nested(depth))
    deeper = serde.to_relay(nested(depth), limits={"depth": depth + 1})
    assert "abs(%x)" in deeper.mod.astext()


@pytest.mark.wide
def test_a_long_chain() -> None:
    count = 20_000
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("v0", f"v{count}")]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(proto, v0=x)[0], x)


UNSOUND = {
    "cycle": ("{ a = Neg (b) b = Exp (a) y = Abs (a) }", r"(a \(Neg\)|b \(Exp\)): a cycle"),
    "own output": ("{ a = Neg (x) b = Add (a, b) y = Abs (b) }", r"b \(Add\): a cycle"),
    "cycle into a branch": (
        """{ a = Neg (y) c = Constant <value = bool {1}> () y = If (c) <
            then_branch = t () => (float[2] p) { p = Exp (a) },
            else_branch = e () => (float[2] q) { q = Exp (x) }> }""",
        r"(a \(Neg\)|y \(If\)): a cycle",
    ),
    "unknown": ("{ y = Add (x, w) }", "input 'w' is given by no node, input or initializer"),
    "twice": ("{ y = Abs (x) y = Neg (x) }", "a second value is called 'y'"),
    "input again": ("{ x = Abs (x) y = Neg (x) }", "a second value is called 'x'"),
    "output": ("{ z = Abs (x) }", "output 'y' is given by no node"),
    "attribute": ("{ y = Softmax <axis = 1, axis = 0> (x) }", "'axis' is given twice"),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_graphs(name: str) -> None:
    body, message = UNSOUND[name]
    with pytest.raises(FormatError, match=message):
        serde.to_relay(model_of(f"g (float[2] x) => (float[2] y) {body}"))


def runtime(proto: onnx.ModelProto, **inputs: np.ndarray) -> list[Any]:
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)


UNSORTED = {
    "plain": "{ y = Exp (b) b = Sub (x, a) a = Neg (x) }",
    "a branch reads what comes later": """{ y = If (c) <
            then_branch = t () => (float[2] p) { p = Exp (a) },
            else_branch = e () => (float[2] q) { q = Exp (x) }>
        a = Neg (s) s = Abs (x) c = Constant <value = bool {1}> () }""",
    "a branch has a name of its own again": """{ b = If (c) <
            then_branch = t () => (float[2] p) { a = Neg (x) p = Exp (a) },
            else_branch = e () => (float[2] q) { q = Exp (x) }>
        c = Constant <value = bool {1}> () y = Abs (b) z = Exp (b) }""",
}


@pytest.mark.parametrize("name", UNSORTED)
def test_nodes_out_of_order(name: str) -> None:
    proto = model_of(f"g (float[2] x) => (float[2] y) {UNSORTED[name]}")
    x = np.array([0.5, -2], np.float32)
    np.testing.assert_allclose(run(proto, x=x)[0], runtime(proto, x=x)[0], rtol=1e-6)
    written = serde.from_relay(serde.to_relay(proto), format="onnx")
    onnx.checker.check_model(written)


@pytest.mark.wide
def test_a_long_chain_backwards() -> None:
    count = 20_000
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("v0", f"v{count}")]
    graph = helper.make_graph(nodes[::-1], "g", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(proto, v0=x)[0], x)


@pytest.mark.parametrize("inside", [False, True])
def test_operators_of_onnx_runtime_need_no_operator_set(inside: bool) -> None:
    body = "{ y = com.microsoft.Gelu (x) }"
    if inside:
        body = "{ y = own.f (x) }"
    proto = model_of(f"g (float[3] x) => (float[3] y) {body}")
    if inside:
        node = helper.make_node("Gelu", ["a"], ["b"], domain="com.microsoft")
        opsets = [helper.make_opsetid("", 17)]
        proto.functions.append(helper.make_function("own", "f", ["a"], ["b"], [node], opsets))
        proto.opset_import.add(domain="own", version=1)
    x = np.array([-1, 0.5, 2], np.float32)
    plain = model_of("g (float[3] x) => (float[3] y) { y = com.microsoft.Gelu (x) }")
    np.testing.assert_allclose(run(proto, x=x)[0], runtime(plain, x=x)[0], rtol=1e-6)


def test_classical_operators_need_no_operator_set() -> None:
    body = '{ y = ai.onnx.ml.Normalizer <norm = "L2"> (x) }'
    proto = model_of(f"g (float[1, 3] x) => (float[1, 3] y) {body}")
    x = np.array([[1, 2, 2]], np.float32)
    np.testing.assert_allclose(run(proto, x=x)[0], runtime(proto, x=x)[0], rtol=1e-6)


def test_a_compressed_image_is_refused_with_a_hint() -> None:
    proto = model_of("g (uint8[9] x) => (uint8[2, 2, 3] y) { y = ImageDecoder (x) }")
    with pytest.raises(UnsupportedModelError, match=r"compressed image[^$]*give the model its pix"):
        serde.to_relay(proto)


@pytest.mark.parametrize("kind", ["optional", "sequence"])
def test_optional_sequences_are_refused_with_a_hint(kind: str) -> None:
    proto = model_of("g (float[3] x) => (float[3] y) { y = Relu (x) }")
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [3])
    wrap = {
        "optional": helper.make_optional_type_proto,
        "sequence": helper.make_sequence_type_proto,
    }
    type_ = wrap[kind](helper.make_sequence_type_proto(tensor))
    proto.graph.input.append(helper.make_value_info("s", type_))
    with pytest.raises(UnsupportedModelError, match=r"optional sequence.*declare a sequence"):
        serde.to_relay(proto)


def test_a_sequence_of_open_rank_asks_for_a_shape() -> None:
    proto = model_of("g (seq(float) s) => (float[M] y) { y = ConcatFromSequence <axis = 0> (s) }")
    proto.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    with pytest.raises(OptionError, match="the shape of s is missing"):
        serde.to_relay(proto)
    model = serde.to_relay(proto, input_shapes={"s": ("?",)})
    given = [np.array([1, 2], np.float32), np.array([3], np.float32)]
    assert interpret(model, {"s": given})[0].tolist() == [1, 2, 3]
    written = serde.from_relay(model, format="onnx").SerializeToString()
    found = onnxruntime.InferenceSession(written).run(None, {"s": given})[0]
    assert found.tolist() == [1, 2, 3]


def test_operators_of_a_domain_that_is_not_read_are_named() -> None:
    proto = model_of("g (float[3] x) => (float[3] y) { y = some.where.Gate (x) }")
    with pytest.raises(UnsupportedModelError, match=r"some\.where\.Gate.*'some\.where' are not"):
        serde.to_relay(proto)


def test_an_unknown_operator_set() -> None:
    proto = model_of("g (float[2] x) => (float[2] y) { y = Abs (x) }")
    proto.opset_import[0].version = 1000
    with pytest.raises(FormatError, match="version 1000: expected 1 to"):
        serde.to_relay(proto)
    assert serde.to_relay(proto, source_opset=13).meta.source_version == "opset 13"


def test_operators_before_version_7_name_the_axis() -> None:
    text = "g (float[2,3,4] x, float[3] b) => (float[2,3,4] y)"
    proto = model_of(
        f"{text} {{ y = Add <axis = 1, broadcast = 1, consumed_inputs = [0, 0]> (x, b) }}",
        '<ir_version: 3, opset_import: ["" : 5]>',
    )
    x, b = np.ones((2, 3, 4), np.float32), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(proto, x=x, b=b)[0], x + b[:, None])


@pytest.mark.wide
def test_convert_rewrites_for_another_version(tmp_path: Path) -> None:
    onnx.save(weighted(np.arange(3, dtype=np.float32), as_input=False), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=13, check=True)
    assert report.passed
    assert onnx.load(tmp_path / "b.onnx").opset_import[0].version == 13
    text = serde.convert(tmp_path / "a.onnx", tmp_path / "a.relay", check=True)
    assert text.passed


@pytest.mark.parametrize("freeze", [True, False])
def test_from_onnx(freeze: bool, tmp_path: Path) -> None:
    value = np.arange(3, dtype=np.float32)
    named = tmp_path / "named.onnx"
    mod, params = relay.frontend.from_onnx(
        weighted(value, as_input=True),
        {"x": (2, 3)},
        freeze_params=freeze,
        export_node_renamed_model_path=str(named),
    )
    assert list(params) == ([] if freeze else ["w"])
    execute = relay.create_executor("graph", mod=mod, params=params).evaluate()
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(execute(x).numpy(), x + value)
    assert onnx.load(named).graph.node[0].name == "Add_0"


def test_every_version_of_an_operator_is_read() -> None:
    read: dict[str, set[int]] = {}
    for op, version in TABLE.imported():
        read.setdefault(op, set()).add(version)
    assert read.pop("SimplifiedLayerNormalization") == {1}  # ONNX Runtime's, in ONNX's domain
    for op, versions in read.items():
        known = {v for v, change in CHANGES[op].items() if change is not Change.REMOVED}
        assert known <= versions <= set(CHANGES[op]), op


def test_shape_arithmetic_is_evaluated_over_names() -> None:
    proto = model_of(
        """g (float[N,H,8] x) => (float[N,M] y) {
          s = Shape (x)
          zero = Constant <value = int64[1] {0}> ()
          n = Gather (s, zero)
          rest = Constant <value = int64[2] {-1, 4}> ()
          t = Concat <axis = 0> (n, rest)
          z = Reshape (x, t)
          f = Shape <start = 1> (z)
          p = ReduceProd <keepdims = 1> (f)
          u = Concat <axis = 0> (n, p)
          y = Reshape (z, u)
        }"""
    )
    model = serde.to_relay(proto)
    n, h = relay.TensorType(("N", "H")).shape
    assert model.main.body.type == relay.TensorType((n, h * 8))
    assert "shape_of" not in model.mod.astext()
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    np.testing.assert_array_equal(interpret(model, {"x": x})[0], x.reshape(2, 24))


def test_lengths_that_may_be_kept_are_chosen_over_names() -> None:
    """What PyTorch writes for ``expand``: -1 keeps a length."""
    proto = model_of(
        """g (float[N,1] x) => (float[N,M] y) {
          s = Shape <start = 0, end = 1> (x)
          five = Constant <value = int64[1] {5}> ()
          t = Concat <axis = 0> (s, five)
          keep = Constant <value = int64[2] {-1, -1}> ()
          one = Constant <value = int64[2] {1, 1}> ()
          e = Equal (t, keep)
          w = Where (e, one, t)
          y = Expand (x, w)
        }"""
    )
    model = serde.to_relay(proto)
    assert model.main.body.type == relay.TensorType(("N", 5))
    x = np.arange(2, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(interpret(model, {"x": x})[0], np.repeat(x, 5, axis=1))


def test_a_closure_takes_what_is_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of the test that calls its body twice on its input."""
    table = ConverterTable("test")

    @table.imports("Twice")
    def import_twice(ctx: ImportContext, x: relay.Expr, *, body: onnx.GraphProto) -> relay.Expr:
        function, captured = ctx.closure(body, [relay.Var("a", ctx.type(x))])
        assert [each.name_hint for each in function.params] == ["a", "d", "w"]
        once = relay.TupleGetItem(relay.Call(function, [x, *captured]), 0)
        found = relay.TupleGetItem(relay.Call(function, [once, *captured]), 0)
        return relay.transform.InferType()(relay.IRModule.from_expr(found))["main"].body

    monkeypatch.setattr("serde.onnx.importer.TABLES", {**TABLES, "test": table})
    proto = model_of(
        """g (float[2] x) => (float[2] y) {
          d = Neg (x)
          y = test.Twice <
            body = b (float[2] a) => (float[2] c) { e = Add (a, d) c = Mul (e, w) }
          > (x)
        }""",
        '<ir_version: 8, opset_import: ["" : 17, "test" : 1]>',
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.array([3, 5], np.float32), "w"))
    x, w = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    np.testing.assert_array_equal(run(proto, x=x)[0], ((x - x) * w - x) * w)


def test_an_input_that_must_be_there() -> None:
    proto = model_of("g (float[2] x) => (float[2] y) { y = Add (, x) }")
    with pytest.raises(UnsupportedModelError, match="input 0 is left out"):
        serde.to_relay(proto)


LOOP = """g (int64 n, float[2] x, float[K] start)
  => (float[2] last, float[R] grown, float[S,2] rows) {
  d = Neg (x)
  last, grown, rows = Loop (n, , x, start) <
    body = b (int64 i, bool c, float[2] a, float[G] v)
      => (bool again, float[2] a_out, float[H] v_out, float[2] row) {
      again = Identity (c)
      a_out = Add (a, w)
      v_out = Concat <axis = 0> (v, d)
      row = Mul (a_out, d)
    }
  >
}"""


def test_a_loop_with_a_state_that_grows() -> None:
    """The body takes a value and a weight from around it."""
    proto = model_of(LOOP)
    w = np.array([3, 5], np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(w, "w"))
    x, start = np.array([1, 2], np.float32), np.array([7], np.float32)
    last, grown, rows = run(proto, n=np.array(3), x=x, start=start)
    np.testing.assert_array_equal(last, x + 3 * w)
    np.testing.assert_array_equal(grown, np.concatenate([start, -x, -x, -x]))
    np.testing.assert_array_equal(rows, [(x + i * w) * -x for i in (1, 2, 3)])


def test_a_scan_backwards_along_another_axis() -> None:
    text = """g (float[2] zero, float[2,T] x) => (float[2] total, float[2,T] sums) {
      total, sums = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [1], scan_output_directions = [1],
        body = b (float[2] s, float[2] row) => (float[2] t, float[2] u) {
          t = Add (s, row)
          u = Identity (t)
        }
      > (zero, x)
    }"""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    total, sums = run(model_of(text), zero=np.zeros(2, np.float32), x=x)
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(sums, np.cumsum(x[:, ::-1], axis=1)[:, ::-1])
