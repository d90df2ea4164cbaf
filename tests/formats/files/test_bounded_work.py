"""Small files that ask for much work are answered by little of it: kept as they are, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
import serde.relay as relay
from serde.core.limits import Limits, spending
from serde.core.weights import ArrayWeight
from serde.errors import LimitError
from serde.walk.assembly import Assembly
from serde.walk.import_context import ImportContext

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def model_of(
    nodes: list[Any], constants: dict[str, Any], shape: tuple[Any, ...] = (1, 1), **rest: Any
) -> onnx.ModelProto:
    """Return a model of one input x and all that nothing reads as outputs."""
    read = {name for node in nodes for name in node.input}
    ends = [name for node in nodes for name in node.output if name not in read]
    graph = helper.make_graph(
        nodes,
        "bomb",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in ends],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8, **rest)


def expands() -> onnx.ModelProto:
    """Forty constants of 60 MB from one number each."""
    nodes = []
    for each in range(40):
        nodes.append(helper.make_node("Expand", ["one", "shape"], [f"e{each}"]))
        nodes.append(helper.make_node("Add", ["x", f"e{each}"], [f"y{each}"]))
    return model_of(nodes, {"one": np.float32(1.5), "shape": np.int64([1500, 10000])})


def products() -> onnx.ModelProto:
    """Fifty products of matrices of 9 million entries."""
    nodes = [helper.make_node("Expand", ["one", "shape"], ["m0"])]
    nodes += [helper.make_node("MatMul", [f"m{n}", "m0"], [f"m{n + 1}"]) for n in range(50)]
    nodes.append(helper.make_node("Add", ["x", "m50"], ["y"]))
    return model_of(nodes, {"one": np.float32(1e-4), "shape": np.int64([3000, 3000])})


def convolution() -> onnx.ModelProto:
    """A convolution of constants that multiplies 10^11 times."""
    nodes = [
        helper.make_node("Expand", ["one", "image"], ["data"]),
        helper.make_node("Expand", ["one", "filters"], ["weight"]),
        helper.make_node("Conv", ["data", "weight"], ["large"]),
        helper.make_node("Add", ["x", "large"], ["y"]),
    ]
    sizes = {"image": np.int64([1, 64, 200, 200]), "filters": np.int64([64, 64, 31, 31])}
    return model_of(nodes, {"one": np.float32(1e-4), **sizes}, (1, 1, 1, 1))


def chain_of_weights() -> onnx.ModelProto:
    """Each of 400 weights is made of all before it, and used."""
    nodes = []
    for each in range(400):
        before = f"w{each}" if each else "w"
        nodes.append(helper.make_node("Add", [before, "w"], [f"w{each + 1}"]))
        nodes.append(helper.make_node("Mul", ["x", f"w{each + 1}"], [f"y{each}"]))
    return model_of(nodes, {"w": np.full((100, 100), 1e-3, np.float32)})


def lengths() -> onnx.ModelProto:
    """Lengths of the input squared again and again."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{n}"] * 2, [f"s{n + 1}"]) for n in range(30)]
    nodes.append(helper.make_node("ConstantOfShape", ["s30"], ["y"]))
    return model_of(nodes, {}, ("a", "b"))


def sums_of_lengths() -> onnx.ModelProto:
    """A polynomial of eight lengths of degree 2^30."""
    nodes = [helper.make_node("Shape", ["x"], ["s"])]
    nodes.append(helper.make_node("ReduceSum", ["s"], ["r0"], keepdims=1))
    for each in range(30):
        nodes.append(helper.make_node("Mul", [f"r{each}"] * 2, [f"q{each}"]))
        nodes.append(helper.make_node("Add", [f"q{each}", "r0"], [f"r{each + 1}"]))
    nodes.append(helper.make_node("ConstantOfShape", ["r30"], ["y"]))
    return model_of(nodes, {}, tuple("abcdefgh"))


