"""Transposed convolutions that MXNet 1.9.1 lacks, as it runs what is written of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.mxnet_written import run_built

import serde.relay as relay

Array = np.ndarray


def transposed(x: Array, w: Array, strides: tuple[int, ...], dilation: tuple[int, ...]) -> Array:
    """Add each element, times the filters, to where it lies in the result."""
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    lengths = [(n - 1) * s + each for n, s, each in zip(x.shape[2:], strides, reach, strict=True)]
    out = np.zeros((x.shape[0], w.shape[1], *lengths))
    for place in product(*map(range, x.shape[2:])):
        for tap in product(*map(range, w.shape[2:])):
            at = [p * s + k * d for p, s, k, d in zip(place, strides, tap, dilation, strict=True)]
            out[(..., *at)] += x[(..., *place)] @ w[(..., *tap)]
    return out


@pytest.mark.parametrize("is_weight", [True, False])
@pytest.mark.parametrize("dilation", [(1, 3, 1), (2, 1, 3), (2, 2, 2), (1, 1, 1)])
def test_three_axes_of_spread_filters(dilation: tuple[int, ...], is_weight: bool) -> None:
    draw = np.random.default_rng(7)
    x = draw.normal(size=(2, 3, 2, 3, 2)).astype("float32")
    w = draw.normal(size=(3, 4, 2, 3, 2)).astype("float32")
    attrs = {"strides": (2, 1, 2), "padding": (1, 0, 1), "dilation": dilation}
    if is_weight:
        found = run_built(lambda a: relay.nn.conv3d_transpose(a, relay.const(w), **attrs), x)
    else:
        found = run_built(lambda a, b: relay.nn.conv3d_transpose(a, b, **attrs), x, w)
    wanted = transposed(x, w, attrs["strides"], dilation)[:, :, 1:-1, :, 1:-1]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
