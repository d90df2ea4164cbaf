"""The operators of MIL that the tests compute themselves, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.mil_executor import run_kernel

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def _tensors(*arrays: np.ndarray) -> list[Any]:
    return [torch.from_numpy(np.ascontiguousarray(each)) for each in arrays]


def _scattered(mode: str) -> str:
    return {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[mode]


DATA, UPDATES = draw(5, 4), draw(3, 4)
PLACES = np.array([[0, 4, 2, 2], [1, 4, 0, 3], [0, 1, 2, 2]])
ROWS = np.array([[1, 0], [4, 3], [2, 2]])
IMAGE = draw(2, 8, 4, 6)


def _fold(x: np.ndarray) -> Any:
    """Blocks of pixels one behind the other, by PyTorch's im2col."""
    n, c, h, w = x.shape
    columns = torch.nn.functional.unfold(torch.from_numpy(x), 2, stride=2)
    apart = columns.reshape(n, c, 4, h // 2, w // 2)
    return apart.permute(0, 2, 1, 3, 4).reshape(n, 4 * c, h // 2, w // 2)


CASES: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {
    **{
        f"scatter_along_axis_{mode}": (
            "scatter_along_axis",
            {"data": DATA, "indices": PLACES, "updates": UPDATES, "axis": 0, "mode": mode},
            lambda mode=mode: torch.scatter_reduce(
                *_tensors(DATA), 0, *_tensors(PLACES, UPDATES), _scattered(mode)
            ),
        )
        for mode in ("add", "mul", "max", "min")
    },
    **{
        f"scatter_{mode}": (
            "scatter",
            {"data": DATA, "indices": ROWS[:, 0], "updates": UPDATES, "axis": 0, "mode": mode},
            lambda mode=mode: torch.scatter_reduce(
                *_tensors(DATA),
                0,
                *_tensors(np.repeat(ROWS[:, :1], 4, 1), UPDATES),
                _scattered(mode),
            ),
        )
        for mode in ("mul", "max", "min")
    },
    "scatter_update": (
        "scatter",
        {"data": DATA, "indices": ROWS[:, 0], "updates": UPDATES, "mode": "update"},
        lambda: torch.index_copy(*_tensors(DATA), 0, *_tensors(ROWS[:, 0], UPDATES)),
    ),
    "scatter_nd_add": (
        "scatter_nd",
        {"data": DATA, "indices": ROWS, "updates": UPDATES[:, 0]},
        lambda: torch.from_numpy(DATA.copy()).index_put_(
            tuple(_tensors(ROWS[:, 0], ROWS[:, 1])), *_tensors(UPDATES[:, 0]), accumulate=True
        ),
    ),
    "gather_nd": (
        "gather_nd",
        {"x": DATA, "indices": ROWS},
        lambda: torch.from_numpy(DATA)[tuple(_tensors(ROWS[:, 0], ROWS[:, 1]))],
    ),
    "gather_nd_of_batches": (
        "gather_nd",
        {"x": DATA, "indices": PLACES.T[:, :, None].repeat(2, 0)[:5] % 4, "batch_dims": 1},
        lambda: torch.gather(*_tensors(DATA), 1, *_tensors(PLACES.T.repeat(2, 0)[:5] % 4)),
    ),
    "cumsum": ("cumsum", {"x": DATA, "axis": 1}, lambda: torch.cumsum(torch.from_numpy(DATA), 1)),
    "cumsum_exclusive_reverse": (
        "cumsum",
        {"x": DATA, "axis": 0, "exclusive": True, "reverse": True},
        lambda: torch.from_numpy(DATA).flip(0).cumsum(0).flip(0) - torch.from_numpy(DATA),
    ),
    "sliding_windows": (
        "sliding_windows",
        {"x": IMAGE, "axis": 3, "size": 3, "stride": 2},
        lambda: torch.from_numpy(IMAGE).unfold(3, 3, 2),
    ),
    "pixel_shuffle": (
        "pixel_shuffle",
        {"x": IMAGE, "upscale_factor": 2},
        lambda: torch.nn.functional.pixel_shuffle(torch.from_numpy(IMAGE), 2),
    ),
    "pixel_unshuffle": (
        "pixel_unshuffle",
        {"x": IMAGE, "downscale_factor": 2},
        lambda: torch.nn.functional.pixel_unshuffle(torch.from_numpy(IMAGE), 2),
    ),
    "space_to_depth": ("space_to_depth", {"x": IMAGE, "block_size": 2}, lambda: _fold(IMAGE)),
    "depth_to_space": (
        "depth_to_space",
        {"x": _fold(IMAGE).numpy(), "block_size": 2},
        lambda: torch.from_numpy(IMAGE),
    ),
    "one_hot": (
        "one_hot",
        {"indices": PLACES, "one_hot_vector_size": 5},
        lambda: torch.nn.functional.one_hot(torch.from_numpy(PLACES), 5),
    ),
    "silu": ("silu", {"x": DATA}, lambda: torch.nn.functional.silu(torch.from_numpy(DATA))),
    "squeeze": (
        "squeeze",
        {"x": DATA[None, :, None], "axes": np.array([0, 2])},
        lambda: torch.from_numpy(DATA),
    ),
    "argsort": (
        "argsort",
        {"x": PLACES.astype(np.float32), "axis": 1},
        lambda: torch.sort(torch.from_numpy(PLACES), stable=True, dim=1, descending=True).indices,
    ),
    "topk": (
        "topk",
        {"x": DATA, "k": 2, "axis": 0, "return_indices": False},
        lambda: torch.topk(torch.from_numpy(DATA), 2, 0).values,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, record_property: Callable[[str, object], None]) -> None:
    op, inputs, wanted = CASES[name]
    found = run_kernel(op, inputs)
    np.testing.assert_allclose(found, wanted().numpy(), rtol=1e-5, atol=1e-5)
    record_property("mil_judged", [op])
