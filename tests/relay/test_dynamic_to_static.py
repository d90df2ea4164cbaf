"""Operators that read shapes from tensors, once these tensors are known; and other batches."""

import numpy as np
import pytest
from support.layout_cases import assert_same_numbers, names, program

import serde.relay as relay
from serde.relay.build_module import bind_params_by_name
from serde.relay.transform import DynamicToStatic, InferType

X = {"x": "(2, 3)"}
IMAGE = {"x": "(1, 2, 4, 4)"}
VOLUME = {"x": "(1, 2, 2, 2, 2)"}
TOPK = 'axis=1, ret_type="values", is_ascend=False, dtype="int32"'
ROI = "roi=[0f, 0f, 0f, 0f]"

# Parameters, values of those that become constants, the program, and the one that results.
CASES = {
    "reshape": (X, {"s": [3, 2]}, "dyn.reshape(%x, %s)", "reshape(%x, newshape=[3, 2])"),
    "reshape with a rest": (X, {"s": [-1]}, "dyn.reshape(%x, %s)", "reshape(%x, newshape=[-1])"),
    "reshape into a new axis": (
        X, {"s": [2, 1, 3]}, "dyn.reshape(%x, %s)", "reshape(%x, newshape=[2, 1, 3])",
    ),
    "two reshapes": (
        X,
        {"s": [3, 2], "t": [6]},
        "%0 = dyn.reshape(%x, %s); dyn.reshape(%0, %t)",
        "%0 = reshape(%x, newshape=[3, 2]); reshape(%0, newshape=[6])",
    ),
    "the shape of a reshape": (
        {"x": "(2, 3)", "y": "(6)"},
        {"s": [3, 2]},
        '%0 = dyn.reshape(%x, %s); %1 = shape_of(%0, dtype="int64"); dyn.reshape(%y, %1)',
        "reshape(%y, newshape=[3, 2])",
    ),
    "the shape of a variable": (
        {"x": "(2, 3)", "y": "(3, 2)"},
        {},
        '%0 = shape_of(%y, dtype="int64"); dyn.reshape(%x, %0)',
        "reshape(%x, newshape=[3, 2])",
    ),
    "a shape that is computed": (
        X,
        {"s": [1, 2]},
        "%0 = add(%s, 1i64); %1 = reverse(%0, axis=0); dyn.reshape(%x, %1)",
        "reshape(%x, newshape=[3, 2])",
    ),
    "squeeze": (
        {"x": "(1, 2, 1)"}, {"s": [0]}, "dyn.squeeze(%x, %s)", "squeeze(%x, axis=[0])",
    ),
    "squeeze of two": (
        {"x": "(1, 2, 1)"}, {"s": [0, 2]}, "dyn.squeeze(%x, %s)", "squeeze(%x, axis=[0, 2])",
    ),
    "expand dims": (X, {}, "dyn.expand_dims(%x, 1)", "expand_dims(%x, axis=1)"),
    "tile": (X, {"s": [2, 1]}, "dyn.tile(%x, %s)", "tile(%x, reps=[2, 1])"),
    "tile into a new axis": (X, {"s": [2, 1, 1]}, "dyn.tile(%x, %s)", "tile(%x, reps=[2, 1, 1])"),
    "topk": (X, {}, f"dyn.topk(%x, 2, {TOPK})", f"topk(%x, k=2, {TOPK})"),
    "broadcast to": (
        X, {"s": [4, 2, 3]}, "dyn.broadcast_to(%x, %s)", "broadcast_to(%x, shape=[4, 2, 3])",
    ),
    "zeros": (
        X,
        {"s": [2, 3]},
        '%0 = dyn.zeros(%s, dtype="float32"); add(%x, %0)',
        '%0 = zeros(shape=[2, 3], dtype="float32"); add(%x, %0)',
    ),
    "ones": (
        X,
        {"s": [4, 1, 1]},
        '%0 = dyn.ones(%s, dtype="float32"); add(%x, %0)',
        '%0 = ones(shape=[4, 1, 1], dtype="float32"); add(%x, %0)',
    ),
    "full": (
        {"x": "(), float32"},
        {"s": [2, 3]},
        'dyn.full(%x, %s, dtype="float32")',
        'full(%x, shape=[2, 3], dtype="float32")',
    ),
    "one hot": (
        {"x": "(3), int32"},
        {},
        'dyn.one_hot(%x, 1f, 0f, 4, axis=-1, dtype="float32")',
        'one_hot(%x, 1f, 0f, depth=4, axis=-1, dtype="float32")',
    ),
    "upsampling": (
        IMAGE, {}, "dyn.nn.upsampling(%x, 2f, 3f)", "nn.upsampling(%x, scale_h=2f, scale_w=3f)",
    ),
    "upsampling of a volume": (
        VOLUME,
        {},
        "dyn.nn.upsampling3d(%x, 2f, 3f, 1f)",
        "nn.upsampling3d(%x, scale_d=2f, scale_h=3f, scale_w=1f)",
    ),
    "pad": (
        X,
        {"s": [[0, 1], [2, 0]]},
        "dyn.nn.pad(%x, %s, 1f)",
        "nn.pad(%x, 1f, pad_width=[[0, 1], [2, 0]])",
    ),
    "pad by edges": (
        X,
        {"s": [[0, 1], [2, 0]]},
        'dyn.nn.pad(%x, %s, 1f, pad_mode="edge")',
        'nn.pad(%x, 1f, pad_width=[[0, 1], [2, 0]], pad_mode="edge")',
    ),
    "resize": (
        IMAGE,
        {"s": [8, 6], "r": [0.0, 0.0, 0.0, 0.0]},
        "dyn.image.resize2d(%x, %s, %r)",
        f"image.resize2d(%x, size=[8, 6], {ROI})",
    ),
    "strided slice": (
        X,
        {"s": [0, 1], "t": [2, 3], "u": [1, 1]},
        "dyn.strided_slice(%x, %s, %t, %u, axes=None)",
        "strided_slice(%x, begin=[0, 1], end=[2, 3], strides=[1, 1], axes=None)",
    ),
    "strided slice with steps": (
        X,
        {"s": [0, 0], "t": [2, 3], "u": [1, 2]},
        "dyn.strided_slice(%x, %s, %t, %u, axes=None)",
        "strided_slice(%x, begin=[0, 0], end=[2, 3], strides=[1, 2], axes=None)",
    ),
    "a field": (
        X,
        {"s": [6]},
        "%0 = dyn.reshape(%x, %s); (%0, %x)",
        "%0 = reshape(%x, newshape=[6]); (%0, %x)",
    ),
    "branches": (
        X,
        {"s": [6]},
        "%0 = sum(%x); %1 = greater(%0, 0f); "
        "if (%1) { dyn.reshape(%x, %s) } else { %2 = tanh(%x); dyn.reshape(%2, %s) }",
        "%0 = sum(%x); %1 = greater(%0, 0f); if (%1) { reshape(%x, newshape=[6]) } "
        "else { %2 = tanh(%x); reshape(%2, newshape=[6]) }",
    ),
    "let": (
        X,
        {"s": [6]},
        "let %y = dyn.reshape(%x, %s); tanh(%y)",
        "let %y = reshape(%x, newshape=[6]); tanh(%y)",
    ),
    "let of a shape": (
        X,
        {"s": [6]},
        "let %y = %s; dyn.reshape(%x, %y)",
        "reshape(%x, newshape=[6])",
    ),
}  # fmt: skip


