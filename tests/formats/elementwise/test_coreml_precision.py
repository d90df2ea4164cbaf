"""What float16 programs compute in float32: what would leave its range, and what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.coreml_written import model, var
from support.mil_executor import execute

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.coreml.exporter import from_relay
from serde.coreml.model import CoremlModel, operations
from serde.coreml.options import CoremlExportOptions
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Span
from serde.relay.ir.model import RelayModel

RNG = np.random.default_rng(4)


def written(source: RelayModel, **options: Any) -> CoremlModel:
    return from_relay(source, CoremlExportOptions(**options), Report())


def counts(native: CoremlModel) -> Counter[str]:
    return Counter(op.type for op in operations(native.spec) if op.type != "const")


def vectors(count: int, channels: int) -> tuple[list[Any], dict[str, np.ndarray]]:
    names = [f"v{i}" for i in range(count)]
    arrays = {n: RNG.uniform(0.5, 1.5, channels).astype(np.float32) for n in names}
    return [var(name, channels) for name in names], arrays


def batch_norm() -> RelayModel:
    image, (given, arrays) = var("x", 1, 3, 8, 8), vectors(4, 3)
    return model(relay.nn.batch_norm(image, *given)[0], image, *given, **arrays)


def instance_norm() -> RelayModel:
    image, (given, arrays) = var("x", 1, 3, 8, 8), vectors(2, 3)
    return model(relay.nn.instance_norm(image, *given), image, *given, **arrays)


def group_norm() -> RelayModel:
    image, (given, arrays) = var("x", 1, 4, 8, 8), vectors(2, 4)
    return model(relay.nn.group_norm(image, *given, 2), image, *given, **arrays)


def layer_norm() -> RelayModel:
    rows, (given, arrays) = var("x", 2, 5, 8), vectors(2, 8)
    return model(relay.nn.layer_norm(rows, *given), rows, *given, **arrays)


def resized() -> RelayModel:
    image = var("x", 1, 3, 8, 8)
    return model(
        relay.image.resize2d(image, (16, 16), layout="NCHW", method="linear"), image
    )  # fmt: skip


def averaged() -> RelayModel:
    image = var("x", 1, 3, 8, 8)
    return model(relay.mean(image, axis=(2, 3)), image)


NETS: dict[str, tuple[Callable[[], RelayModel], str]] = {
    "batch_norm": (batch_norm, "norms"),
    "instance_norm": (instance_norm, "norms"),
    "layer_norm": (layer_norm, "norms"),
    "group_norm": (group_norm, "norms"),
    "mean": (averaged, "reductions"),
    "resize": (resized, "resizing"),
}


@pytest.mark.wide
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("name", NETS)
def test_norms_means_and_resizing_are_float16(name: str, target: str) -> None:
    """Only the ends are cast, unless the group is asked for; both are right."""
    build, group = NETS[name]
    source = build()
    exact = written(source, compute_precision="float32", minimum_deployment_target=target)
    half = written(source, minimum_deployment_target=target)
    wide = written(source, minimum_deployment_target=target, float32_ops=frozenset({group}))
    assert counts(half)["cast"] == 2
    assert counts(wide)["cast"] == 0
    shape = [int(d) for d in source.inputs()[0].checked_type.shape]
    given = {"x": RNG.normal(2, 3, shape).astype(np.float32)}
    (wanted,) = execute(exact, given)
    for native in (half, wide):
        (found,) = execute(native, given)
        np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=4e-3)


def test_sums_of_squares_stay_in_range() -> None:
    rows = var("x", 2, 256)
    native = written(model(relay.nn.l2_normalize(rows, 1e-12, axis=(1,)), rows))
    x = np.full((2, 256), 300, np.float32)
    (found,) = execute(native, {"x": x})
    np.testing.assert_allclose(found, np.full((2, 256), 1 / 16), rtol=2e-3)


def test_an_epsilon_too_small_for_float16_keeps_constants_finite() -> None:
    rows, (given, arrays) = var("x", 2, 8), vectors(2, 8)
    source = model(relay.nn.layer_norm(rows, *given, -1, 1e-12), rows, *given, **arrays)
    (found,) = execute(written(source), {"x": np.ones((2, 8), np.float32)})
    np.testing.assert_allclose(found, np.stack([arrays["v1"]] * 2), rtol=1e-3)


@pytest.mark.parametrize(("variance", "casts"), [(1e-3, 2), (1e-6, 0), (1e6, 0)])
def test_variances_that_float16_does_not_hold_stay(variance: float, casts: int) -> None:
    image, (given, arrays) = var("x", 1, 3, 8, 8), vectors(4, 3)
    arrays["v3"] = np.full(3, variance, np.float32)
    normal = relay.nn.batch_norm(image, *given, epsilon=1e-9)
    normal.astuple().span = Span("bn")
    source = model(normal[0], image, *given, **arrays)
    native = written(source)
    assert counts(native)["cast"] == casts
    x = RNG.normal(0, np.sqrt(variance), (1, 3, 8, 8)).astype(np.float32)
    gamma, beta, mean, _ = (arrays[f"v{i}"].reshape(1, 3, 1, 1) for i in range(4))
    wanted = (x - mean) / np.sqrt(variance + 1e-9) * gamma + beta
    (found,) = execute(native, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=np.abs(wanted).max() * 2e-3)


def test_a_node_stays_and_an_unknown_name_is_refused() -> None:
    image = var("x", 1, 3, 8, 8)
    inner = relay.exp(image)
    inner.span = Span("grown")
    source = model(relay.nn.relu(inner), image)
    assert counts(written(source, float32_ops=frozenset({"grown"})))["cast"] == 2
    with pytest.raises(OptionError, match="float32_ops: nothing is no operator"):
        written(source, float32_ops=frozenset({"nothing"}))


def spelled_norm() -> RelayModel:
    rows = var("x", 2, 5, 8)
    centred = relay.subtract(rows, relay.mean(rows, axis=(-1,), keepdims=True))
    power = relay.mean(relay.multiply(centred, centred), axis=(-1,), keepdims=True)
    power.span = Span("power")
    root = relay.sqrt(relay.add(power, relay.const(np.float32(1e-5))))
    return model(relay.divide(centred, root), rows)


@pytest.mark.parametrize(
    ("wide", "layers", "casts"),
    [("", 1, 2), ("norms", 1, 0), ("mean", 0, 5), ("power", 0, 4), ("norms,power", 1, 0)],
)
def test_what_stays_float32_is_lost_in_no_layer(wide: str, layers: int, casts: int) -> None:
    """An operator or node that is asked for is float32, or the whole layer that it is part of."""
    source = spelled_norm()
    native = written(source, float32_ops=frozenset(filter(None, wide.split(","))))
    assert counts(native)["layer_norm"] == layers
    assert counts(native)["cast"] == casts
    given = {"x": RNG.normal(2, 3, (2, 5, 8)).astype(np.float32)}
    (wanted,) = execute(written(source, compute_precision="float32"), given)
    (found,) = execute(native, given)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize(
    "options", [{"compute_precision": "float32"}, {"minimum_deployment_target": "iOS14"}]
)
def test_what_is_float32_anyway_is_told(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="all of the model is computed in float32"):
        written(batch_norm(), float32_ops=frozenset({"norms"}), **options)


def test_first_states_of_an_open_batch_are_zero_whatever_the_data() -> None:
    """The sum of a long sequence is beyond the range of float16, and times zero no number."""
    steps = relay.var("x", relay.TensorType((100, symbol("n"), 64), "float32"))
    kept = {"w": RNG.normal(0, 0.1, (1, 32, 64)).astype(np.float32)}
    kept |= {"r": RNG.normal(0, 0.1, (1, 32, 8)).astype(np.float32)}
    given = [var(name, *array.shape) for name, array in kept.items()]
    source = model(relay.serde.lstm(steps, *given, hidden_size=8)[1], steps, *given, **kept)
    x = {"x": RNG.normal(20, 1, (100, 2, 64)).astype(np.float32)}
    (wanted,) = execute(written(source, compute_precision="float32"), x)
    (found,) = execute(written(source, minimum_deployment_target="iOS17"), x)
    np.testing.assert_allclose(found, wanted, atol=4e-3)


@pytest.mark.parametrize("target", ["iOS16", "iOS17", "iOS18"])
def test_weights_of_recurrent_layers_are_float16(target: str, tmp_path: Path) -> None:
    """Before iOS17 MIL's layers take float32, which a weight of float16 becomes on loading."""
    steps, kept = var("x", 3, 2, 4), {"w": RNG.normal(0, 0.3, (1, 80, 4)).astype(np.float32)}
    kept |= {"r": RNG.normal(0, 0.3, (1, 80, 20)).astype(np.float32)}
    given = [var(name, *array.shape) for name, array in kept.items()]
    source = model(relay.serde.lstm(steps, *given, hidden_size=20)[0], steps, *given, **kept)
    x = {"x": RNG.normal(size=(3, 2, 4)).astype(np.float32)}
    (wanted,) = execute(written(source, compute_precision="float32"), x)
    options = {"format": "coreml", "minimum_deployment_target": target}
    path = serde.from_relay(source, path=tmp_path / "m.mlpackage", **options)
    data = path / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    assert data.stat().st_size < 2 * (80 * 24) + 2000
    (found,) = execute(path, x)
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    tools().models.MLModel(str(path), skip_model_load=True)


