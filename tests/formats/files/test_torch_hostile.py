"""Programs of PyTorch whose arguments PyTorch would not take: one refusal each, and no bug."""

from __future__ import annotations

import random
import typing
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from serde.core.limits import spending
from serde.core.report import Report
from serde.errors import ConverterBug, SerdeError, Unsupported, UnsupportedModelError
from serde.relay.ir.expr import Expr
from serde.torch.importer import to_relay
from serde.torch.model import Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.ops import TABLE
from serde.torch.options import TorchImportOptions

SHAPES: dict[str, tuple[tuple[int | str, ...], str]] = {
    "scalar": ((), "float32"),
    "vector": ((4,), "float32"),
    "matrix": ((4, 4), "float32"),
    "cube": ((2, 3, 4), "float32"),
    "image": ((1, 4, 6, 6), "float32"),
    "volume": ((1, 2, 4, 4, 4), "float32"),
    "open": (("n", 4), "float32"),
    "empty": ((0, 4), "float32"),
    "places": ((4,), "int64"),
    "truths": ((4, 4), "bool"),
    "halves": ((4, 4), "bfloat16"),
}
"""Inputs by name, with their shapes and dtypes."""

INTEGERS = (-1, 0, 1, 2, 3, 5, -7, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 10**6)
FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 0.5, 2.0, 1e308, 1e-308)
TEXTS = ("", "mean", "reflect", "nearest", "trunc", "ij,jk->ik", "...", "none")
DTYPES = ("float32", "float64", "int64", "bool", "bfloat16", "int8", "complex64", "float8_e4m3fn")


def convert(op: str, arguments: list[tuple[str, Argument]], outputs: int = 1) -> None:
    """Read a program of one node.

    Raises:
        SerdeError: It is refused.
    """
    names = [f"y{place}" for place in range(outputs)]
    graph = Graph(list(SHAPES), [Node(op, "y", arguments, names)], [Ref(names[0])])
    inputs = [Input(name, name, shape, dtype) for name, (shape, dtype) in SHAPES.items()]
    model = TorchModel(graph, inputs, ["out"], {}, "pt2")
    with warnings.catch_warnings(), spending():
        warnings.simplefilter("ignore")
        to_relay(model, TorchImportOptions(), Report())


REFUSED: dict[str, tuple[str, dict[str, Argument]]] = {
    "qr of a vector": ("aten::linalg_qr", {"A": Ref("vector")}),
    "svd of a scalar": ("aten::linalg_svd", {"A": Ref("scalar")}),
    "parts of a scalar": ("aten::tensor_split.sections", {"self": 2.0, "sections": 3}),
    "a split beyond the axes": ("aten::dsplit.int", {"self": Ref("matrix"), "sections": 2}),
    "nothing to stack": ("aten::stack", {"tensors": []}),
    "nothing that is stacked": ("aten::stack", {"tensors": [None], "dim": 0}),
    "a product without tensors": ("aten::linalg_multi_dot", {"tensors": []}),
    "axes of one side": (
        "aten::tensordot",
        {"self": Ref("matrix"), "other": Ref("matrix"), "dims_self": [0, 1], "dims_other": [0]},
    ),
    "axes of a scalar": (
        "aten::tensordot",
        {"self": Ref("matrix"), "other": 1.0, "dims_self": [0], "dims_other": [0]},
    ),
    "a rotation about one axis": ("aten::rot90", {"self": Ref("matrix"), "k": 1, "dims": [0]}),
    "axes that are moved nowhere": (
        "aten::movedim",
        {"self": Ref("cube"), "source": [0, 1], "destination": [0]},
    ),
    "groups of no channels": ("aten::channel_shuffle", {"self": Ref("image"), "groups": 0}),
    "blocks of a vector": ("aten::pixel_shuffle", {"self": Ref("vector"), "upscale_factor": 2}),
    "a reduction that is none": (
        "aten::mse_loss",
        {"self": Ref("matrix"), "target": Ref("matrix"), "reduction": 7},
    ),
    "a mode that is a fraction": (
        "aten::grid_sampler",
        {
            "input": Ref("image"),
            "grid": Ref("image"),
            "interpolation_mode": 0,
            "padding_mode": -0.0,
            "align_corners": False,
        },
    ),
    "a rate of 0": ("aten::exponential", {"self": Ref("matrix"), "lambd": 0}),
    "a probability of 2": ("aten::geometric", {"self": Ref("matrix"), "p": 2}),
    "a dropout of 2": ("aten::alpha_dropout", {"input": Ref("matrix"), "p": 2.0, "train": True}),
    "windows in no steps": (
        "aten::avg_pool2d",
        {"self": Ref("image"), "kernel_size": [2, 2], "stride": [0, 1], "ceil_mode": True},
    ),
    "an infinite factor": (
        "aten::upsample_nearest2d.vec",
        {"input": Ref("image"), "output_size": [3, 3], "scale_factors": float("inf")},
    ),
    "a factor of NaN": (
        "aten::_upsample_bilinear2d_aa",
        {
            "self": Ref("image"),
            "output_size": [3, 3],
            "align_corners": False,
            "scales_h": float("nan"),
        },
    ),
    "sizes of other axes": (
        "aten::upsample_bilinear2d.vec",
        {"input": Ref("volume"), "output_size": [3, 3], "align_corners": False},
    ),
    "a negative identity": ("aten::eye", {"n": -2}),
    "a negative window": ("aten::hann_window", {"window_length": -5}),
    "fewer than no combinations": ("aten::combinations", {"self": Ref("vector"), "r": -1}),
    "a range to NaN": ("aten::arange", {"end": float("nan"), "dtype": "int32"}),
    "a range to infinity": ("aten::range", {"start": 0, "end": float("inf")}),
    "a view outside the memory": (
        "aten::as_strided",
        {"self": Ref("vector"), "size": [2, 2], "stride": [3, 3]},
    ),
    "a view without strides": ("aten::as_strided", {"self": Ref("vector"), "size": [2, 2]}),
    "NaN as a whole number": ("aten::full_like", {"self": Ref("places"), "fill_value": np.nan}),
    "more than 64 bits": ("aten::add.Scalar", {"self": Ref("places"), "other": 2**70}),
    "a write to nothing": ("aten::zero_", {}),
    "a result that is a truth value": (
        "aten::rms_norm",
        {"input": Ref("truths"), "normalized_shape": [4]},
    ),
    "dtypes that nothing joins": (
        "aten::sum.dim_IntList",
        {"self": Ref("matrix"), "dim": [0], "dtype": "nonsense"},
    ),
}
"""What is wrong with a node: its operator and its arguments."""