def _bound(params: dict[str, str], values: dict[str, object], body: str) -> relay.IRModule:
    arrays = {key: np.array(each) for key, each in values.items()}
    types = {
        key: f"({', '.join(map(str, each.shape))}), "
        + ("float32" if each.dtype.kind == "f" else "int64")
        for key, each in arrays.items()
    }
    mod = program({**params, **types}, body)
    ready = {
        key: each.astype("float32" if each.dtype.kind == "f" else "int64")
        for key, each in arrays.items()
    }
    return InferType()(relay.IRModule.from_expr(bind_params_by_name(mod["main"], ready)))


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES)
def test_a_shape_that_is_known_becomes_an_attribute(case: str) -> None:
    params, values, before, after = CASES[case]
    mod = _bound(params, values, before)
    found, changed = DynamicToStatic().run(mod)
    assert changed
    wanted = program(params, after)
    assert relay.structural_equal(found["main"], wanted["main"]), found.astext()
    assert_same_numbers(mod, found)


@pytest.mark.parametrize("case", CASES)
def test_a_static_program_stays(case: str) -> None:
    params, _, _, after = CASES[case]
    mod = program(params, after)
    assert DynamicToStatic().run(mod) == (mod, False)


DYNAMIC = {
    "reshape": ({"x": "(2, 3)", "s": "(2), int64"}, "dyn.reshape(%x, %s)"),
    "tile": ({"x": "(2, 3)", "s": "(2), int64"}, "dyn.tile(%x, %s)"),
    "broadcast": ({"x": "(2, 3)", "s": "(3), int64"}, "dyn.broadcast_to(%x, %s)"),
    "topk": ({"x": "(2, 3)", "s": "(), int64"}, f"dyn.topk(%x, %s, {TOPK})"),
    "ones": ({"s": "(2), int64"}, 'dyn.ones(%s, dtype="float32")'),
    "a computed shape": (
        {"x": "(2, 3)", "s": "(2), int64"}, "%0 = add(%s, 1i64); dyn.reshape(%x, %0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DYNAMIC)
def test_a_shape_that_is_not_known_stays(case: str) -> None:
    mod = program(*DYNAMIC[case])
    assert DynamicToStatic().run(mod) == (mod, False)


def test_only_what_is_known_becomes_static() -> None:
    params = {"x": "(2, 3)", "t": "(1), int64"}
    mod = _bound(params, {"s": [3, 2]}, "%0 = dyn.reshape(%x, %s); dyn.reshape(%0, %t)")
    assert names(DynamicToStatic()(mod)) == ["reshape", "dyn.reshape"]


def test_constants_are_folded_on_the_way() -> None:
    mod = _bound(X, {"a": [[1.0, 2.0, 3.0]]}, "%0 = add(%a, %a); multiply(%x, %0)")
    found = DynamicToStatic()(mod)
    assert names(found) == ["multiply"]
    assert_same_numbers(mod, found)


@pytest.mark.wide
def test_a_deep_program() -> None:
    x = relay.var("x", shape=(2, 3))
    y = x
    for each in range(1000):
        shape = np.array([3, 2] if each % 2 == 0 else [2, 3])
        y = relay.dyn.reshape(relay.tanh(y), relay.const(shape))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], y)))
    assert set(names(DynamicToStatic()(mod))) == {"tanh", "reshape"}
