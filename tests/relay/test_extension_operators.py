"""Extension operators, whole and decomposed, against other implementations."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose

RNG = np.random.default_rng(5)


def results(name: str, *operands: Any, **attrs: Any) -> list[np.ndarray]:
    """What an operator yields as it is, and in plain Relay."""
    variables = [
        None if each is None else Var(f"x{i}", TensorType(each.shape, each.dtype))
        for i, each in enumerate(operands)
    ]
    given = [each for each in variables if each is not None]
    mod = relay.IRModule({"main": Function(given, call(name, *variables, **attrs))})
    plain, changed = Decompose(frozenset()).run(mod)
    assert changed
    relay.verify(plain)
    arrays = [each for each in operands if each is not None]
    return [run(each["main"], arrays) for each in (mod, plain)]


def reference(op: str, version: int, *operands: Any, **attrs: Any) -> np.ndarray:
    """What ONNX's own reference computes for one node."""
    names = ["" if each is None else f"x{i}" for i, each in enumerate(operands)]
    while not names[-1]:
        names.pop()
    feeds = {name: each for name, each in zip(names, operands, strict=False) if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in feeds.items()
    ]
    node = helper.make_node(op, names, ["y"], **attrs)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    return ReferenceEvaluator(model).run(None, feeds)[0]


