"""TFLite's operators one by one: what LiteRT's kernels give is what serde reads and writes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_cases import CASES
from support.tflite_models import run_litert

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError
from serde.relay.ir.model import RelayModel

KNOWN = {
    "LOCAL_RESPONSE_NORMALIZATION": "the reference kernel's window is one short",
    "LOGISTIC codes int16": "a table of 16 bits, one step off",
    "SOFTMAX codes int16": "tables of 16 bits, six steps off",
    "TANH codes int16": "a table of 16 bits, two steps off",
}
"""Cases that differ, and why."""


def params(first_of: int) -> list[object]:
    """All cases; those between are `wide`."""
    return [
        pytest.param(name, id=name, marks=[pytest.mark.wide] if i % first_of else [])
        for i, name in enumerate(CASES)
    ]


def states(model: RelayModel) -> dict[str, np.ndarray]:
    """Return what a model keeps, as it is at first."""
    kept = [x for x in model.inputs() if f"{x.name_hint}.state" in model.meta.extra]
    return {x.name_hint: np.zeros(x.type.shape, x.type.dtype) for x in kept}


def drawn(name: str, model: RelayModel) -> list[np.ndarray]:
    """Return inputs of a model, within what its operator takes."""
    rng = np.random.default_rng(1)
    found = []
    kept = states(model)
    for variable in (each for each in model.inputs() if each.name_hint not in kept):
        dtype = np.dtype(variable.type.dtype)
        shape = [dim if isinstance(dim, int) else 2 for dim in variable.type.shape]
        if dtype.kind == "f":
            value = 2 * rng.normal(size=shape)
            value = abs(value) + 0.1 if name.startswith(("LOG ", "SQRT", "RSQRT", "POW")) else value
        elif dtype.kind == "b":
            value = rng.integers(0, 2, shape)
        elif dtype.itemsize < 4:
            value = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape)
        else:
            value = rng.integers(-5, 6, shape)
        found.append(np.asarray(value, dtype))
    return found


def judged(data: bytes, feed: list[np.ndarray]) -> list[np.ndarray]:
    """Return what LiteRT gives; skip what it refuses itself."""
    try:
        return run_litert(data, feed)
    except (RuntimeError, ValueError):
        try:
            return run_litert(data, feed, optimised=True)
        except (RuntimeError, ValueError) as error:
            pytest.skip(f"LiteRT: {error}")


def compare(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Floats agree to rounding, all else exactly."""
    assert len(results) == len(expected)
    for found, wanted in zip(results, expected, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", params(3))
def test_what_is_read_agrees_with_litert(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    path = tmp_path / "model.tflite"
    path.write_bytes(CASES[name])
    model = serde.to_relay(path)
    feed = drawn(name, model)
    expected = judged(CASES[name], feed)
    names = [each.name_hint for each in model.inputs()]
    found = RelayEngine(model).run({**states(model), **dict(zip(names, feed, strict=False))})
    compare(found[: len(expected)], expected)


@pytest.mark.sparse(2)
@pytest.mark.parametrize("name", params(5))
@pytest.mark.thin(2)
def test_what_is_written_agrees_with_litert(name: str, tmp_path: Path) -> None:
    if name in KNOWN:
        pytest.skip(KNOWN[name])
    path, target = tmp_path / "model.tflite", tmp_path / "again.tflite"
    path.write_bytes(CASES[name])
    model = serde.to_relay(path)
    feed = drawn(name, model)
    expected = judged(CASES[name], feed)
    with suppress(UnsupportedModelError):
        serde.convert(path, target)
    if not target.exists():
        return
    given = [*feed, *states(model).values()]
    compare(judged(target.read_bytes(), given)[: len(expected)], expected)