# Numbers that float16 does not hold.

DATA = np.array([[1, 2, 3], [-4, 0.5, 0]], np.float32)


def one(value: float) -> Any:
    return relay.const(np.float32(value))


BEYOND: dict[str, Callable[[Any], Any]] = {
    "constant": lambda x: relay.multiply(x, one(1e28)),
    "scalar operand": lambda x: relay.nn.pad(x, ((0, 0), (1, 1)), one(1e6)),
    "filled": lambda x: relay.add(x, relay.full(one(7e4), shape=(2, 3), dtype="float32")),
    "weight": lambda x: relay.add(x, var("w", 2, 3)),
    "attribute": lambda x: relay.nn.leaky_relu(x, alpha=1e6),
    "both bounds": lambda x: relay.clip(x, 1e6, 2e6),
}


@pytest.mark.parametrize("case", BEYOND)
def test_what_float16_does_not_hold_is_refused(case: str) -> None:
    x = var("x", 2, 3)
    body = BEYOND[case](x)
    weights = [each for each in getattr(body, "args", ()) if getattr(each, "name_hint", "") == "w"]
    kept = {each.name_hint: np.full((2, 3), 1e5, np.float32) for each in weights}
    source = model(body, x, *weights, **kept)
    with pytest.raises(UnsupportedModelError, match="beyond the range of float16"):
        written(source)
    (found,) = execute(written(source, compute_precision="float32"), {"x": DATA})
    assert np.isfinite(found).all()
    if case in ("attribute", "both bounds"):
        return
    report = Report()
    from_relay(source, CoremlExportOptions(allow=frozenset({"float16-overflow"})), report)
    assert [issue.op for issue in report.allowed] == ["cast"]