TABLE = (((np.arange(18) * 7 % 11) - 5).reshape(6, 3) / 4).astype(np.float32)
INDICES = np.array([1, 2, 4, 5, 4, 3, 2, 0])
FACTORS = np.array([0.5, -1, 2, 0.25, 1, -2, 3, 0.75], np.float32)
FORMS: dict[str, dict[str, Any]] = {
    "flat": {"offsets": np.array([0, 3, 3, 6])},
    "last": {"offsets": np.array([0, 3, 3, 8]), "include_last_offset": True},
    "rows": {"offsets": None},
}
# mode, form, padding_idx, whether factors are given, what torch.nn.functional.embedding_bag
# of PyTorch 2.13.0 returned
BAGS = [
    (
        "sum",
        "flat",
        None,
        False,
        [[2.75, -0.25, -0.5], [0.0, 0.0, 0.0], [1.5, -1.5, 1.0], [-0.25, 0.5, -1.5]],
    ),
    ("sum", "last", None, False, [[2.75, -0.25, -0.5], [0.0, 0.0, 0.0], [1.25, -1.0, -0.5]]),
    ("sum", "rows", None, False, [[3.0, -1.0, 0.5], [1.0, -0.25, -1.5]]),
    (
        "sum",
        "flat",
        4,
        False,
        [[2.25, 0.25, -1.75], [0.0, 0.0, 0.0], [1.0, -1.0, -0.25], [-0.25, 0.5, -1.5]],
    ),
    ("sum", "last", 4, False, [[2.25, 0.25, -1.75], [0.0, 0.0, 0.0], [0.75, -0.5, -1.75]]),
    ("sum", "rows", 4, False, [[2.5, -0.5, -0.75], [0.5, 0.25, -2.75]]),
    (
        "sum",
        "flat",
        -6,
        False,
        [[2.75, -0.25, -0.5], [0.0, 0.0, 0.0], [1.5, -1.5, 1.0], [1.0, 0.0, -1.0]],
    ),
    ("sum", "last", -6, False, [[2.75, -0.25, -0.5], [0.0, 0.0, 0.0], [2.5, -1.5, 0.0]]),
    ("sum", "rows", -6, False, [[3.0, -1.0, 0.5], [2.25, -0.75, -1.0]]),
    (
        "mean",
        "flat",
        None,
        False,
        [
            [0.91666669, -0.08333334, -0.16666667],
            [0.0, 0.0, 0.0],
            [0.5, -0.5, 0.33333334],
            [-0.125, 0.25, -0.75],
        ],
    ),
    (
        "mean",
        "last",
        None,
        False,
        [[0.91666669, -0.08333334, -0.16666667], [0.0, 0.0, 0.0], [0.25, -0.2, -0.1]],
    ),
    ("mean", "rows", None, False, [[0.75, -0.25, 0.125], [0.25, -0.0625, -0.375]]),
    (
        "mean",
        "flat",
        4,
        False,
        [[1.125, 0.125, -0.875], [0.0, 0.0, 0.0], [0.5, -0.5, -0.125], [-0.125, 0.25, -0.75]],
    ),
    (
        "mean",
        "last",
        4,
        False,
        [[1.125, 0.125, -0.875], [0.0, 0.0, 0.0], [0.1875, -0.125, -0.4375]],
    ),
    (
        "mean",
        "rows",
        4,
        False,
        [[0.83333331, -0.16666667, -0.25], [0.16666667, 0.08333334, -0.91666669]],
    ),
    (
        "mean",
        "flat",
        -6,
        False,
        [
            [0.91666669, -0.08333334, -0.16666667],
            [0.0, 0.0, 0.0],
            [0.5, -0.5, 0.33333334],
            [1.0, 0.0, -1.0],
        ],
    ),
    (
        "mean",
        "last",
        -6,
        False,
        [[0.91666669, -0.08333334, -0.16666667], [0.0, 0.0, 0.0], [0.625, -0.375, 0.0]],
    ),
    ("mean", "rows", -6, False, [[0.75, -0.25, 0.125], [0.75, -0.25, -0.33333334]]),
    (
        "max",
        "flat",
        None,
        False,
        [[1.25, 0.25, 1.25], [0.0, 0.0, 0.0], [0.75, -0.25, 1.25], [1.0, 0.5, -0.5]],
    ),
    ("max", "last", None, False, [[1.25, 0.25, 1.25], [0.0, 0.0, 0.0], [1.0, 0.5, 1.25]]),
    ("max", "rows", None, False, [[1.25, 0.25, 1.25], [1.0, 0.5, 1.25]]),
    (
        "max",
        "flat",
        4,
        False,
        [[1.25, 0.25, -0.75], [0.0, 0.0, 0.0], [0.75, -0.25, 1.0], [1.0, 0.5, -0.5]],
    ),
    ("max", "last", 4, False, [[1.25, 0.25, -0.75], [0.0, 0.0, 0.0], [1.0, 0.5, 1.0]]),
    ("max", "rows", 4, False, [[1.25, 0.25, 1.0], [1.0, 0.5, -0.5]]),
    (
        "max",
        "flat",
        -6,
        False,
        [[1.25, 0.25, 1.25], [0.0, 0.0, 0.0], [0.75, -0.25, 1.25], [1.0, 0.0, -1.0]],
    ),
    ("max", "last", -6, False, [[1.25, 0.25, 1.25], [0.0, 0.0, 0.0], [1.0, 0.0, 1.25]]),
    ("max", "rows", -6, False, [[1.25, 0.25, 1.25], [1.0, 0.0, 1.25]]),
    (
        "sum",
        "flat",
        4,
        True,
        [[-0.375, 0.125, 0.625], [0.0, 0.0, 0.0], [-1.4375, 0.3125, 2.75], [2.0625, 0.375, -3.375]],
    ),
    ("sum", "rows", None, True, [[0.6875, -1.0625, 3.375], [1.0625, 0.375, 0.375]]),
]