def functions() -> onnx.ModelProto:
    """Twenty functions that each call the next one twice."""
    made = []
    for level in range(20):
        nodes = [
            helper.make_node(f"f{level + 1}", ["a"], ["b"], domain="own"),
            helper.make_node(f"f{level + 1}", ["b"], ["c"], domain="own"),
        ]
        nodes = nodes if level < 19 else [helper.make_node("Relu", ["a"], ["c"])]
        made.append(helper.make_function("own", f"f{level}", ["a"], ["c"], nodes, OPSETS))
    return model_of([helper.make_node("f0", ["x"], ["y"], domain="own")], {}, functions=made)


def calls_of_globals(levels: int = 20) -> str:
    text = ['#[version = "0.0.5"]']
    kind = "Tensor[(2), float32]"
    for level in range(levels):
        body = f"  %0 = @f{level - 1}(%a);\n  @f{level - 1}(%0)" if level else "  nn.relu(%a)"
        text.append(f"def @f{level}(%a: {kind}) -> {kind} {{\n{body}\n}}")
    text.append(f"def @main(%x: {kind}) {{\n  @f{levels - 1}(%x)\n}}\n")
    return "\n".join(text)


def calls_of_variables(levels: int = 25) -> str:
    kind = "Tensor[(2), float32]"
    text = [f'#[version = "0.0.5"]\ndef @main(%x: {kind}) {{']
    for level in range(levels):
        inner = f"%f{level - 1}"
        body = f"let %b = {inner}(%a); {inner}(%b)" if level else "nn.relu(%a)"
        text.append(f"  let %f{level} = fn (%a: {kind}) -> {kind} {{ {body} }};")
    return "\n".join([*text, f"  %f{levels - 1}(%x)", "}\n"])


def written(tmp_path: Path, model: onnx.ModelProto) -> Path:
    path = tmp_path / "bomb.onnx"
    onnx.save(model, path)
    return path


KEPT: dict[str, tuple[Callable[[], onnx.ModelProto], dict[str, int]]] = {
    "expands": (expands, {"Expand": 40}),
    "products": (products, {"MatMul": 50}),
    "convolution": (convolution, {"Conv": 1}),
    "lengths": (lengths, {"Mul": 30}),
    "sums of lengths": (sums_of_lengths, {"Mul": 30}),
}


@pytest.mark.wide
@pytest.mark.parametrize(("make", "left"), KEPT.values(), ids=KEPT)
def test_what_takes_much_stays_as_the_source_says(
    tmp_path: Path, make: Callable[[], onnx.ModelProto], left: dict[str, int]
) -> None:
    target = tmp_path / "out.onnx"
    serde.convert(written(tmp_path, make()), target, simplify=False)
    assert target.stat().st_size < Limits().constants + 2**16
    found = [node.op_type for node in onnx.load(target).graph.node]
    assert {op: found.count(op) for op in left} == left