def test_a_node_that_is_named_stays_float32() -> None:
    x = var("x", 2, 3)
    body = relay.multiply(x, one(1e28))
    body.span = Span("scaled")
    native = written(model(body, x), float32_ops=frozenset({"scaled"}))
    np.testing.assert_allclose(execute(native, {"x": DATA})[0], DATA * np.float32(1e28), rtol=1e-3)


LOWEST = float(np.finfo(np.float32).min)
HELD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bounds that bound nothing": (lambda x: relay.clip(x, -1e6, 1e6), lambda x: x),
    "mask that is chosen": (
        lambda x: relay.nn.softmax(relay.where(relay.greater(x, one(1)), x, one(LOWEST))),
        lambda x: softmax(np.where(x > 1, x, LOWEST)),
    ),
    "mask that is multiplied": (
        lambda x: relay.nn.softmax(
            relay.add(x, relay.multiply(relay.cast(relay.less(x, one(2)), "float32"), one(LOWEST)))
        ),
        lambda x: softmax(x + (x < 2) * np.float32(LOWEST)),
    ),
    "small factor": (lambda x: relay.multiply(x, one(1e-12)), lambda x: x * 1e-12),
    "small summand": (
        lambda x: relay.divide(one(1), relay.add(relay.abs(x), one(1e-12))),
        lambda x: 1 / np.where(x == 0, np.nan, np.abs(x)),
    ),
    "small bound": (lambda x: relay.log(relay.clip(x, 1e-12, 1.0)), None),
}  # fmt: skip


def softmax(x: Any) -> Any:
    """Of rows, in float64."""
    weights = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("case", HELD)
def test_what_is_like_nothing_or_infinity_stays_a_number(case: str) -> None:
    build, compute = HELD[case]
    x = var("x", 2, 3)
    source, report = model(build(x), x), Report()
    (found,) = execute(from_relay(source, CoremlExportOptions(), report), {"x": DATA})
    assert not report.allowed
    assert not np.isnan(found).any()
    if compute is None:
        assert np.isfinite(found).all()
        return
    wanted = compute(DATA)
    known = np.isfinite(wanted)
    np.testing.assert_allclose(found[known], wanted[known], rtol=4e-3)


def test_a_weight_that_masks_has_the_end_of_float16() -> None:
    x, w = var("x", 2, 3), var("w", 2, 3)
    mask = np.array([[0, LOWEST, 0], [LOWEST, LOWEST, LOWEST]], np.float32)
    source, report = model(relay.nn.softmax(relay.add(x, w)), x, w, w=mask), Report()
    (found,) = execute(from_relay(source, CoremlExportOptions(), report), {"x": DATA})
    np.testing.assert_allclose(found, softmax(DATA + mask), rtol=4e-3, atol=1e-3)
    assert any(each.startswith("weight w is like infinity") for each in report.notes)
