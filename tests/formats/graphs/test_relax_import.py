"""Modules of Relax as Relay: bindings, tuples, shapes, conditionals, functions, weights, gaps."""

# ruff: noqa: N805, as functions of Relax have no self.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from support.relax_imports import read_and_run
from tvm import relax
from tvm.script import (
    ir as I,  # noqa: N812, as TVM's scripts have it
    relax as R,  # noqa: N812
    tirx as T,  # noqa: N812
)

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import FormatError, OptionError, UnsupportedModelError
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import post_order

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@I.ir_module
class Shapes:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m",), "float32")):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            flat = R.reshape(x, R.shape([n * 2, 2]))
            shape = R.shape_of(flat)
            lengths = R.shape_to_tensor(R.shape([n * 2 + 1, m // 2, T.max(n, m)]))
            R.output(flat, shape, lengths)
        return flat, (shape, (y, lengths))


@I.ir_module
class Tuples:
    @R.function
    def main(
        x: R.Tensor((3, 4), "float32"),
        packed: R.Tuple(
            R.Tensor((4,), "float32"),
            R.Tuple(R.Tensor((3, 1), "float32"), R.Tensor((4,), "float32")),
        ),
    ):
        R.func_attr({"num_input": 1})
        scaled = R.multiply(x, packed[0])
        rest = packed[1]
        return R.add(R.subtract(scaled, rest[0]), rest[1])


@I.ir_module
class Branches:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), c: R.Tensor((), "bool")):
        cls = Branches
        pair = cls.split(x)
        if c:
            total = R.add(pair[0], pair[1])
            chosen = (total, x)
        else:
            rest = R.subtract(pair[0], pair[1])
            chosen = (rest, pair[0])
        return chosen[0], chosen[1]

    @R.function(private=True)
    def split(x: R.Tensor(("m", 4), "float32")) -> R.Tuple(
        R.Tensor(("m", 4), "float32"), R.Tensor(("m", 4), "float32")
    ):
        m = T.int64()
        return R.nn.relu(x), R.broadcast_to(R.const(1.0, "float32"), R.shape([m, 4]))


@I.ir_module
class Doubling:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), n: R.Tensor((), "int64")):
        cls = Doubling
        last = cls.turn(R.const(0, "int64"), n, x)
        return last

    @R.function(private=True)
    def turn(
        i: R.Tensor((), "int64"), n: R.Tensor((), "int64"), x: R.Tensor((3, 4), "float32")
    ) -> R.Tensor((3, 4), "float32"):
        cls = Doubling
        going = R.less(i, n)
        if going:
            later = R.add(i, R.const(1, "int64"))
            twice = R.multiply(x, R.const(2.0, "float32"))
            found = cls.turn(later, n, twice)
        else:
            found = x
        return found


@I.ir_module
class Casts:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        k = T.int64()
        places = R.nonzero(x)
        known = R.match_cast(places, R.Tensor((2, k), "int64"))
        grown = R.reshape(known, R.shape([k, 2]))
        more = R.full(R.shape([k + 1]), R.const(1.0, "float32"))
        return grown, more


@I.ir_module
class Weighted:
    @R.function
    def main(
        x: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 2), "float32"), b: R.Tensor((2,), "float32")
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            found = R.add(R.matmul(x, w), b)
            R.output(found)
        return found


W = {"w": np.ones((4, 2), np.float32), "b": np.float32([1, 2])}


def _call(build: Any, *arrays: np.ndarray) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    variables = [
        relax.Var(f"x{i}", relax.TensorType(list(a.shape), a.dtype.name))
        for i, a in enumerate(arrays)
    ]
    with builder.function("main", variables):
        builder.emit_func_output(builder.emit(build(*variables)))
    return builder.get()


def _operators(model: serde.RelayModel) -> list[str]:
    nodes = post_order(model.main.body)
    return [n.op.name for n in nodes if isinstance(n, Call) and isinstance(n.op, OpDef)]


