"""The drop-in for ``mx.onnx`` as MXNet's own tests call it: blocks without parameters, exported.

All inputs of an operator, weights and statistics among them, are inputs of the symbol; the
parameter file is empty. MXNet computes what ONNX Runtime has to give.
"""

from __future__ import annotations

import functools
import itertools
import types
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runtime import open_session

from serde.compat import import_mxnet, mx2onnx
from serde.errors import MissingDependency, OptionError

FLOATS = ("float16", "float32", "float64")
NUMBERS = (*FLOATS, "int32", "int64")

Case = tuple[str, tuple[tuple[tuple[int, ...], str], ...], dict[str, Any]]


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def on(op: str, *shapes: tuple[int, ...], dtypes: Any = ("float32",), **attrs: Any) -> list[Case]:
    """An operator on tensors of some shapes, all of one dtype after the other."""
    return [(op, tuple((shape, dtype) for shape in shapes), attrs) for dtype in dtypes]


def grid(op: str, *shapes: tuple[int, ...], **choices: Any) -> list[Case]:
    """An operator with every combination of attributes; None leaves one out."""
    combined = (
        dict(zip(choices, each, strict=True)) for each in itertools.product(*choices.values())
    )
    return [
        case
        for attrs in combined
        for case in on(op, *shapes, **{k: v for k, v in attrs.items() if v is not None})
    ]


WITH_WEIGHTS = [
    *grid("FullyConnected", (3, 4, 5), (7, 20), num_hidden=[7], no_bias=[True], flatten=[True]),
    *grid("FullyConnected", (3, 4, 5), (7, 5), (7,), num_hidden=[7], flatten=[False]),
    *grid("Convolution", (2, 6, 16, 15), (4, 3, 3, 3), num_filter=[4], num_group=[2],
          no_bias=[True], kernel=[(3, 3)], stride=[None, (3, 4)], pad=[None, (1, 2)]),
    *grid("Convolution", (1, 4, 8, 8, 9), (2, 4, 1, 3, 3), (2,), num_filter=[2],
          kernel=[(1, 3, 3)], dilate=[None, (2, 2, 2)], layout=["NCDHW"]),
    *grid("Deconvolution", (2, 6, 7, 8), (6, 2, 3, 4), (4,), num_filter=[4], num_group=[2],
          no_bias=[False], kernel=[(3, 4)], stride=[(2, 2)], adj=[(0, 0), (1, 1)],
          pad=[None, (1, 1)]),
    *on("BatchNorm", (2, 3, 4, 5), (3,), (3,), (3,), (3,), dtypes=["float32", "float64"],
        eps=1e-5, fix_gamma=False),
    *on("InstanceNorm", (3, 4, 5), (4,), (4,), eps=1e-3),
    *grid("LayerNorm", (3, 3, 3), (3,), (3,), axis=[0, 1, 2, -1]),
    *on("LeakyReLU", (3, 4, 5), (4,), dtypes=FLOATS, act_type="prelu"),
    *grid("RNN", (4, 2, 3), (144,), (1, 2, 4), (1, 2, 4), mode=["lstm"], state_size=[4],
          num_layers=[1], state_outputs=[True]),
    *on("Embedding", (2, 2), (4, 5), dtypes=["int32", "int64"], input_dim=4, output_dim=5),
]  # fmt: skip

DOTS = [
    case
    for left, right, flags in [
        ((4, 5), (5, 6), (False, False)),
        ((5, 4), (6, 5), (True, True)),
        ((4, 5), (5,), (False, False)),
        ((4,), (4, 5), (False, False)),
        ((5,), (5,), (False, False)),
        ((3, 4, 5), (5, 6), (False, False)),
        ((3, 4, 5), (6, 5), (False, True)),
        ((5, 3, 4), (5, 6), (True, False)),
        ((3, 4, 5), (5, 2, 6), (False, False)),
        ((5, 3, 4), (2, 6, 5), (True, True)),
        ((5,), (2, 6, 5), (False, True)),
        ((2, 3, 5), (5,), (False, False)),
    ]
    for case in on("dot", left, right, transpose_a=flags[0], transpose_b=flags[1])
]

