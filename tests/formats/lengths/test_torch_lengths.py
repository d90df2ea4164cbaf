"""Operators of PyTorch on axes of any length: exported once, right for every length."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.torch_functions import assert_equal_results, export, run  # noqa: E402
from support.torch_lengths import EXAMPLE, FIRST, KEPT, OPEN, OTHERS, dims  # noqa: E402

import serde  # noqa: E402
from serde.core.report import Report  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.errors import UnsupportedModelError  # noqa: E402
from serde.relay.ir.dims import Any as AnyDim  # noqa: E402
from serde.torch.importer import to_relay  # noqa: E402
from serde.torch.model import Graph, Input, Node, Ref, TorchModel  # noqa: E402
from serde.torch.options import TorchImportOptions  # noqa: E402


def cases(programs: dict[str, Callable[[Any], Any]]) -> list[Any]:
    return [
        pytest.param(function, id=name, marks=[] if name in FIRST else [pytest.mark.wide])
        for name, function in programs.items()
    ]


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
        return torch.nn.functional.adaptive_max_pool2d(x[None], (2, 2), return_indices=indices)

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
