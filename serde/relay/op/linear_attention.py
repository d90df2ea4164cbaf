"""Linear attention: products of keys and values add up in a state, which queries read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Dim, TensorType, call, relay_op, sample, tensor, widen
from serde.relay.ir.expr import Expr, Tuple, TupleGetItem, Var, const, tensor_type
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.work import STEPS
from serde.relay.op.attention import scale_of
from serde.relay.op.control.body import close
from serde.relay.op.recurrent.unrolling import UNROLLED


def _width(x: TensorType, heads: int) -> Dim:
    width = x.shape[2]
    if isinstance(width, int) and width % heads:
        raise TypeInferenceError(f"{width} features cannot be shared by {heads} heads")
    return width // heads


def _linear_type(
    query: TensorType, key: TensorType, value: TensorType, decay: TensorType | None,
    beta: TensorType | None, state: TensorType | None,
    *, num_heads: int, num_key_heads: int, scale: float | None,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    """Heads must be a multiple of key heads; rows, width and batch must agree."""
    require_float(query)
    rows = [x for x in (query, key, value, decay, beta) if x is not None]
    dtype = require_same_dtype(*rows)
    if min(num_heads, num_key_heads) < 1 or num_heads % num_key_heads:
        raise TypeInferenceError(f"{num_heads} heads do not share {num_key_heads} key heads")
    batch, length = query.shape[0], query.shape[-2] if query.rank > 1 else 0
    for each in rows:
        if each.rank != 3:
            raise TypeInferenceError(f"expected (batch, length, features), found {each!r}")
        batch, length = join_dim(batch, each.shape[0]), join_dim(length, each.shape[1])
    width = join_dim(_width(query, num_heads), _width(key, num_key_heads))
    for name, given, own in (("decay", decay, key.shape[2]), ("beta", beta, 1)):
        found = None if given is None else given.shape[2]
        if isinstance(found, int) and isinstance(own, int) and found not in (num_key_heads, own):
            raise TypeInferenceError(
                f"{name}: expected {num_key_heads} or {own} features, found {given!r}"
            )
    shape = [batch, num_key_heads, width, _width(value, num_key_heads)]
    if state is not None:
        require_float(state)
        if state.rank != 4:
            raise TypeInferenceError(f"expected a state of rank 4, found {state!r}")
        shape = [join_dim(a, b) for a, b in zip(shape, state.shape, strict=True)]
    result = TensorType((batch, length, shape[3] * num_heads), dtype)
    return result, TensorType(shape, dtype if state is None else state.dtype)


def _step(state: Expr, rows: Mapping[str, Expr]) -> tuple[Expr, Expr]:
    """Return the state after a place, and what the queries there read of it."""
    key, value = call("expand_dims", rows["key"], axis=3), rows["value"]
    if "decay" in rows:
        kept = call("expand_dims", call("exp", rows["decay"]), axis=3)
        state = call("multiply", state, kept)
    if "beta" in rows:
        known = call("sum", call("multiply", state, key), axis=(2,))
        value = call("multiply", rows["beta"], call("subtract", value, known))
    state = call("add", state, call("multiply", key, call("expand_dims", value, axis=2)))
    query, shared = call("expand_dims", rows["query"], axis=4), call("expand_dims", state, axis=2)
    return state, call("sum", call("multiply", query, shared), axis=(3,))


def _decompose_linear(
    query: Expr, key: Expr, value: Expr, decay: Expr | None, beta: Expr | None, state: Expr | None,
    *, num_heads: int, num_key_heads: int, scale: float | None,
) -> Expr:  # fmt: skip
    """One place after another, in float32 at least: a few of them unrolled, or else a scan."""
    dtype = tensor_type(query).dtype
    wide = "float64" if dtype == "float64" else "float32"

    def split(x: Expr, *heads: int) -> Expr:
        parted = call("reshape", x, newshape=(0, 0, *heads, -1))
        return call("cast", parted, dtype=wide)

    rows = {
        "query": split(query, num_key_heads, num_heads // num_key_heads),
        "key": split(key, num_key_heads),
        "value": split(value, num_key_heads),
    }
    factor = const(scale_of(tensor_type(rows["key"]).shape[3], scale), wide)
    rows["query"] = call("multiply", rows["query"], factor)
    if decay is not None:
        rows["decay"] = split(decay, num_key_heads)
    if beta is not None:
        rows["beta"] = call("cast", call("expand_dims", beta, axis=3), dtype=wide)
    if state is None:
        width = tensor_type(rows["value"]).shape[3]
        if not isinstance(width, int):
            raise TypeInferenceError(f"a state of {width} columns cannot be decomposed")
        zeros = call("zeros_like", call("sum", rows["key"], axis=(1,)))
        last: Expr = call("repeat", call("expand_dims", zeros, axis=3), repeats=width, axis=3)
    else:
        last = call("cast", state, dtype=wide)
    length = tensor_type(query).shape[1]
    if isinstance(length, int) and 0 < length <= UNROLLED:
        found = []
        for index in range(length):
            at = const(np.int32(index))
            here = {name: call("take", x, at, axis=1, mode="clip") for name, x in rows.items()}
            last, read = _step(last, here)
            found.append(read)
        result: Expr = call("stack", found, axis=1)
    else:
        inner = {"state": Var("state", last.type)}
        for name, x in rows.items():
            batch, _, *shape = tensor_type(x).shape
            inner[name] = Var(name, TensorType([batch, *shape], wide))
        carried, *_ = inner.values()
        following = _step(carried, dict(list(inner.items())[1:]))
        body, captures = close(list(inner.values()), following)
        axes = (1,) * len(rows)
        walked = call(
            "serde.scan", (last,), tuple(rows.values()), captures,
            body=body, axes=axes, out_axes=(1,),
        )  # fmt: skip
        last, result = TupleGetItem(walked, 0), TupleGetItem(walked, 1)
    output = call("cast", call("reshape", result, newshape=(0, 0, -1)), dtype=dtype)
    kept = dtype if state is None else tensor_type(state).dtype
    return Tuple([output, call("cast", last, dtype=kept)])


@relay_op(
    "serde.linear_attention",
    traits=(STEPS,),
    infer=_linear_type,
    decompose=_decompose_linear,
    samples=[
        sample((2, 3, 8), (2, 3, 8), (2, 3, 10), num_heads=2, num_key_heads=2),
        sample(
            (2, 3, 16), (2, 3, 8), (2, 3, 6), (2, 3, 8), None, (2, 2, 4, 3),
            num_heads=4, num_key_heads=2, scale=0.5,
        ),
        sample(
            (1, 2, 8), (1, 2, 8), (1, 2, 8), None, (1, 2, 1), num_heads=2, num_key_heads=2
        ),
        sample(
            (2, 9, 8), (2, 9, 4), (2, 9, 4), (2, 9, 1), (2, 9, 1), (2, 1, 4, 4),
            num_heads=2, num_key_heads=1, scale=0.25,
        ),
        sample(
            *(tensor((1, 2, 4), "float16") for _ in range(3)), None, None, (1, 1, 4, 4),
            num_heads=1, num_key_heads=1,
        ),
    ],
)  # fmt: skip
def linear_attention(
    query: Array, key: Array, value: Array, decay: Array | None, beta: Array | None,
    state: Array | None,
    *, num_heads: int, num_key_heads: int, scale: float | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """``S = exp(g) * S + b * outer(k, v - (exp(g) * S).T @ k)``, ``y = scale * S.T @ q``.

    Without `beta` what a key has read already is not taken from its value, and without `decay`
    nothing is forgotten. Source: LinearAttention of ONNX 27; Yang, 2024.

    Args:
        query: (batch, length, heads times width).
        key: (batch, length, key heads times width); heads are a multiple of key heads, and
            follow each other in groups that share one.
        value: (batch, length, key heads times value width).
        decay: The logarithm g, (batch, length, key heads) or one for each feature of a key.
        beta: The factor b, (batch, length, key heads) or (batch, length, 1).
        state: (batch, key heads, width, value width); zeros if None.
        num_heads: Number of heads of the query.
        num_key_heads: Number of heads of key and value.
        scale: Factor of the query; one over the root of the width if None.

    Returns:
        (batch, length, heads times value width), and the state after the last place, in the
        dtype of `state` where that is given.
    """
    batch, length, _ = query.shape
    queries = widen(query).reshape(batch, length, num_key_heads, num_heads // num_key_heads, -1)
    keys, values = (widen(x).reshape(batch, length, num_key_heads, -1) for x in (key, value))
    width = keys.shape[3]
    queries = queries * keys.dtype.type(scale_of(width, scale))
    result = np.empty((*queries.shape[:4], values.shape[3]), keys.dtype)
    last = np.zeros((batch, num_key_heads, width, values.shape[3]), keys.dtype)
    if state is not None:
        last = widen(state).astype(keys.dtype)
    for index in range(length):
        if decay is not None:
            last = last * np.exp(widen(decay)[:, index].reshape(batch, num_key_heads, -1, 1))
        here, new = keys[:, index], values[:, index]
        if beta is not None:
            known = np.einsum("bhkv,bhk->bhv", last, here)
            new = (new - known) * widen(beta)[:, index, :, None]
        last = last + here[..., None] * new[..., None, :]
        result[:, index] = queries[:, index] @ last
    kept = query.dtype if state is None else state.dtype
    return result.reshape(batch, length, -1).astype(query.dtype), last.astype(kept)