def test_lengths_are_symbols_and_shapes_vectors() -> None:
    model = serde.to_relay(Shapes)
    assert [str(each.checked_type) for each in model.inputs()] == [
        "Tensor[(n, 4), float32]",
        "Tensor[(m), float32]",
    ]
    assert model.meta.outputs == ("output0", "output1", "output2", "output3")
    flat, shape, y, lengths = read_and_run(Shapes, [X, np.zeros(5, np.float32)])
    np.testing.assert_array_equal(flat, X.reshape(6, 2))
    np.testing.assert_array_equal(shape, [6, 2])
    np.testing.assert_array_equal(y, np.zeros(5))
    np.testing.assert_array_equal(lengths, [7, 2, 5])


def test_given_shapes_fix_the_symbols_of_all_inputs() -> None:
    model = serde.to_relay(Shapes, input_shapes={"x": (3, 4), "y": (5,)})
    assert str(model.main.body.checked_type) == (
        "(Tensor[(6, 2), float32], Tensor[(2), int64], Tensor[(5), float32], Tensor[(3), int64])"
    )


@pytest.mark.parametrize("condition", [True, False])
def test_conditionals_and_private_functions_with_tuples(condition: bool) -> None:
    first, second = read_and_run(Branches, [X - 5, np.array(condition)])
    rectified = np.maximum(X - 5, 0)
    np.testing.assert_array_equal(first, rectified + 1 if condition else rectified - 1)
    np.testing.assert_array_equal(second, X - 5 if condition else rectified)


@pytest.mark.parametrize("count", [0, 5])
def test_a_function_that_calls_itself_is_a_loop(count: int) -> None:
    (found,) = read_and_run(Doubling, [X, np.array(count)])
    np.testing.assert_array_equal(found, X * 2**count)


def test_recursion_becomes_a_loop_of_onnx() -> None:
    proto = serde.export_model(Doubling, format="onnx")
    assert [node.op_type for node in proto.graph.node] == ["Loop"]


def test_lengths_that_a_cast_shows_are_computed() -> None:
    grown, more = read_and_run(Casts, [X])
    np.testing.assert_array_equal(grown, np.stack(np.nonzero(X)).reshape(11, 2))
    np.testing.assert_array_equal(more, np.ones(12))


@pytest.mark.parametrize(
    "params",
    [W, list(W.values()), {"main": [tvm.runtime.tensor(each) for each in W.values()]}],
    ids=["names", "order", "detached"],
)
def test_weights_are_taken_in_every_form(params: Any) -> None:
    model = serde.to_relay(Weighted, params)
    assert list(model.params) == ["w", "b"]
    assert model.meta.inputs == ("x",)
    (found,) = read_and_run(Weighted, [X], params)
    np.testing.assert_array_equal(found, X @ W["w"] + W["b"])


def test_weights_in_an_attribute_are_taken_without_a_copy() -> None:
    held = [tvm.runtime.tensor(each) for each in W.values()]
    module = tvm.IRModule({"main": Weighted["main"].with_attr("params", held)})
    model = serde.to_relay(module)
    view = model.params["w"].rows(0, 4)
    assert view.ctypes.data == np.from_dlpack(held[0]).ctypes.data


def test_missing_and_unknown_weights_are_told() -> None:
    with pytest.raises(OptionError, match="no value for b"):
        serde.to_relay(Weighted, {"w": W["w"]})
    with pytest.raises(OptionError, match="no weight of main is called c"):
        serde.to_relay(Weighted, {**W, "c": W["b"]})


def test_the_only_public_function_is_read_or_the_one_that_is_told() -> None:
    public = Doubling["turn"].with_attr("global_symbol", "turn")
    module = tvm.IRModule({"one": Weighted["main"].with_attr("global_symbol", "one")})
    assert serde.to_relay(module, W).meta.inputs == ("x",)
    module["two"] = Shapes["main"].with_attr("global_symbol", "two")
    with pytest.raises(OptionError, match="give function=, one of one, two"):
        serde.to_relay(module)
    assert serde.to_relay(module, function="two").meta.inputs == ("x", "y")
    assert public.attrs["global_symbol"] == "turn"


def test_functions_of_tir_that_are_programs_are_refused_with_a_hint() -> None:
    module = relax.transform.LegalizeOps()(_call(lambda x: relax.op.median(x, axis=None), X))
    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(module)
    (issue,) = caught.value.report.issues
    assert issue.op == "relax.call_tir"
    assert issue.hint is not None
    assert "LegalizeOps" in issue.hint
    assert "median, a function of TIR: a program" in issue.reason