@pytest.mark.parametrize(("mode", "form", "padding", "weighted", "expected"), BAGS)
def test_embedding_bag(
    mode: str, form: str, padding: int | None, weighted: bool, expected: list[list[float]]
) -> None:
    options = dict(FORMS[form])
    offsets = options.pop("offsets")
    shape = (2, 4) if offsets is None else (8,)
    factors = FACTORS.reshape(shape) if weighted else None
    found = results(
        "serde.embedding_bag",
        TABLE,
        INDICES.reshape(shape),
        offsets,
        factors,
        mode=mode,
        padding_idx=padding,
        **options,
    )
    for each in found:
        np.testing.assert_allclose(each, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_no_indices_are_zeros(mode: str) -> None:
    for each in results(
        "serde.embedding_bag", TABLE, np.zeros((2, 0), np.int64), None, None, mode=mode
    ):
        np.testing.assert_array_equal(each, np.zeros((2, 3), np.float32))


def test_factors_are_for_sums() -> None:
    with pytest.raises(TypeInferenceError, match="sample_weights are for mode sum, not max"):
        results("serde.embedding_bag", TABLE, INDICES, np.array([0]), FACTORS, mode="max")


# torch.nn.functional.fold of PyTorch 2.13.0
FOLDED = [
    [
        [
            [6.0, -3.0, 7.0, -4.0],
            [-4.0, 3.0, 0.0, -1.0],
            [-5.0, 1.0, 11.0, -2.0],
            [-2.0, 7.0, -9.0, 1.0],
            [-3.0, 5.0, -11.0, 0.0],
        ],
        [
            [4.0, -7.0, 3.0, -6.0],
            [-6.0, -1.0, 9.0, -3.0],
            [6.0, -3.0, 7.0, -4.0],
            [-4.0, 3.0, 0.0, -1.0],
            [-5.0, 1.0, 11.0, -2.0],
        ],
    ],
    [
        [
            [2.0, -11.0, -1.0, 5.0],
            [5.0, -5.0, 5.0, -5.0],
            [4.0, -7.0, 3.0, -6.0],
            [-6.0, -1.0, 9.0, -3.0],
            [6.0, -3.0, 7.0, -4.0],
        ],
        [
            [0.0, 11.0, -5.0, 3.0],
            [3.0, -9.0, 1.0, 6.0],
            [2.0, -11.0, -1.0, 5.0],
            [5.0, -5.0, 5.0, -5.0],
            [4.0, -7.0, 3.0, -6.0],
        ],
    ],
]


def test_col2im() -> None:
    columns = (np.arange(144) * 5 % 13 - 6).astype(np.float32).reshape(2, 8, 9)
    options = {"strides": (2, 1), "padding": (1, 0)}
    for each in results("serde.col2im", columns, image_shape=(5, 4), block_shape=(2, 2), **options):
        np.testing.assert_array_equal(each, np.array(FOLDED, np.float32))


@pytest.mark.parametrize("dilation", [(1, 1, 1), (1, 2, 1)])
def test_col2im_in_three_dimensions(dilation: tuple[int, ...]) -> None:
    counts = [n - d for n, d in zip((4, 3, 4), dilation, strict=True)]
    columns = RNG.integers(-9, 9, (1, 16, int(np.prod(counts)))).astype(np.float32)
    lengths = (np.array([4, 3, 4]), np.array([2, 2, 2]))
    expected = reference("Col2Im", 18, columns, *lengths, dilations=list(dilation))
    for each in results(
        "serde.col2im", columns, image_shape=(4, 3, 4), block_shape=(2, 2, 2), dilation=dilation
    ):
        np.testing.assert_array_equal(each, expected)


# torch.nn.functional.max_unpool2d of PyTorch 2.13.0
UNPOOLED = [
    [
        [
            [0.0, 0.0, 0.0, 21.0, 0.0],
            [0.0, 19.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 22.0, 0.0],
            [0.0, 20.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0],
        ],
        [
            [0.0, 21.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 17.0, 0.0, 0.0],
            [0.0, 22.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 18.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0],
        ],
    ]
]


def test_max_unpool_numbers_elements_of_the_whole_result() -> None:
    """PyTorch numbers the elements of each plane, ONNX those of the whole tensor."""
    expected = np.array(UNPOOLED, np.float32)
    windows = [np.ravel_multi_index((0, c, y, x), expected.shape)
               for c in range(2) for y in (0, 2) for x in (0, 2)]  # fmt: skip
    flat = expected.ravel()
    places = np.array([max((w, w + 1, w + 5, w + 6), key=lambda i: flat[i]) for w in windows])
    pooled = flat[places].reshape(1, 2, 2, 2)
    places = places.reshape(1, 2, 2, 2)
    for each in results(
        "serde.max_unpool", pooled, places, pool_size=(2, 2), strides=(2, 2), output_shape=(5, 5)
    ):
        np.testing.assert_array_equal(each, expected)


def test_a_place_outside_is_refused() -> None:
    x, i = Var("x", TensorType((1, 1, 1))), Var("i", TensorType((1, 1, 1), "int64"))
    function = Function([x, i], call("serde.max_unpool", x, i, pool_size=(2,)))
    with pytest.raises(RelayError, match="outside a tensor of 2"):
        run(function, [np.ones((1, 1, 1), np.float32), np.full((1, 1, 1), 2)])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_det(size: int) -> None:
    data = RNG.normal(size=(4, size, size))
    data[1] = 0
    data[2, 0, 0] = 0
    expected = np.zeros(4)
    for order in permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        expected += (-1) ** swaps * np.prod([data[:, i, order[i]] for i in range(size)], axis=0)
    for each in results("serde.det", data):
        np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-14)


