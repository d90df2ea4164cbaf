"""Random operators against published numbers of the cipher, and against what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.registry import call, get
from serde.relay.op.random.threefry import threefry_key, threefry_rounds

ONES = (1 << 64) - 1
TOP = 1 << 63

KNOWN_ANSWERS = [
    pytest.param(
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000",
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000",
        "09218ebde6c85537 55941f5266d86105 4bd25e16282434dc ee29ec846bd2e40b",
        id="zeros",
    ),
    pytest.param(
        "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff",
        "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff",
        "29c24097942bba1b 0371bbfb0f6f4e11 3c231ffa33f83a1c cd29113fde32d168",
        id="ones",
    ),
    pytest.param(
        "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89",
        "452821e638d01377 be5466cf34e90c6c be5466cf34e90c6c c0ac29b7c97c50dd",
        "a7e8fde591651bd9 baafd0c30138319b 84a5c1a729e685b9 901d406ccebc1ba4",
        id="pi",
    ),
]
"""Counter, key and result of threefry4x64 with 20 rounds, from kat_vectors of Random123."""


def _words(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], np.uint64)


def _state(*words: int) -> np.ndarray:
    return np.array(words, np.uint64)


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_rounds_are_threefry(counter: str, key: str, expected: str) -> None:
    """Random123 adds the key a sixth time behind the rounds; TVM does not."""
    words = [int(word, 16) for word in key.split()]
    last = [*words[:3], words[3] + 5]
    result = threefry_rounds(_words(key), _words(counter)[None])[0]
    added = [(int(a) + b) & ONES for a, b in zip(result, last, strict=True)]
    assert added == [int(word, 16) for word in expected.split()]


def test_key_has_the_seed_in_front() -> None:
    assert threefry_key(7 + (9 << 64)).data.tolist() == [7, 9, 0, 0, 0, 0, 0, 0, TOP, 0]


@pytest.mark.parametrize("seed", [-1, 1 << 256])
def test_seed_has_256_bits(seed: int) -> None:
    with pytest.raises(TypeInferenceError, match="seed"):
        threefry_key(seed)


def test_split_tells_the_path() -> None:
    left, right = run_kernel("random.threefry_split", threefry_key(0).data)
    assert left.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1 << 62, 0]
    assert right.tolist() == [0, 0, 0, 0, TOP, 0, 0, 0, 1 << 62, 0]


def test_path_goes_on_in_the_second_word() -> None:
    left, right = run_kernel("random.threefry_split", _state(1, 2, 3, 4, 0, 0, 0, 5, 1, 0))
    assert left.tolist() == [1, 2, 3, 4, 0, 0, 0, 5, 0, TOP]
    assert right.tolist() == [1, 2, 3, 4, 1, 0, 0, 5, 0, TOP]


def test_full_path_is_hashed_into_the_key() -> None:
    state = _state(1, 2, 3, 4, 5, 6, 7, 8, 0, 0)
    left, right = run_kernel("random.threefry_split", state)
    hashed = threefry_rounds(state[:4], state[None, 4:8])[0].tolist()
    assert left.tolist() == [*hashed, 0, 0, 0, 0, 1 << 62, 0]
    assert right.tolist() == [*hashed, TOP, 0, 0, 0, 1 << 62, 0]


def test_blocks_count_in_every_word() -> None:
    state = _state(1, 2, 3, 4, 10, 20, 30, 40, TOP, 0)
    after, bits = run_kernel("random.threefry_generate", state, out_shape=(2, 4))
    blocks = _state(10, 20, 30, 40), _state(11, 21, 31, 41)
    np.testing.assert_array_equal(bits, threefry_rounds(state[:4], np.stack(blocks)))
    assert after.tolist() == [1, 2, 3, 4, 10, 20, 0, 48, TOP, 0]


def test_rest_of_a_block_has_a_counter_of_its_own() -> None:
    state = _state(1, 2, 3, 4, 10, 20, 30, 40, TOP, 0)
    after, bits = run_kernel("random.threefry_generate", state, out_shape=(7,))
    blocks = np.stack([_state(10, 20, 30, 40), _state(10, 20, 30, 44)])
    np.testing.assert_array_equal(bits, threefry_rounds(state[:4], blocks).reshape(-1)[:7])
    assert after.tolist() == [1, 2, 3, 4, 10, 20, 0, 48, TOP, 0]


def test_full_counter_takes_the_path() -> None:
    state = _state(0, 0, 0, 0, 0, 0, 0, ONES - 1, TOP, 0)
    after, _bits = run_kernel("random.threefry_generate", state, out_shape=(2048,))
    assert after.tolist() == [0, 0, 0, 0, TOP, 0, 0, 2048, 1 << 62, 0]


def test_full_counter_and_path_make_a_new_key() -> None:
    state = _state(0, 0, 0, 0, 0, 0, 0, ONES - 1, 0, 0)
    after, _bits = run_kernel("random.threefry_generate", state, out_shape=(8,))
    assert after[:4].tolist() != [0, 0, 0, 0]
    assert after[4:].tolist() == [0, 0, 0, 8, TOP, 0]


@pytest.mark.parametrize(
    ("dtype", "bits", "scale"),
    [pytest.param("float32", 23, 9, id="float32"), pytest.param("float64", 52, 12, id="float64")],
)
def test_uniform_is_the_upper_bits(dtype: str, bits: int, scale: int) -> None:
    key = threefry_key(3).data
    _, words = run_kernel("random.threefry_generate", key, out_shape=(50,))
    bounds = (np.array(-1, dtype), np.array(3, dtype))
    _, found = run_kernel("random.uniform", key, *bounds, out_shape=(50,), out_dtype=dtype)
    kept = words & np.uint64(0xFFFFFFFF) if dtype == "float32" else words
    unit = (kept >> np.uint64(scale)).astype(np.float64) / 2.0**bits
    np.testing.assert_allclose(found, unit * 4 - 1, rtol=1e-6, atol=1e-6)


def test_normal_is_of_box_and_muller() -> None:
    key = threefry_key(11).data
    unit = (np.array(0.0), np.array(1.0))
    _, both = run_kernel("random.uniform", key, *unit, out_shape=(2, 40), out_dtype="float64")
    _, found = run_kernel(
        "random.normal", key, np.array(3.0), np.array(0.5), out_shape=(40,), out_dtype="float64"
    )
    expected = np.sqrt(-2 * np.log1p(-both[0])) * np.sin(2 * np.pi * both[1]) * 0.5 + 3
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_normal_has_mean_and_deviation() -> None:
    key = threefry_key(5).data
    bounds = (np.array(2, np.float32), np.array(3, np.float32))
    _, found = run_kernel("random.normal", key, *bounds, out_shape=(200, 500), out_dtype="float32")
    assert abs(found.mean(dtype=np.float64) - 2) < 0.05
    assert abs(found.std(dtype=np.float64) - 3) < 0.05


def test_multinomial_draws_by_weight() -> None:
    weights = np.array([[1, 0, 3, -2], [0, 0, 0, 5]], np.float32)
    _, found = run_kernel("random.multinomial", threefry_key(1).data, weights, num_samples=20_000)
    shares = np.bincount(found[0], minlength=4) / 20_000
    np.testing.assert_allclose(shares, [0.25, 0, 0.75, 0], atol=0.02)
    assert set(found[1].tolist()) == {3}


def test_multinomial_is_the_inverse_of_the_sum() -> None:
    key = threefry_key(2).data
    weights = np.array([0.5, 0.25, 0.25], np.float32)
    bounds = (np.array(0, np.float32), np.array(1, np.float32))
    _, unit = run_kernel("random.uniform", key, *bounds, out_shape=(99,), out_dtype="float32")
    _, found = run_kernel("random.multinomial", key, weights, num_samples=99)
    np.testing.assert_array_equal(found, np.searchsorted([0.5, 0.75, 1.0], unit, side="right"))


def test_builders_return_two_results() -> None:
    key = relay.random.threefry_key(0)
    key, numbers = relay.random.uniform(key, (2, 3), low=-1)
    key, more = relay.random.normal(key, (4,), "float64")
    left, _right = relay.random.threefry_split(key)
    _, bits = relay.random.threefry_generate(left, (5,))
    _, drawn = relay.random.multinomial(left, numbers, 7)
    types = [repr(each.type) for each in (numbers, more, bits, drawn)]
    assert types == [
        "Tensor[(2, 3), float32]",
        "Tensor[(4), float64]",
        "Tensor[(5), uint64]",
        "Tensor[(2, 7), int32]",
    ]


def test_key_is_ten_words() -> None:
    with pytest.raises(TypeInferenceError):
        relay.random.threefry_split(relay.var("key", shape=(9,), dtype="uint64"))


def test_numbers_are_of_32_or_64_bits() -> None:
    with pytest.raises(TypeInferenceError, match="out_dtype"):
        relay.random.uniform(relay.random.threefry_key(0), (2,), "float16")


def test_seeded_uniform_numbers_fill_their_range() -> None:
    found = get("serde.random_uniform").kernel(None, shape=(20000,), low=-2.0, high=6.0, seed=4.0)
    assert found.dtype == np.float32
    assert found.min() >= -2
    assert found.max() < 6
    assert abs(found.mean() - 2) < 0.1
    assert abs(found.std() - 8 / np.sqrt(12)) < 0.1


def test_seeded_normal_numbers_have_their_moments() -> None:
    found = get("serde.random_normal").kernel(
        np.zeros((100, 200), np.float64), mean=3.0, scale=0.5, seed=4.0
    )
    assert found.dtype == np.float64
    assert abs(found.mean() - 3) < 0.02
    assert abs(found.std() - 0.5) < 0.02


def test_bernoulli_is_one_as_often_as_told() -> None:
    probs = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 20000).reshape(3, -1)
    found = run_kernel("serde.bernoulli", probs, seed=1.0, dtype="int32")
    np.testing.assert_allclose(found.mean(1), [0, 0.25, 1], atol=0.02)
    assert set(np.unique(found)) == {0, 1}


def test_multinomial_follows_the_softmax() -> None:
    weights = np.array([0.1, 0.0, 0.6, 0.3])
    with np.errstate(divide="ignore"):
        logits = np.log(np.tile(weights, (2, 1))).astype(np.float32)
    found = run_kernel("serde.multinomial", logits, sample_size=20000, seed=1.0)
    for row in found:
        counts = np.bincount(row, minlength=4) / len(row)
        np.testing.assert_allclose(counts, weights, atol=0.02)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("serde.random_uniform", np.zeros((3, 5), np.float32)),
        ("serde.random_normal", np.zeros((3, 5), np.float16)),
        ("serde.bernoulli", np.full((3, 5), 0.5, np.float32)),
        ("serde.multinomial", np.zeros((3, 5), np.float32)),
    ],
)
def test_a_seed_determines_numbers_and_none_does_not(name: str, x: np.ndarray) -> None:
    attrs = {"sample_size": 64} if name == "serde.multinomial" else {}
    first = run_kernel(name, x, seed=7.0, **attrs)
    np.testing.assert_array_equal(first, run_kernel(name, x, seed=7.0, **attrs))
    np.testing.assert_array_equal(first, run_decomposed(name, x, seed=7.0, **attrs))
    assert (first != run_kernel(name, x, seed=8.0, **attrs)).any()
    assert (run_kernel(name, x, **attrs) != run_kernel(name, x, **attrs)).any()
    with pytest.raises(TypeInferenceError, match="no seed determines"):
        run_decomposed(name, x, **attrs)


def test_equal_draws_stay_two() -> None:
    x = relay.var("x", shape=(2, 3))
    draws = [call("serde.random_uniform", x) for _ in range(2)]
    body = relay.subtract(*draws)
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    kept = relay.transform.MergeEqualNodes()(mod)["main"].body
    assert kept.args[0] is not kept.args[1]


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("serde.random_uniform", [(2,)], {"shape": [2]}, "either a tensor to be like or a shape"),
        ("serde.random_uniform", [(2,)], {"dtype": "int32"}, "floating-point"),
        ("serde.multinomial", [(2,)], {}, "cannot draw 1 times"),
        ("serde.multinomial", [(2, 3)], {"sample_size": 0}, "cannot draw 0 times"),
    ],
)
def test_refusals_of_seeded_draws(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)