@pytest.mark.parametrize(("op", "arguments"), REFUSED.values(), ids=REFUSED)
def test_what_pytorch_would_not_take_is_refused(op: str, arguments: dict[str, Argument]) -> None:
    with pytest.raises(UnsupportedModelError):
        convert(op, list(arguments.items()))


# Every operator, with arguments of the types that its converter declares.


def arguments_of(name: str, rng: random.Random) -> Iterator[tuple[str, Argument]]:
    """Yield arguments of an operator, of its converter's types most of the time."""
    converter = TABLE.importer(name, 1)
    assert converter is not None
    for place, each in enumerate(converter.operands):
        rest = converter.accepted is None and place == len(converter.operands) - 1
        if rest:
            yield each, [_tensor(rng) for _ in range(rng.randrange(4))]
        elif place < converter.required or rng.random() < 0.6:
            yield each, _tensor(rng)
    for each, parameter in converter.attributes.items():
        if rng.random() < 0.8:
            yield each, _value(parameter.hint, rng)


def _tensor(rng: random.Random) -> Argument:
    return rng.choice((*map(Ref, SHAPES), *map(Ref, SHAPES), 1.5, 2, None))


def _value(hint: Any, rng: random.Random) -> Argument:
    """Return a value of a type, seldom of another."""
    if rng.random() < 0.05:
        return rng.choice((None, 3, 0.5, "x", [], [1], Ref("matrix")))
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return rng.choice(parts)
    if origin is tuple:
        count = rng.choice((0, 1, 2, 2, 3, 4))
        inner = parts[0] if parts else int
        fixed = len(parts) if parts and parts[-1] is not Ellipsis else count
        return [_value(inner, rng) for _ in range(fixed)]
    if parts and origin is not np.dtype:
        return _value(rng.choice(parts), rng)
    if hint is bool:
        return rng.random() < 0.5
    if hint is int:
        return rng.choice(INTEGERS)
    if hint is str:
        return rng.choice(TEXTS)
    if hint is type(None):
        return None
    if hint is Expr:
        return rng.choice(tuple(map(Ref, SHAPES)))
    if hint is np.dtype or origin is np.dtype:
        return rng.choice(DTYPES)
    return rng.choice((*FLOATS, *INTEGERS))


NAMES = sorted({name for name, _ in TABLE.imported()})


def escapes(name: str, seed: int) -> str | None:
    """Return what a program raises that it must not, None if nothing."""
    rng = random.Random(f"{name} {seed}")
    arguments = list(arguments_of(name, rng))
    try:
        convert(name, arguments, rng.choice((1, 1, 1, 2, 3)))
    except (ConverterBug, Unsupported) as error:
        return f"{name} {arguments}: {error!r:.200}"
    except SerdeError:
        return None
    except Exception as error:
        return f"{name} {arguments}: {error!r:.200}"
    return None


SEEDS = [pytest.param(seed, marks=[] if not seed else [pytest.mark.wide]) for seed in range(12)]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_arguments_are_nothing_escapes(seed: int) -> None:
    names = NAMES[::8] if not seed else NAMES
    assert [found for name in names if (found := escapes(name, seed))] == []
