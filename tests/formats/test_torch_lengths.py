"""Operators of PyTorch on axes of any length: exported once, right for every length."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.torch_functions import assert_equal_results, export, run, sequences  # noqa: E402

import serde  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.errors import UnsupportedModelError  # noqa: E402
from serde.relay.ir.dims import Any as AnyDim  # noqa: E402
from serde.report import Report  # noqa: E402
from serde.torch.importer import to_relay  # noqa: E402
from serde.torch.model import Graph, Input, Node, Ref, TorchModel  # noqa: E402
from serde.torch.options import TorchImportOptions  # noqa: E402

F = torch.nn.functional

EXAMPLE, *OTHERS = sequences((7, 8, 4), (6, 9, 4), (12, 6, 4))

KEPT: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(x.shape[0], -1),
    "view inferred": lambda x: x.view(-1, 2),
    "view swapped": lambda x: x.reshape(x.shape[1], x.shape[0], 4),
    "flatten": lambda x: x.flatten(0, 1),
    "flatten rest": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "heads": lambda x: (
        x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2).reshape(x.shape[0] * 2, x.shape[1], 2)
    ),
    "all but the last": lambda x: x[:, : x.shape[1] - 1],
    "last two": lambda x: x[:, x.shape[1] - 2 :],
    "every second": lambda x: x[:, ::2],
    "select last": lambda x: x[:, -1],
    "select last but one": lambda x: x[:, -2],
    "tail": lambda x: x[:, 1:],
    "three from the end": lambda x: x[:, -3:],
    "three": lambda x: x[:, :3],
    "first of three axes": lambda x: x[:, :1].squeeze(1),
    "expand": lambda x: x[:, None].expand(x.shape[0], 3, x.shape[1], 4),
    "expand from one": lambda x: x[:1, :1].expand(x.shape[0], x.shape[1], 4),
    "expand as": lambda x: x[:, :1].expand_as(x),
    "positions": lambda x: torch.arange(x.shape[1])[None].expand(x.shape[0], x.shape[1]),
    "table": lambda x: torch.arange(64 * 4.0).view(64, 4)[: x.shape[1]] + x,
    "cat": lambda x: torch.cat([x, x[:, 1:]], 1),
    "cache": lambda x: torch.cat([torch.zeros(x.shape[0], 2, 4), x], 1)[:, -x.shape[1] :],
    "repeat": lambda x: x.repeat(x.shape[0], 1, 2),
    "tile": lambda x: x.tile(2, 1, 1),
    "repeat interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat interleave by a length": lambda x: x[:1].repeat_interleave(x.shape[1], 0),
    "pad": lambda x: F.pad(x, (0, 0, 1, 2)),
    "pad by a length": lambda x: F.pad(x, (0, 0, 0, x.shape[0])),
    "pad reflected": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "pad circular": lambda x: F.pad(x.permute(0, 2, 1), (1, 2), mode="circular"),
    "pad replicated": lambda x: F.pad(x.permute(0, 2, 1), (1, 2), mode="replicate"),
    "roll": lambda x: x.roll(2, 1),
    "roll flat": lambda x: x.roll(3),
    "flip": lambda x: x.flip(1),
    "stack": lambda x: torch.stack([x, x], 1),
    "chunk": lambda x: x.chunk(2, 2),
    "index by two": lambda x: x[torch.arange(x.shape[0]), torch.arange(x.shape[0]) % 3],
    "index known": lambda x: x[:, torch.tensor([0, -1])],
    "index apart": lambda x: x[torch.tensor([0, 1]), :, torch.tensor([1, 3])],
    "gather": lambda x: x.gather(1, torch.zeros(x.shape[0], 2, 4, dtype=torch.int64)),
    "argsort": lambda x: x.argsort(0, descending=True),
    "mask": lambda x: torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1),
    "scatter": lambda x: x.scatter(2, torch.tensor([[[0]]]).expand(x.shape[0], x.shape[1], 1), 1.0),
    "scatter add": lambda x: torch.zeros(x.shape[0], 8, 4).scatter_add(
        1, torch.zeros_like(x, dtype=torch.int64), x
    ),
    "index add": lambda x: x.index_add(1, torch.tensor([0, 1]), x[:, :2]),
    "index copy": lambda x: x.index_copy(1, torch.tensor([0, 1]), x[:, :2]),
    "index fill": lambda x: x.index_fill(1, torch.tensor([0, -1]), 3.0),
    "index put": lambda x: x.index_put((torch.tensor([0, 1]),), torch.tensor(2.0)),
    "index put two": lambda x: x.index_put(
        (torch.arange(x.shape[0]), torch.zeros(x.shape[0], dtype=torch.int64)), x[:, 1]
    ),
    "slice scatter": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
    "select scatter": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, -1),
    "masked scatter": lambda x: x.masked_scatter(x > 0, torch.arange(3000.0)),
    "put": lambda x: x.put(torch.tensor([0, -1]), torch.tensor([1.0, 2.0])),
    "meshgrid": lambda x: torch.meshgrid(
        torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij"
    ),
    "unfold": lambda x: x.unfold(1, 3, 1),
    "diagonal": lambda x: torch.diagonal(x @ x.transpose(1, 2), dim1=1, dim2=2),
    "narrow": lambda x: x.narrow(1, 1, x.shape[1] - 3),
    "maximum of all": lambda x: F.adaptive_max_pool1d(x.transpose(1, 2), 1, return_indices=True),
    "maxima": lambda x: F.max_pool1d_with_indices(x.transpose(1, 2), 2),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x, x, x, x @ x.transpose(1, 2)),
    "deviation": lambda x: torch.std_mean(x, 1),
    "tensor of lengths": lambda x: torch.tensor([x.shape[0], 2]),
    "pixel shuffle": lambda x: F.pixel_shuffle(x.permute(2, 0, 1)[None], 2),
    "channel shuffle": lambda x: F.channel_shuffle(x.permute(2, 0, 1)[None], 2),
    "upsample": lambda x: F.interpolate(x[None], scale_factor=2),
    "upsample to a length": lambda x: F.interpolate(x[None], size=(x.shape[0] * 2, 8)),
    "bilinear": lambda x: F.interpolate(x[None], scale_factor=2.0, mode="bilinear"),
    "bilinear corners": lambda x: F.interpolate(
        x[None], scale_factor=2, mode="bilinear", align_corners=True
    ),
    "bicubic": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="bicubic"),
}
"""Programs of which every length of the results is known by a symbol or a number."""

OPEN: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: (x > 0).nonzero(),
    "where": lambda x: torch.where(x > 0),
    "masked select": lambda x: x.masked_select(x > 0),
    "index by a mask": lambda x: x[x[:, :, 0] > 0],
    "unique": lambda x: torch.unique((x * 2).int()),
    "unique consecutive": lambda x: torch.unique_consecutive((x * 2).int(), dim=0),
}
"""Programs of which the values decide a length."""

FIRST = ("view", "heads", "table", "cache", "first of three axes", "expand", "index by two")
"""Programs that run with the other tests."""


def cases(programs: dict[str, Callable[[Any], Any]]) -> list[Any]:
    return [
        pytest.param(function, id=name, marks=[] if name in FIRST else [pytest.mark.wide])
        for name, function in programs.items()
    ]


def dims() -> dict[int, Any]:
    return {axis: torch.export.Dim(name, min=6, max=64) for axis, name in ((0, "n"), (1, "m"))}


@pytest.mark.parametrize("function", cases(KEPT))
def test_lengths_are_kept_and_every_length_is_right(function: Callable[[Any], Any]) -> None:
    model = export(function, EXAMPLE, dims())
    body = model.mod["main"].body.type
    for each in getattr(body, "fields", [body]):
        assert not any(isinstance(dim, AnyDim) for dim in each.shape), each
    for x in (EXAMPLE, *OTHERS):
        assert_equal_results(model, function, x)


@pytest.mark.parametrize("function", cases(OPEN))
def test_every_length_is_right(function: Callable[[Any], Any]) -> None:
    model = export(function, EXAMPLE, dims())
    for x in (EXAMPLE, *OTHERS):
        assert_equal_results(model, function, x)


def test_statistics_of_a_batch_of_any_length_are_right() -> None:
    net = torch.nn.Sequential(torch.nn.Flatten(0, 1), torch.nn.BatchNorm1d(4)).train()
    model = export(net, EXAMPLE, dims())
    for x in OTHERS:
        own = copy.deepcopy(net)
        found = run(model, x)
        expected = {"batch_norm": own(x)}
        expected |= {f"function.{name}_new": each for name, each in own.named_buffers()}
        for name, one in zip(model.meta.outputs, found, strict=True):
            other = expected.pop(name).detach().numpy()
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_maxima_whose_places_are_not_known_are_refused_only_where_they_are_read() -> None:
    def pool(x: Any, indices: bool) -> Any:
        return F.adaptive_max_pool2d(x[None], (2, 2), return_indices=indices)

    export(lambda x: pool(x, False), EXAMPLE, dims())
    with pytest.raises(UnsupportedModelError, match="places of maxima"):
        export(lambda x: pool(x, True), EXAMPLE, dims())


def squeeze(**arguments: Any) -> Any:
    """Return what a script makes of a tensor of which nobody says that an axis is longer than 1."""
    node = Node("aten::squeeze", "squeeze", [("self", Ref("x")), *arguments.items()], ["y"])
    graph = Graph(["x"], [node], [Ref("y")])
    model = TorchModel(graph, [Input("x", "x", ("n", 1), "float32")], ["y"], {}, "torchscript")
    return to_relay(model, TorchImportOptions(), Report()).mod["main"].body.type


def test_axes_that_may_have_length_1_are_not_dropped_in_silence() -> None:
    assert squeeze(dim=1).rank == 1
    with pytest.raises(UnsupportedModelError, match="axis 0 may have length 1"):
        squeeze()


UNKNOWN: dict[str, Callable[..., Any]] = {
    "complex": lambda x, _places, one: torch.view_as_real(torch.complex(x, one)),
    "scatter": lambda x, places, _one: x.scatter(0, places, x),
    "scatter_add": lambda x, places, _one: x.scatter_add(0, places, x),
    "scatter_reduce": lambda x, places, _one: x.scatter_reduce(0, places, x, "amax"),
}


class _Traced(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, places: Any, one: Any) -> Any:
        return self.function(x, places, one)


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("function", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_lengths_are_not_taken_for_one(function: Callable[..., Any]) -> None:
    """What is scattered is cut to the indices, and parts of complex numbers are spread."""
    given = {
        "x": torch.arange(9.0).reshape(3, 3),
        "places": torch.tensor([[2, 0]]),
        "one": torch.ones(1, 3),
    }
    traced = torch.jit.trace(_Traced(function), tuple(given.values()))
    shapes = {name: ("?", "?") for name in given}
    dtypes = {name: str(each.dtype).removeprefix("torch.") for name, each in given.items()}
    model = serde.to_relay(
        traced, input_shapes=shapes, input_dtypes=dtypes, allow={"other-lengths"}
    )
    (found,) = RelayEngine(model).run({name: each.numpy() for name, each in given.items()})
    np.testing.assert_array_equal(found, function(*given.values()).numpy())


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("lengths", [("?", "?"), ("n", "m"), ("n", 3), ("n", "n")], ids=str)
def test_tensors_of_open_lengths_are_equal_if_their_lengths_are(lengths: tuple[Any, Any]) -> None:
    one, ones = torch.arange(3.0), torch.ones(3)

    class Equal(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.tensor(torch.equal(x, y))

    shapes = {"x": lengths[:1], "y": lengths[1:]}
    engine = RelayEngine(serde.to_relay(torch.jit.script(Equal()), input_shapes=shapes))
    for x, y in [(one, one), (one, ones), (ones[:1], ones)]:
        if len(x) != len(y) and lengths == ("n", "n"):
            continue
        (found,) = engine.run({"x": x.numpy(), "y": y.numpy()})
        assert bool(found) == torch.equal(x, y)
