"""A decoder with two layers of attention, written down in Relay and once more in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import serde.relay as relay
from serde.core import ArrayWeight
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Function, Tuple, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

__all__ = ["LAYERS", "VOCABULARY", "WEIGHTS", "decoder", "scores"]

LAYERS, HEADS, SIZE, VOCABULARY = 2, 2, 32, 24
WIDTH = HEADS * SIZE
BATCH, SEQUENCE, PAST = symbol("batch"), symbol("sequence"), symbol("past")


def _weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {"table": (VOCABULARY, WIDTH)}
    shapes |= {f"{i}.{name}": (WIDTH, WIDTH) for i in range(LAYERS) for name in "qkvo"}
    return {
        name: (rng.standard_normal(shape) * (0.3 if name == "table" else 0.2)).astype(np.float32)
        for name, shape in shapes.items()
    }


WEIGHTS = _weights()


def scores(tokens: Sequence[int]) -> Any:
    """Return the scores behind each of some tokens, in float64."""
    w = {name: each.astype(np.float64) for name, each in WEIGHTS.items()}
    x = w["table"][list(tokens)]
    hidden = np.triu(np.ones((len(tokens),) * 2, bool), 1)
    for layer in range(LAYERS):
        q, k, v = (
            (x @ w[f"{layer}.{name}"].T).reshape(-1, HEADS, SIZE).transpose(1, 0, 2)
            for name in "qkv"
        )
        products = np.where(hidden, -np.inf, q @ k.transpose(0, 2, 1) / np.sqrt(SIZE))
        shares = np.exp(products - products.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        x = x + mixed.transpose(1, 0, 2).reshape(-1, WIDTH) @ w[f"{layer}.o"].T
    return x @ w["table"].T


def decoder(causal: bool = True) -> RelayModel:
    """Return the decoder, whose caches grow; heads are split by a reshape and a transpose."""
    ids = Var("input_ids", TensorType((BATCH, SEQUENCE), "int64"))
    mask = Var("attention_mask", TensorType((BATCH, PAST + SEQUENCE), "int64"))
    states = {
        f"present.{i}.{kind}": f"past_key_values.{i}.{kind}"
        for i in range(LAYERS) for kind in ("key", "value")
    }  # fmt: skip
    past = [Var(x, TensorType((BATCH, HEADS, PAST, SIZE), "float32")) for x in states.values()]
    weights = {name: Var(name, TensorType(x.shape, "float32")) for name, x in WEIGHTS.items()}
    seen = _mask(ids, mask, past[0], causal)
    x, present = relay.take(weights["table"], ids, axis=0), list[Expr]()
    for layer in range(LAYERS):
        split = {
            name: relay.transpose(
                relay.reshape(
                    relay.nn.dense(x, weights[f"{layer}.{name}"]), (BATCH, SEQUENCE, HEADS, SIZE)
                ),
                (0, 2, 1, 3),
            )
            for name in "qkv"
        }
        kept = [
            relay.concatenate([before, split[name]], axis=2)
            for before, name in zip(past[2 * layer :], "kv", strict=False)
        ]
        mixed = relay.serde.attention(split["q"], *kept, seen)
        joined = relay.reshape(relay.transpose(mixed, (0, 2, 1, 3)), (BATCH, SEQUENCE, WIDTH))
        x = relay.add(x, relay.nn.dense(joined, weights[f"{layer}.o"]))
        present += kept
    body = Tuple([relay.nn.dense(x, weights["table"]), *present])
    main = infer_function(Function([ids, mask, *past, *weights.values()], body))
    params = {name: ArrayWeight(each) for name, each in WEIGHTS.items()}
    meta = ModelMeta(
        ("input_ids", "attention_mask", *states.values()), ("logits", *states), states=states
    )
    return RelayModel(IRModule({"main": main}), params, meta)


def _mask(ids: Var, mask: Var, past: Var, causal: bool) -> Expr:
    """Return which key (last axis) each query sees."""
    shown = relay.expand_dims(relay.cast(mask, "bool"), axis=1, num_newaxis=2)
    if not causal:
        return shown
    zero, one, two = (relay.const(each, "int64") for each in range(3))
    before, new = (
        relay.take(relay.shape_of(x, "int64"), axis, axis=0)
        for x, axis in ((past, two), (ids, one))
    )
    keys = relay.reshape(relay.arange(zero, before + new, one, "int64"), (PAST + SEQUENCE,))
    rows = relay.reshape(relay.arange(zero, new, one, "int64"), (SEQUENCE,)) + before
    earlier = relay.less_equal(
        relay.expand_dims(keys, axis=0, num_newaxis=3),
        relay.expand_dims(relay.expand_dims(rows, axis=0, num_newaxis=2), axis=3),
    )
    return relay.logical_and(earlier, shown)