def test_weights_of_weights_take_no_more_than_the_limits(tmp_path: Path) -> None:
    source, target = written(tmp_path, chain_of_weights()), tmp_path / "out.onnx"
    report = serde.convert(source, target, limits={"elements": 3_000_000, "constants": 0})
    assert any("stay to be computed" in note for note in report.notes)
    assert target.stat().st_size < 2**22
    x = np.float32([[2]])
    for found, wanted in zip(outputs(target, x), outputs(source, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def outputs(path: Path, x: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = sorted((each.name for each in session.get_outputs()), key=lambda name: int(name[1:]))
    found: list[Any] = session.run(names, {"x": x})
    return found


def test_functions_that_call_twice_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="--limit nodes=1572862 allows it"):
        serde.convert(written(tmp_path, functions()), tmp_path / "out.onnx")
    with pytest.raises(LimitError, match="--limit nodes="):
        serde.to_relay(written(tmp_path, functions()), limits={"nodes": 1_500_000})


@pytest.mark.parametrize("suffix", ["onnx", "nnef"])
@pytest.mark.parametrize("text", [calls_of_globals(), calls_of_variables()], ids=["def", "let"])
def test_calls_that_double_are_refused(tmp_path: Path, text: str, suffix: str) -> None:
    source, target = tmp_path / "bomb.relay", tmp_path / f"out.{suffix}"
    source.write_text(text)
    with pytest.raises(LimitError, match="--limit nodes="):
        serde.convert(source, target)
    assert not target.exists()


def test_parts_beyond_any_tuple_are_no_type(tmp_path: Path) -> None:
    with pytest.raises(serde.SerdeError, match="more than the 50000 of a tuple"):
        serde.relay.split(serde.relay.var("x", shape=(10**8,)), 10**8)


HUGE = 2**33


def matrix(columns: list[int]) -> list[relay.Expr]:
    """Return a square CSR matrix of two rows, an element in each."""
    return [
        relay.const(np.array(each, dtype))
        for each, dtype in (([1, 2], "float32"), (columns, "int32"), ([0, 1, 2], "int32"))
    ]


def of_type(*shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=shape, dtype=dtype)


def pool() -> relay.Expr:
    size = (HUGE // 2, 2)
    return relay.nn.max_pool2d(of_type(1, 1, HUGE, 4), pool_size=size, dilation=(2, 2))


def coordinates() -> relay.Expr:
    shape = relay.var("shape", shape=(HUGE,), dtype="int64")
    return relay.unravel_index(of_type(4, dtype="int64"), shape)


def groups() -> relay.Expr:
    gamma, beta = (relay.var(name, shape=(HUGE,)) for name in ("gamma", "beta"))
    return relay.nn.group_norm(of_type(1, HUGE, 1, 1), gamma, beta, num_groups=HUGE)


def spectrum() -> relay.Expr:
    window = relay.var("window", shape=(2**21,))
    return relay.stft(of_type(1, 2**22), 2**21, 2**20, 2**21, window, False, True)


WRITTEN_OUT: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "grid": (
        lambda: relay.image.affine_grid(of_type(1, 2, 3), target_shape=(HUGE, 2)),
        ("onnx",),
    ),
    "coordinates": (coordinates, ("onnx", "coreml")),
    "morphology": (
        lambda: relay.image.dilation2d(
            of_type(1, 1, 2**21, 2**21), relay.var("w", shape=(1, 2**20, 2**20))
        ),
        ("onnx", "mxnet", "nnef"),
    ),
    "neighbours": (
        lambda: relay.nn.lrn(of_type(1, 4, 4, 5), size=HUGE + 1, axis=3),
        ("coreml",),
    ),
    "groups": (groups, ("onnx",)),
    "spectrum": (spectrum, ("onnx", "mxnet", "nnef")),
    "windows": (pool, ("mxnet", "coreml")),
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "target"), [(name, to) for name, (_, formats) in WRITTEN_OUT.items() for to in formats]
)
def test_what_is_written_element_by_element_is_limited(name: str, target: str) -> None:
    module = relay.IRModule.from_expr(WRITTEN_OUT[name][0]())
    with pytest.raises(LimitError, match=r"--limit (nodes|constants)="):
        serde.export_model(module, {}, format=target)


@pytest.mark.wide
@pytest.mark.parametrize("target", ["onnx", "mxnet", "coreml"])
@pytest.mark.parametrize("column", [2**30, 2, -3])
def test_a_column_that_is_not_there_is_refused(column: int, target: str) -> None:
    transposed = relay.nn.sparse_transpose(matrix([0, column]))
    module = relay.IRModule.from_expr(transposed.astuple())
    with pytest.raises(serde.UnsupportedModelError, match=rf"columns .*{column}.* of 2"):
        serde.export_model(module, {}, format=target)


def test_a_weight_whose_values_matter_is_looked_at_within_a_limit() -> None:
    assembly = Assembly()
    ctx = ImportContext(17)
    ctx._assembly = assembly
    weight = assembly.variable(ArrayWeight(np.ones(2**12, np.float32)), "w")
    with spending({"values": 2**14}):
        assert ctx.is_constant(weight)
        np.testing.assert_array_equal(ctx.constant(weight), np.ones(2**12))
    with spending({"values": 2**14 - 1}):
        assert not ctx.is_constant(weight)
        with pytest.raises(LimitError, match="--limit values=16384 allows it"):
            ctx.constant(weight)
