"""Operators of ONNX Runtime for decoders, beside NumPy and what they are recognised in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.errors import Report

HEADS, GROUPS, WIDTH, HIDDEN = 4, 2, 16, 64
BATCH, ROWS, PAST = (relay.symbol(name) for name in ("batch", "sequence", "past"))
TOTAL = PAST + ROWS


def _length(x: Any, axis: int) -> Any:
    return relay.take(relay.shape_of(x, dtype="int64"), relay.const(axis, "int64"), axis=0)


def _arange(stop: Any, length: Any) -> Any:
    zero, one = (relay.const(each, "int64") for each in (0, 1))
    return relay.reshape(relay.arange(zero, stop, one, dtype="int64"), (length,))


def _mask(flags: Any, past: Any, rows: Any, window: int | None, causal: bool) -> Any:
    """The flags as transformers makes them: positions compared, the mask looked up."""
    before, count = _length(past, 2), _length(rows, 1)
    keys = relay.expand_dims(_arange(relay.add(before, count), TOTAL), axis=0, num_newaxis=3)
    queries = relay.add(_arange(count, ROWS), before)
    queries = relay.expand_dims(relay.expand_dims(queries, axis=0, num_newaxis=2), axis=3)
    samples = relay.expand_dims(_arange(_length(past, 0), BATCH), axis=1, num_newaxis=3)
    wide = [relay.broadcast_to(each, (BATCH, 1, 1, TOTAL)) for each in (samples, keys)]
    found = relay.serde.gather_nd(relay.cast(flags, "bool"), relay.stack(wide, axis=-1))
    if window is not None:
        least = relay.subtract(queries, relay.const(window, "int64"))
        found = relay.logical_and(relay.greater(keys, least), found)
    if causal:
        found = relay.logical_and(relay.less_equal(keys, queries), found)
    return relay.logical_and(relay.const(True), found)


def _heads(x: Any, count: int) -> Any:
    return relay.transpose(relay.reshape(x, (0, 0, count, WIDTH)), axes=(0, 2, 1, 3))


def _rotate(x: Any, angles: Any, dtype: str, rotated: int) -> Any:
    """The first features of heads, turned by angles of which each stands twice."""

    def cut(data: Any, begin: int, end: int) -> Any:
        return relay.strided_slice(data, begin=[begin], end=[end], strides=[1], axes=[3])

    both = relay.concatenate([angles, angles], axis=2)
    cos, sin = (
        relay.expand_dims(relay.cast(relay.multiply(each(both), relay.const(1.5)), dtype), axis=1)
        for each in (relay.cos, relay.sin)
    )
    data = x if rotated == WIDTH else cut(x, 0, rotated)
    halves = [relay.negative(cut(data, rotated // 2, rotated)), cut(data, 0, rotated // 2)]
    turned = relay.multiply(relay.concatenate(halves, axis=3), sin)
    found = relay.add(relay.multiply(data, cos), turned)
    return found if data is x else relay.concatenate([found, cut(x, rotated, WIDTH)], axis=3)


def _repeat(x: Any) -> Any:
    wide = relay.broadcast_to(relay.expand_dims(x, axis=2), (BATCH, GROUPS, 2, TOTAL, WIDTH))
    return relay.reshape(wide, (BATCH, HEADS, TOTAL, WIDTH))


def _layer(
    dtype: str, *, rotated: int = WIDTH, window: int | None = None, cap: float | None = None,
    causal: bool = True,
) -> relay.IRModule:  # fmt: skip
    """One layer of a decoder, whose queries, keys and values are given."""
    shape = {
        "query": (BATCH, ROWS, HIDDEN),
        "key": (BATCH, ROWS, 32),
        "value": (BATCH, ROWS, 32),
        "past_key": (BATCH, GROUPS, PAST, WIDTH),
        "past_value": (BATCH, GROUPS, PAST, WIDTH),
    }
    given = {name: relay.var(name, shape=each, dtype=dtype) for name, each in shape.items()}
    flags = relay.var("attention_mask", shape=(BATCH, TOTAL), dtype="int64")
    places = relay.var("position_ids", shape=(BATCH, ROWS), dtype="int64")
    rate = relay.const(_rates(rotated))
    angles = relay.multiply(relay.cast(relay.expand_dims(places, axis=2), "float32"), rate)
    query, new_key = (
        _rotate(_heads(given[name], count), angles, dtype, rotated)
        for name, count in (("query", HEADS), ("key", GROUPS))
    )
    keys = relay.concatenate([given["past_key"], new_key], axis=2)
    new_value = _heads(given["value"], GROUPS)
    values = relay.concatenate([given["past_value"], new_value], axis=2)
    mask = _mask(flags, given["past_key"], given["query"], window, causal)
    if cap is None:
        attention = relay.serde.attention(query, _repeat(keys), _repeat(values), mask, scale=0.25)
    else:
        turned = relay.transpose(_repeat(keys), axes=(0, 1, 3, 2))
        scores = relay.multiply(relay.serde.matmul(query, turned), relay.const(0.25, dtype))
        number = relay.const(cap, dtype)
        scores = relay.multiply(relay.tanh(relay.divide(scores, number)), number)
        low = relay.const(np.finfo(dtype).min, dtype)
        scores = relay.add(scores, relay.where(mask, relay.const(0.0, dtype), low))
        chances = relay.nn.softmax(relay.cast(scores, "float32"), axis=3)
        attention = relay.serde.matmul(relay.cast(chances, dtype), _repeat(values))
    found = relay.reshape(relay.transpose(attention, axes=(0, 2, 1, 3)), (0, 0, HIDDEN))
    function = relay.Function([*given.values(), flags, places], relay.Tuple([found, keys, values]))
    return relay.IRModule.from_expr(function)


def _rates(rotated: int) -> np.ndarray:
    return (100.0 ** -(np.arange(rotated // 2) * 2 / rotated)).astype(np.float32)


def _expected(feeds: dict[str, Any], rotated: int, window: int | None, cap: float | None) -> Any:
    """The same in NumPy, in float64."""
    given = {name: np.asarray(each, np.float64) for name, each in feeds.items()}

    def heads(x: Any, count: int) -> Any:
        return x.reshape(*x.shape[:2], count, WIDTH).transpose(0, 2, 1, 3)

    def rotate(x: Any) -> Any:
        angles = given["position_ids"][:, None, :, None] * _rates(rotated)
        cos, sin, half = 1.5 * np.cos(angles), 1.5 * np.sin(angles), rotated // 2
        a, b = x[..., :half], x[..., half:rotated]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., rotated:]], -1)

    query, key = rotate(heads(given["query"], HEADS)), rotate(heads(given["key"], GROUPS))
    keys = np.concatenate([given["past_key"], key], 2)
    values = np.concatenate([given["past_value"], heads(given["value"], GROUPS)], 2)
    scores = 0.25 * query @ keys.repeat(2, 1).swapaxes(2, 3)
    scores = scores if cap is None else cap * np.tanh(scores / cap)
    rows, total = scores.shape[2:]
    ahead = np.arange(total) - (np.arange(rows)[:, None] + total - rows)
    seen = (ahead <= 0) & (window is None or ahead > -(window or 0))
    seen = seen & feeds["attention_mask"].astype(bool)[:, None, None]
    weights = np.where(seen, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    found = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300) @ values.repeat(2, 1)
    return found.transpose(0, 2, 1, 3).reshape(*found.shape[::2], HIDDEN), keys, values


def _feeds(batch: int, past: int, rows: int, side: str, dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(batch * 100 + past * 10 + rows)
    flags = np.ones((batch, past + rows), np.int64)
    for row in range(1, batch):
        flags[row, : 2 * row] = flags[row, : 2 * row] * (side != "left")
        flags[row, past + rows - row :] *= side != "right"
    shape = {
        "query": (batch, rows, HIDDEN),
        "key": (batch, rows, 32),
        "value": (batch, rows, 32),
        "past_key": (batch, 2, past, WIDTH),
        "past_value": (batch, 2, past, WIDTH),
    }
    feeds = {name: rng.standard_normal(each).astype(dtype) for name, each in shape.items()}
    places = np.maximum(flags.cumsum(1) - 1, 0)[:, past:]
    return {**feeds, "attention_mask": flags, "position_ids": places}


def _convert(mod: relay.IRModule, runtime: str, opset: int = 17) -> tuple[Any, list[str], Report]:
    onnxruntime = pytest.importorskip("onnxruntime")
    report = Report()
    model = serde.export_model(mod, format="onnx", runtime=runtime, opset=opset, report=report)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session, [node.op_type for node in model.graph.node], report


FORMS = {
    "full": {}, "partly rotated": {"rotated": 8}, "window": {"window": 4}, "capped": {"cap": 5.0},
}  # fmt: skip
CALLS = [(1, 0, 7, "none"), (3, 0, 7, "left"), (3, 0, 7, "right"), (3, 6, 1, "left"),
         (1, 6, 1, "none"), (1, 5, 2, "none")]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("form", FORMS)
def test_attention_with_a_cache_is_one_operator(form: str, dtype: str) -> None:
    how: dict[str, Any] = FORMS[form]
    session, operators, _ = _convert(_layer(dtype, **how), "onnxruntime")
    assert operators.count("GroupQueryAttention") == 1
    assert operators.count("RotaryEmbedding") == 2
    assert not {"Softmax", "MatMul", "GatherND"} & {*operators}
    own = [how.get("rotated", WIDTH), how.get("window"), how.get("cap")]
    limit = 2e-6 if dtype == "float32" else 4e-3
    for call in CALLS:
        feeds = _feeds(*call, dtype)
        found, expected = session.run(None, feeds), _expected(feeds, *own)
        rows = ... if form != "capped" else feeds["attention_mask"][:, call[1] :].astype(bool)
        np.testing.assert_allclose(found[0][rows], expected[0][rows], limit, 4 * limit)
        for each, wanted in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(each, wanted, limit, 4 * limit)


@pytest.mark.parametrize("form", FORMS)
def test_attention_is_the_same_in_operators_of_onnx(form: str) -> None:
    layer = _layer("float32", **FORMS[form])
    fused, plain = _convert(layer, "onnxruntime")[0], _convert(layer, "any")[0]
    whole, operators, _ = _convert(layer, "any", 23)
    assert operators.count("Attention") == (form != "capped")
    assert operators.count("RotaryEmbedding") == 2
    for call in CALLS:
        feeds = _feeds(*call, "float32")
        results = [each.run(None, feeds) for each in (fused, plain, whole)]
        for other in results[1:]:
            np.testing.assert_allclose(results[0][0], other[0], 1e-5, 1e-6)


def test_the_report_says_what_the_operator_does_not_take() -> None:
    _, operators, report = _convert(_layer("float32"), "onnxruntime")
    assert "GroupQueryAttention" in operators
    assert any("for one text, not for a batch" in note for note in report.notes)


def test_attention_that_sees_what_is_behind_stays() -> None:
    _, operators, report = _convert(_layer("float32", causal=False), "onnxruntime")
    assert "GroupQueryAttention" not in operators
    assert any("1 serde.attention stay as they are: its mask" in note for note in report.notes)


def test_attention_whose_keys_have_another_use_stays() -> None:
    mod = _layer("float32")
    main = mod["main"]
    found, keys, values = main.body.fields
    body = relay.Tuple([found, relay.sum(keys), values])
    _, operators, report = _convert(
        relay.IRModule.from_expr(relay.Function(main.params, body)), "onnxruntime"
    )
    assert "GroupQueryAttention" not in operators
    assert any("another use" in note for note in report.notes)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("opset", [17, 23])
def test_norms_of_sums_are_one_operator(opset: int, dtype: str) -> None:
    x, y = (relay.var(name, shape=(BATCH, ROWS, 32), dtype=dtype) for name in "xy")
    scale = np.random.default_rng(0).uniform(0.5, 2, 32)
    gamma = relay.const(scale, dtype)

    def norm(data: Any) -> Any:
        wide = relay.cast(data, "float32") if dtype == "float16" else data
        mean = relay.mean(relay.power(wide, relay.const(2.0)), axis=(2,), keepdims=True)
        plain = relay.multiply(wide, relay.rsqrt(relay.add(mean, relay.const(1e-6))))
        return relay.multiply(gamma, relay.cast(plain, dtype) if dtype == "float16" else plain)

    total = relay.add(norm(x), y)
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple([norm(total), total])))
    session, operators, _ = _convert(mod, "onnxruntime", opset)
    single = "SimplifiedLayerNormalization" if opset < 23 else "RMSNormalization"
    assert sorted(operators) == sorted(["SkipSimplifiedLayerNormalization", single])
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal((2, 3, 32)).astype(dtype) for name in "xy"}

    def reference(data: Any) -> Any:
        return data / np.sqrt(np.square(data).mean(-1, keepdims=True) + 1e-6) * scale

    wanted = reference(feeds["x"].astype(np.float64)) + feeds["y"]
    limit = 2e-6 if dtype == "float32" else 3e-3
    for found, expected in zip(session.run(None, feeds), (reference(wanted), wanted), strict=True):
        np.testing.assert_allclose(found, expected, limit, limit)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gated_experts_are_one_operator(dtype: str, normalized: bool) -> None:
    experts, inner, chosen, tokens = 4, 24, 2, 5
    rng = np.random.default_rng(2)
    first = rng.standard_normal((experts, 16, 2 * inner)) / 4
    second = rng.standard_normal((experts, inner, 16)) / 4
    x = relay.var("x", shape=(ROWS, 16), dtype=dtype)
    logits = relay.var("logits", shape=(ROWS, experts), dtype=dtype)
    parts = relay.split(relay.serde.matmul(x, relay.const(first, dtype)), 2, axis=2)
    hidden = relay.multiply(relay.serde.silu(parts[0]), parts[1])
    found = relay.nn.batch_matmul(hidden, relay.const(second, dtype), transpose_b=False)
    best = relay.topk(relay.nn.softmax(logits, axis=1), k=chosen, axis=1, dtype="int64")
    shares = best[0]
    if normalized:
        shares = relay.divide(shares, relay.sum(shares, axis=1, keepdims=True))
    numbers = relay.const(np.arange(experts), "int64")
    places = relay.equal(relay.expand_dims(best[1], axis=2), numbers)
    spread = relay.multiply(relay.cast(places, dtype), relay.expand_dims(shares, axis=2))
    spread = relay.transpose(relay.sum(spread, axis=1), axes=(1, 0))
    whole = relay.sum(relay.multiply(found, relay.expand_dims(spread, axis=2)), axis=0)
    mod = relay.IRModule.from_expr(relay.Function([x, logits], whole))
    session, operators, _ = _convert(mod, "onnxruntime")
    assert operators == ["MoE"]
    feeds = {name: rng.standard_normal((tokens, width)).astype(dtype)
             for name, width in (("x", 16), ("logits", experts))}  # fmt: skip
    wanted = np.zeros((tokens, 16))
    for row, (data, scores) in enumerate(
        zip(*(x.astype(float) for x in feeds.values()), strict=True)
    ):
        chances = np.exp(scores) / np.exp(scores).sum()
        order = np.argsort(-chances)[:chosen]
        for each in order:
            gate, up = np.split(data @ first[each], 2)
            value = (gate / (1 + np.exp(-gate)) * up) @ second[each]
            share = chances[each] / (chances[order].sum() if normalized else 1)
            wanted[row] += share * value
    limit = 2e-6 if dtype == "float32" else 5e-3
    np.testing.assert_allclose(session.run(None, feeds)[0], wanted, limit, 4 * limit)
