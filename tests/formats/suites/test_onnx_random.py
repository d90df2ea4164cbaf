"""Random numbers written as ONNX: equal to published ones, and to the kernels at every turn."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import run_kernel
from support.onnx_export import run_exported

import serde.relay as relay
from serde.relay.op.random.threefry import threefry_key

OPSETS = (11, 18)
ONES = (1 << 64) - 1
TOP = 1 << 63


def state(*words: int) -> np.ndarray:
    return np.array(words, np.uint64)


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
def test_bits_are_those_of_threefry(opset: int) -> None:
    """kat_vectors of Random123, for the digits of pi; it adds the key behind the rounds."""
    cipher = [0x452821E638D01377, 0xBE5466CF34E90C6C, 0xBE5466CF34E90C6C, 0xC0AC29B7C97C50DD]
    counter = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    known = [0xA7E8FDE591651BD9, 0xBAAFD0C30138319B, 0x84A5C1A729E685B9, 0x901D406CCEBC1BA4]
    key = state(*cipher, *counter, TOP, 0)
    _, bits = run_exported(lambda k: relay.random.threefry_generate(k, (2, 2)), key, opset=opset)
    assert bits.dtype == np.uint64
    last = [*cipher[:3], cipher[3] + 5]
    added = [(int(a) + b) & ONES for a, b in zip(bits.reshape(-1), last, strict=True)]
    assert added == known


KEYS = {
    "new": threefry_key(7).data,
    "counter-has-room": state(1, 2, 3, 4, 5, 6, 7, ONES - 14, 0, 1),
    "counter-is-full": state(1, 2, 3, ONES, 5, 6, 7, ONES - 13, 0, 1 << 5),
    "path-goes-on-in-second-word": state(ONES, 2, TOP, 4, 5, 6, 7, ONES, 1, 0),
    "path-has-a-bit-set": state(1, 2, 3, 4, 3 << 60, 6, 7, ONES - 3, 1 << 61, 0),
    "path-is-full": state(1, 2, 3, 4, 5, 6, 7, ONES - 2, 0, 0),
    "counter-without-sign": state(1, 2, 3, 4, ONES, 6, 7, TOP - 3, TOP, 0),
}


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("count", [3, 8, 13])
@pytest.mark.parametrize("name", KEYS)
def test_generation_takes_each_branch(name: str, count: int, opset: int) -> None:
    found = run_exported(
        lambda k: relay.random.threefry_generate(k, (count,)), KEYS[name], opset=opset
    )
    expected = run_kernel("random.threefry_generate", KEYS[name], out_shape=(count,))
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", KEYS)
def test_split_takes_each_branch(name: str, opset: int) -> None:
    found = run_exported(relay.random.threefry_split, KEYS[name], opset=opset)
    expected = run_kernel("random.threefry_split", KEYS[name])
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_are_equal(dtype: str, opset: int) -> None:
    key = threefry_key(11).data
    bounds = (np.array(-1, dtype), np.array(3, dtype))
    found = run_exported(
        lambda k, a, b: relay.random.uniform(k, (5, 3), dtype, a, b), key, *bounds, opset=opset
    )
    expected = run_kernel(
        "random.uniform", key, *bounds, out_shape=(5, 3), out_dtype=np.dtype(dtype)
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.wide
@pytest.mark.parametrize("opset", [14, 21])
def test_nothing_is_drawn(opset: int) -> None:
    key = threefry_key(1).data
    after, bits = run_exported(
        lambda k: relay.random.threefry_generate(k, (2, 0)), key, opset=opset
    )
    assert bits.shape == (2, 0)
    np.testing.assert_array_equal(after, key)


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
def test_draws_follow_the_weights(opset: int) -> None:
    weights = np.array([[0, 3, 0, 1], [-1, 0, 5, -2]], np.float32)
    _, drawn = run_exported(
        lambda k, p: relay.random.multinomial(k, p, 400),
        threefry_key(5).data, weights, opset=opset,
    )  # fmt: skip
    assert set(drawn[0].tolist()) == {1, 3}
    assert 240 < (drawn[0] == 1).sum() < 360
    assert (drawn[1] == 2).all()
