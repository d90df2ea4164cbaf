"""Outputs that are sorted or selected, by the exact result: rows near a tie, steps, integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.judging import Array, Run, judged, model_of, shifted, shifted_model, verdict_of

import serde.relay as relay
from serde.checking.data import as_check_data
from serde.checking.judgement import fits
from serde.errors import CheckError


def ranked_model(count: int) -> Any:
    """Scores become sums of three numbers, and what has the largest comes first."""
    x, boxes = relay.var("x", shape=(count, 3)), relay.var("boxes", shape=(count, 4))
    scores = relay.sum(x, axis=[1])
    order = relay.argsort(scores, axis=0, is_ascend=False, dtype="int32")
    rows = relay.concatenate([relay.expand_dims(scores, axis=1), boxes], axis=1)
    return model_of(relay.take(rows, order, axis=0), x, boxes)


def ranked(inputs: Mapping[str, Array], *, near: bool = False) -> Array:
    scores = inputs["x"].sum(axis=1)
    rows = np.concatenate([scores[:, None], inputs["boxes"]], axis=1)
    order = np.argsort(-scores, kind="stable")
    if near:
        gaps = -np.diff(scores[order])
        at = int(np.argmin(gaps))
        order[[at, at + 1]] = order[[at + 1, at]]
    return rows[order]


def tied(monkeypatch: pytest.MonkeyPatch, gap: float) -> None:
    """Make inputs of which two scores are that near to one another."""
    from serde.checking import inputs

    draw = inputs.random_inputs

    def drawn(*args: Any, **options: Any) -> dict[str, Array]:
        values = draw(*args, **options)
        values["x"][5] = values["x"][9]
        values["x"][5, 0] += np.float32(gap)
        return values

    monkeypatch.setattr(inputs, "random_inputs", drawn)


@pytest.mark.parametrize(("gap", "passed"), [(1e-7, True), (1e-2, False)])
def test_rows_may_be_exchanged_where_rounding_decides(
    monkeypatch: pytest.MonkeyPatch, gap: float, passed: bool
) -> None:
    tied(monkeypatch, gap)
    report = judged(ranked_model(40), lambda i: [ranked(i)], lambda i: [ranked(i, near=True)])
    assert report.passed is passed
    if passed:
        assert report.verdicts[0].remark.startswith("2 of 40 rows swapped within")


@pytest.mark.wide
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("float16", [False, True])
def test_exchanged_outputs_fail_beside_a_near_tie(
    monkeypatch: pytest.MonkeyPatch, batch: int, float16: bool
) -> None:
    tied(monkeypatch, 1e-7)
    scores = relay.var("x", shape=(40, 3))
    rows = [relay.multiply(relay.sum(scores, axis=[1]), relay.const(float(i))) for i in (1, -2)]
    order = relay.argsort(rows[0], axis=0, is_ascend=False, dtype="int32")
    shaped = [
        relay.stack([relay.expand_dims(relay.take(each, order, axis=0), axis=1)] * batch, axis=0)
        for each in rows
    ]
    model = model_of(relay.Tuple(shaped), scores, outputs=("a", "b"))

    def source(inputs: Mapping[str, Array]) -> list[Array]:
        total = np.sort(inputs["x"].sum(axis=1))[::-1]
        return [np.stack([(total * i)[:, None]] * batch) for i in np.float32([1, -2])]

    right = judged(model, source, source, float16=float16)
    wrong = judged(model, source, lambda inputs: source(inputs)[::-1], float16=float16)
    assert right.passed
    assert [verdict.failed for verdict in wrong.verdicts] == [True, True]


@pytest.mark.parametrize("fault", ["box", "missing", "swap"])
def test_a_wrong_row_fails_beside_a_near_tie(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    tied(monkeypatch, 1e-7)

    def target(inputs: Mapping[str, Array]) -> list[Array]:
        rows = ranked(inputs, near=True)
        if fault == "box":
            rows[20, 2] += 0.1
        elif fault == "missing":
            rows[20] = rows[21]
        else:
            rows[[3, 30]] = rows[[30, 3]]
        return [rows]

    assert verdict_of(ranked_model(40), lambda i: [ranked(i)], target).failed


@pytest.mark.wide
def test_the_largest_of_equal_ones_may_be_either() -> None:
    x = relay.var("x", shape=(2, 8, 50))
    model = model_of(relay.argmax(relay.tanh(relay.multiply(x, relay.const(100.0))), axis=1), x)

    def source(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.tanh(inputs["x"] * 100).argmax(1).astype("int32")]

    def target(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.where(source(inputs)[0] >= 0, 9, 0).astype("int32")]

    assert verdict_of(model, source, source).passed
    assert verdict_of(model, source, target).failed


def selected_model() -> Any:
    """The boxes that are left of overlapping ones: as many rows as there are."""
    boxes, scores = relay.var("boxes", shape=(20, 4)), relay.var("scores", shape=(20,))
    order = relay.argsort(scores, axis=0, is_ascend=False, dtype="int32")
    kept = relay.strided_slice(relay.take(boxes, order, axis=0), begin=[0], end=[8], strides=[1])
    return model_of(kept, boxes, scores)


def test_a_table_with_a_row_too_few_fails() -> None:
    def source(inputs: Mapping[str, Array]) -> list[Array]:
        return [inputs["boxes"][np.argsort(-inputs["scores"])][:8]]

    model = selected_model()
    assert verdict_of(model, source, source).passed
    verdict = verdict_of(model, source, lambda inputs: [source(inputs)[0][:7]])
    assert verdict.failed


def test_another_dtype_of_a_sorted_output_fails() -> None:
    def target(inputs: Mapping[str, Array]) -> list[Array]:
        return [ranked(inputs).astype("float64")]

    verdict = verdict_of(ranked_model(40), lambda i: [ranked(i)], target)
    assert (verdict.failed, verdict.remark) == (True, "another dtype")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16"])
def test_what_is_narrow_may_come_as_int32(dtype: str) -> None:
    """Core ML's outputs are such."""
    assert fits(dtype, "int32", False)
    assert not fits("int32", dtype, False)
    assert not fits(dtype, "float32", False)