WINDOWS = [
    *grid("Pooling", (1, 2, 8, 9), kernel=[(3, 2)], stride=[(4, 4), (4, 3), (5, 7)],
          pad=[None, (1, 1)], pool_type=["max", "avg", "sum"], pooling_convention=["full"],
          count_include_pad=[True, False]),
    *grid("Pooling", (2, 2, 7), kernel=[(1,), (2,)], stride=[(3,), (4,)], pool_type=["lp"],
          p_value=[2], pooling_convention=["full"]),
]  # fmt: skip
"""Of a step that leads beyond the data."""

OTHERS = [
    *grid("argmax", (2, 3, 4), axis=[None, 1], keepdims=[True, False]),
    *grid("argmin", (2, 3, 4), axis=[None, -2], keepdims=[True, False]),
    *on("contrib.BilinearResize2D", (2, 2, 5, 8), scale_height=0.8, scale_width=0.1),
    *grid("topk", (4, 5, 6), axis=[0, -1], is_ascend=[None, 1], k=[4], dtype=["int64"],
          ret_typ=["value", "both"]),
    *on("reverse", (2, 3, 4), dtypes=NUMBERS, axis=1),
    *on("slice_like", (4, 5, 6, 7), (2, 3, 4), dtypes=NUMBERS, axes=(-2, 0)),
    *on("broadcast_like", (2, 1, 1, 1, 6), (2, 3, 4, 5, 6), dtypes=NUMBERS, lhs_axes=[1, 3],
        rhs_axes=[3, 1]),
    *on("SoftmaxOutput", (4, 5, 6), (4, 5), dtypes=["float32", "float64"]),
    *on("LogisticRegressionOutput", (6, 7), (6, 7)),
    *on("repeat", (3, 3, 3), dtypes=NUMBERS, repeats=2),
    *on("Cast", (2, 3), dtypes=FLOATS, dtype="int8"),
    *grid("norm", (4, 5, 6), ord=[1, 2], axis=[None, (0, 2)], keepdims=[0, 1]),
]  # fmt: skip


def ids(case: Case) -> str:
    op, inputs, attrs = case
    shown = "-".join(f"{k}={v}" for k, v in attrs.items())
    return f"{op}-{'-'.join(str(shape) for shape, _ in inputs)}-{inputs[0][1]}-{shown}"


@pytest.mark.thin(4)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", [*WITH_WEIGHTS, *DOTS, *WINDOWS, *OTHERS], ids=ids)
def test_block_without_parameters(mx: Any, case: Case, tmp_path: Path) -> None:
    op, shapes, attrs = case
    generator = np.random.default_rng(zlib.crc32(ids(case).encode()))
    inputs = [
        mx.nd.array(generator.uniform(0.2, 3, shape), dtype="float64").astype(dtype)
        for shape, dtype in shapes
    ]

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, space: Any, *values: Any) -> Any:
            return functools.reduce(getattr, op.split("."), space)(*values, **attrs)

    net = Net()
    net.hybridize()
    wanted = net(*inputs)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    net.export(str(tmp_path / "net"))
    path = mx2onnx.export_model(
        str(tmp_path / "net-symbol.json"),
        str(tmp_path / "net-0000.params"),
        [each.shape for each in inputs],
        [each.dtype for each in inputs],
        str(tmp_path / "net.onnx"),
    )
    session = open_session(path)
    names = [each.name for each in session.get_inputs()]
    fed = dict(zip(names, (each.asnumpy() for each in inputs), strict=True))
    found = session.run(None, fed)
    assert len(found) >= len(wanted)
    for one, two in zip(found, wanted, strict=False):
        assert one.shape == two.shape
        mx.test_utils.assert_almost_equal(one, two.asnumpy(), equal_nan=True)


def test_a_symbol_alone_says_what_it_needs(mx: Any, tmp_path: Path) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 4)))
    net.export(str(tmp_path / "net"))
    mx.nd.save(str(tmp_path / "none.params"), {})
    paths = str(tmp_path / "net-symbol.json"), str(tmp_path / "none.params")
    with pytest.raises(OptionError, match=r"1 in_shapes for the inputs data, dense\w*_weight"):
        mx2onnx.export_model(*paths, [(1, 4)], onnx_file_path=str(tmp_path / "net.onnx"))
    mx2onnx.export_model(*paths, [(1, 4), (3, 4), (3,)], onnx_file_path=str(tmp_path / "net.onnx"))
    assert len(open_session(str(tmp_path / "net.onnx")).get_inputs()) == 3
