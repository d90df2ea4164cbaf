"""Functions of TIR in modules of Relax: read as TVM computes them, or refused for a true reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from support.relax_calls import CALLS
from support.relax_imports import CallCase, build, compare, read_and_run, run_in_tvm
from support.relax_tir import READ, REFUSED
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

import serde
import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.visit import post_order

PROGRAMS = (
    "median*", "vision.roi_align-*--1", "vision.get_valid_counts", "vision.*non_max_suppression*",
)  # fmt: skip
"""Calls of which legalisation makes programs, with sorts and loops as long as data tell."""

FIRST = frozenset(
    ("matmul", "nn.conv2d", "nn.max_pool2d-pad", "nn.softmax-1", "argmax-1", "concat", "take-nan")
)
X = np.random.default_rng(4).standard_normal((8, 16)).astype(np.float32)


def _is_program(name: str) -> bool:
    return any(Path(name).match(each) for each in PROGRAMS)


def _legal(case: CallCase) -> Any:
    return relax.transform.LegalizeOps()(build(case[1], case[2]))


def _calls(*, programs: bool) -> list[Any]:
    return [
        pytest.param(case, id=case[0], marks=[] if case[0] in FIRST else pytest.mark.wide)
        for case in CALLS
        if _is_program(case[0]) is programs
    ]


@pytest.mark.sparse(3)
@pytest.mark.parametrize("case", _calls(programs=False))
def test_what_legalisation_makes_of_a_call_is_read_as_tvm_computes_it(case: CallCase) -> None:
    module = _legal(case)
    compare(read_and_run(module, case[2]), run_in_tvm(module, case[2]))


@pytest.mark.parametrize("case", _calls(programs=True))
def test_a_program_is_refused(case: CallCase) -> None:
    with pytest.raises(UnsupportedModelError, match=r"a function of TIR: a (program|loop)"):
        serde.to_relay(_legal(case))


@pytest.mark.parametrize("name", READ)
def test_a_function_written_by_hand_is_read_as_tvm_computes_it(name: str) -> None:
    compare(read_and_run(READ[name], [X]), run_in_tvm(READ[name], [X]))


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_whose_order_matters_is_refused(name: str) -> None:
    module, reason = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(module)


def _net(x: Any, w: Any, b: Any) -> Any:
    made = relax.op.nn.conv2d(x, w, strides=2, padding=1, groups=2)
    return relax.op.nn.max_pool2d(relax.op.nn.relu(relax.op.add(made, b)), (3, 3), padding=1)


NET = [np.random.default_rng(5).standard_normal(each).astype(np.float32) for each in (
    (2, 4, 9, 9), (6, 2, 3, 3), (6, 1, 1)
)]  # fmt: skip


def _fuse(module: Any) -> Any:
    passes = ["LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR"]
    steps = [getattr(relax.transform, each)() for each in passes]
    return tvm.ir.transform.Sequential(steps)(module)


@pytest.mark.parametrize("lower", [relax.transform.LegalizeOps(), _fuse], ids=["legal", "fused"])
def test_operators_are_found_again(lower: Callable[[Any], Any]) -> None:
    """A convolution and a pooling pad by themselves, as before they were lowered."""
    module = lower(build(_net, NET))
    model = serde.to_relay(module)
    nodes = [each for each in post_order(model.main.body) if isinstance(each, relay.Call)]
    names = [each.op.name for each in nodes]
    assert names == ["nn.conv2d", "add", "maximum", "nn.max_pool2d"]
    assert nodes[0].attrs["padding"] == nodes[-1].attrs["padding"] == (1, 1, 1, 1)
    assert nodes[0].attrs["groups"] == 2
    compare(read_and_run(module, NET), run_in_tvm(module, NET))


def test_a_length_that_is_open_stays_so() -> None:
    """Reshapes, joined axes and shifted ones are proved for any length."""
    n = tvm.tirx.Var("n", "int64")

    def body(x: Any, y: Any) -> Any:
        flat = relax.op.reshape(relax.op.concat([x, y], axis=0), (2 * n, 12))
        parts = relax.op.strided_slice(flat, axes=[1], begin=[1], end=[12], strides=[2])
        return relax.op.nn.softmax(relax.op.permute_dims(parts), axis=0)

    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType((n, 3, 4), "float32")) for name in "xy"]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(body(*params)))
    module = relax.transform.LegalizeOps()(builder.get())
    model = serde.to_relay(module)
    names = {each.op.name for each in post_order(model.main.body) if isinstance(each, relay.Call)}
    assert names.isdisjoint(("take", "gather", "where"))
    arrays = [np.random.default_rng(i).standard_normal((5, 3, 4)).astype("f4") for i in range(2)]
    compare(read_and_run(module, arrays), run_in_tvm(module, arrays))


@pytest.mark.parametrize("annotate", [False, True])
def test_partitioned_functions_are_read_as_what_their_bodies_say(annotate: bool) -> None:
    relu = is_op("relax.nn.relu")(is_op("relax.add")(wildcard(), wildcard()))
    fuse = relax.transform.FuseOpsByPattern([("my.add_relu", relu)], annotate_codegen=annotate)
    plain = build(_net, NET)
    module = fuse(plain) if annotate else relax.transform.MergeCompositeFunctions()(fuse(plain))
    assert "Composite" in module.script()
    expected = run_in_tvm(plain, NET)
    compare(read_and_run(module, NET), expected)
    compare(read_and_run(relax.transform.LegalizeOps()(module), NET), expected)


def test_a_folder_of_a_lowered_module_is_read(tmp_path: Path) -> None:
    module = relax.transform.LegalizeOps()(build(_net, NET))
    folder = tmp_path / "net_relax"
    folder.mkdir()
    (folder / "model.py").write_text(module.script(show_meta=True))
    tvm.runtime.save_param_dict_to_file({}, str(folder / "model.params"))
    expected = serde.to_relay(module)
    assert serde.to_relay(folder).mod.astext() == expected.mod.astext()


@pytest.mark.parametrize(
    ("name", "args", "shape", "expected"),
    [
        ("topi.nn.space_to_batch_nd", [(2,), (1,), (1,), 0.0], (4, 2, 2), "nn.space_to_batch_nd"),
        ("topi.nn.batch_to_space_nd", [(2,), (0,), (1,)], (1, 3, 2), "nn.batch_to_space_nd"),
        ("tvm.contrib.random.normal", None, (2, 3), "serde.random_normal"),
    ],
)
def test_functions_that_importers_call_by_name_are_operators(
    name: str, args: Any, shape: tuple[int, ...], expected: str
) -> None:
    given = [0, 0, 0.0, 1.0] if args is None else args
    values = [relax.ShapeExpr(each) if isinstance(each, tuple) else each for each in given]

    def call(x: Any) -> Any:
        tensors = [] if args is None else [x]
        type_ = relax.TensorType(shape, "float32")
        return relax.op.call_dps_packed(name, (*tensors, *values), out_ty=type_)

    model = serde.to_relay(build(call, [np.zeros((2, 2, 2), np.float32)]))
    assert isinstance(model.main.body, relay.Call)
    assert model.main.body.op.name == expected
    assert model.main.body.checked_type.concrete_shape == shape


def test_what_legalisation_calls_for_operators_is_read_as_these() -> None:
    array = np.array([[0, 1, 2], [3, 0, 0]], np.float32)
    module = _legal(("nonzero", relax.op.nonzero, [array]))
    assert "relax.run.nonzero" in module.script()
    compare(read_and_run(module, [array]), [np.stack(np.nonzero(array))])