@pytest.mark.parametrize(("at", "passed"), [(3, True), (5, False)])
def test_integers_may_differ_where_a_number_lies_at_a_step(at: int, passed: bool) -> None:
    # Element 3 is a whole number but for rounding, the others lie between two.
    x = relay.var("x", shape=(8, 3))
    model = model_of(relay.cast(relay.floor(relay.sum(x, axis=[1])), dtype="int32"), x)
    values = np.linspace(0.1, 2.2, 24, dtype="float32").reshape(8, 3) + np.float32(1 / 3)
    values[3] = np.float32([0.1, 0.2, 0.7])

    def source(inputs: Mapping[str, Array]) -> list[Array]:
        return [np.floor(values.sum(axis=1)).astype("int32")]

    def target(inputs: Mapping[str, Array]) -> list[Array]:
        found = source(inputs)[0].copy()
        found[at] = 1 - found[at] if at == 3 else found[at] + 1
        return [found]

    verdict = verdict_of(model, source, target, data=as_check_data(values))
    assert verdict.passed is passed


def test_an_error_of_the_engine_is_told() -> None:
    def fail(_: Mapping[str, Array]) -> list[Array]:
        raise ValueError("no")

    with pytest.raises(CheckError, match="numbers failed: ValueError: no"):
        judged(shifted_model(), fail, shifted)


@pytest.mark.parametrize("misread", [relay.floor_divide, relay.floor_mod])
def test_integers_that_the_source_has_otherwise_fail(misread: Any) -> None:
    """The target does as the Relay that was read, its engine as the source says."""
    x = relay.var("x", shape=(40,), dtype="int32")
    model = model_of(misread(relay.subtract(x, relay.const(50)), relay.const(7)), x)
    read = {relay.floor_divide: np.floor_divide, relay.floor_mod: np.mod}[misread]
    meant = {relay.floor_divide: lambda a, b: np.trunc(a / b), relay.floor_mod: np.fmod}[misread]

    def run(function: Any) -> Run:
        return lambda inputs: [function(inputs["x"] - 50, 7).astype("int32")]

    verdict = verdict_of(model, run(meant), run(read))
    assert verdict.failed
    assert "which rounding does not explain" in verdict.remark