def test_all_gaps_are_listed_once() -> None:
    def build(x: Any, y: Any) -> Any:
        packed = relax.op.call_pure_packed("f", x, ty_args=relax.TensorType((3, 4), "float32"))
        return relax.op.add(packed, relax.op.ccl.allreduce(y))

    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(_call(build, X, X))
    assert sorted(each.op for each in caught.value.report.issues) == [
        "relax.call_pure_packed",
        "relax.ccl.allreduce",
    ]


def test_what_only_asserts_is_left_out_and_told() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((), "bool"))
    with builder.function("main", [x]):
        builder.emit(relax.op.assert_op(x, format="wrong"))
        builder.emit_func_output(builder.emit(relax.op.logical_not(x)))
    report = Report()
    assert _operators(serde.to_relay(builder.get(), report=report)) == ["logical_not"]
    assert any("asserts" in each for each in report.notes)


def test_users_converters_come_first() -> None:
    module = _call(relax.op.nn.relu, X)

    def by_map(inputs: list[Expr], attributes: dict[str, Any]) -> Expr:
        assert attributes == {}
        return relay.negative(inputs[0])

    found = serde.to_relay(module, custom_convert_map={"relax.nn.relu": by_map})
    assert _operators(found) == ["negative"]
    found = serde.to_relay(module, converters={"relax.nn.relu": lambda ctx, x: relay.exp(x)})
    assert _operators(found) == ["exp"]
    with pytest.raises(OptionError, match="expected 1 expressions"):
        serde.to_relay(module, custom_convert_map={"relax.nn.relu": lambda inputs, attributes: 1})


def test_the_same_constant_is_one_weight() -> None:
    held = relax.const(np.arange(4, dtype=np.float32))
    module = _call(lambda x: relax.op.multiply(relax.op.add(x, held), held), X)
    assert len(serde.to_relay(module).params) == 1


def test_other_inputs_than_tensors_are_refused() -> None:
    builder = relax.BlockBuilder()
    thing = relax.Var("s", relax.ObjectType())
    with builder.function("main", [thing]):
        builder.emit_func_output(builder.emit(relax.op.zeros((3,), "float32")))
    with pytest.raises(UnsupportedModelError, match="Relay has tensors only"):
        serde.to_relay(builder.get())


def test_an_input_of_unknown_shape_needs_one() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(None, "float32", ndim=-1))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    with pytest.raises(OptionError, match="shape of x is missing"):
        serde.to_relay(builder.get())
    model = serde.to_relay(builder.get(), input_shapes={"x": (2, "k")})
    assert str(model.main.body.checked_type) == "Tensor[(2, k), float32]"


def test_deep_nesting_is_an_error_of_the_file() -> None:
    x = relax.Var("x", relax.TensorType((3,), "float32"))
    body = x
    for _ in range(300):
        body = relax.Tuple([body])
    module = tvm.IRModule({"main": relax.Function([x], body, relax.ObjectType(), is_pure=True)})
    with pytest.raises(FormatError, match="nested"):
        serde.to_relay(module)


def test_every_operator_of_tvm_is_read_or_refused_by_name() -> None:
    from serde.relax.import_functions import FunctionWalk
    from serde.relax.import_walk import PLAIN
    from serde.relax.ops import TABLE

    read = {name for name, _version in TABLE.imported()} | {*PLAIN, *FunctionWalk.calls}
    known = {name for name in map(str, tvm.ir.Op.list_op_names()) if name.startswith("relax.")}
    refused = set(TABLE.refused())
    assert known - read - refused == set()
    assert read & refused == {"relax.call_dps_packed", "relax.call_pure_packed"}


def test_tensors_in_tuples_are_inputs_and_weights_of_their_own() -> None:
    weights = [X[0] + 1, X[:, :1], X[2]]
    machine = relax.VirtualMachine(tvm.compile(Tuples, target="llvm"), tvm.cpu())
    x, scale, column, row = map(tvm.runtime.tensor, [X, *weights])
    expected = machine["main"](x, (scale, (column, row))).numpy()
    assert list(serde.to_relay(Tuples, weights).params) == ["packed_0", "packed_1_0", "packed_1_1"]
    np.testing.assert_array_equal(read_and_run(Tuples, [X], weights)[0], expected)