def test_a_matrix_that_is_not_square_has_no_det() -> None:
    with pytest.raises(TypeInferenceError, match="differ"):
        results("serde.det", np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("looked_up", [False, True])
def test_rotary_embedding(interleaved: bool, turned: int, rank: int, looked_up: bool) -> None:
    shape = (2, 3, 4 * 8) if rank == 3 else (2, 4, 3, 8)
    data = RNG.normal(size=shape).astype(np.float32)
    angles = RNG.normal(size=(9 if looked_up else 6, (turned or 8) // 2)).astype(np.float32)
    positions = RNG.integers(0, 9, (2, 3)) if looked_up else None
    tables = [np.cos(angles), np.sin(angles)]
    tables = tables if looked_up else [each.reshape(2, 3, -1) for each in tables]
    heads = 4 if rank == 3 else 0
    attrs = {"num_heads": heads} if heads else {}
    expected = reference(
        "RotaryEmbedding",
        23,
        data,
        *tables,
        positions,
        interleaved=int(interleaved),
        rotary_embedding_dim=turned,
        **attrs,
    )
    found = results(
        "serde.rotary_embedding",
        data,
        *tables,
        positions,
        num_heads=heads,
        rotary_dim=turned,
        interleaved=interleaved,
    )
    for each in found:
        np.testing.assert_allclose(each, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("placed", [False, True])
def test_tensor_scatter(axis: int, mode: str, placed: bool) -> None:
    data = RNG.normal(size=(2, 5, 6, 7)).astype(np.float32)
    shape = list(data.shape)
    shape[axis] = 3
    update = RNG.normal(size=shape).astype(np.float32)
    first = np.array([4, 1] if mode == "circular" else [2, 0]) if placed else None
    expected = reference("TensorScatter", 24, data, update, first, axis=axis, mode=mode)
    for each in results("serde.tensor_scatter", data, update, first, axis=axis, mode=mode):
        np.testing.assert_array_equal(each, expected)


def test_rows_beyond_a_cache_are_refused() -> None:
    x, y = Var("x", TensorType((1, 3, 1))), Var("y", TensorType((1, 2, 1)))
    place = relay.Constant(np.array([2]))
    function = Function([x, y], call("serde.tensor_scatter", x, y, place))
    with pytest.raises(RelayError, match="outside a cache of 3"):
        run(function, [np.ones((1, 3, 1), np.float32), np.ones((1, 2, 1), np.float32)])


@pytest.mark.parametrize("alpha", [1.0, 1.702])
def test_swiglu(alpha: float) -> None:
    gate, value = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    expected = gate / (1 + np.exp(-alpha * gate.astype(np.float64))) * value
    for each in results("serde.swiglu", gate, value, alpha=alpha):
        np.testing.assert_allclose(each, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_eigenvalues_of_nothing(shape: tuple[int, ...]) -> None:
    x = Var("x", TensorType(shape))
    values, vectors = run(Function([x], call("serde.eigh", x)), [np.zeros(shape, np.float32)])
    assert (values.shape, vectors.shape) == (shape[:-1], shape)
