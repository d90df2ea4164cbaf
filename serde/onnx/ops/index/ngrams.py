"""Counts of n-grams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

import serde.relay as relay
from serde.core import Array, full, iterations, zeros
from serde.errors import Unsupported
from serde.onnx.ops.table import OPS, Import
from serde.relay.ir.expr import Expr


@OPS.imports("TfIdfVectorizer", since=9)
def import_tf_idf_vectorizer(
    ctx: Import, x: Expr,
    *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
    ngram_counts: tuple[int, ...], ngram_indexes: tuple[int, ...],
    pool_int64s: tuple[int, ...] = (), pool_strings: tuple[str, ...] = (),
    weights: tuple[float, ...] = (),
) -> Expr:  # fmt: skip
    """``counts * weights`` (TFIDF), ``counts`` (TF) or ``(counts > 0) * weights`` (IDF)."""
    if pool_strings:
        raise Unsupported("a tensor of strings has no counterpart in Relay")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise Unsupported(f"mode {mode!r} is unknown")
    grams = _split_pool(pool_int64s, ngram_counts)
    total = sum(len(each) for each in grams)
    if len(ngram_indexes) != total or len(weights) not in (0, total):
        raise Unsupported(
            f"{len(ngram_indexes)} indices and {len(weights)} weights for {total} n-grams"
        )
    if not total or max_skip_count < 0:
        raise Unsupported(f"{total} n-grams with up to {max_skip_count} items between their own")
    rank = ctx.type(x).rank
    if rank not in (1, 2):
        raise Unsupported(f"an input of rank {rank}")
    rows = relay.cast(x if rank == 2 else relay.expand_dims(x, axis=0), "int64")
    lengths = range(min_gram_length, max_gram_length + 1)
    counts = [
        _count_ngrams(ctx, rows, each, max_skip_count)
        if length in lengths and len(each)
        else _zero_counts(ctx, rows, len(each))
        for length, each in enumerate(grams, 1)
    ]
    found = relay.cast(relay.concatenate(counts, axis=1), "float32")
    if weights and mode != "TF":
        if len(set(ngram_indexes)) < total:
            raise Unsupported("weights of n-grams that share an entry")
        found = _apply_weights(ctx, found, weights, mode)
    found = _sum_by_index(ctx, found, ngram_indexes)
    if mode == "IDF" and not weights:
        found = _is_positive(found)
    return found if rank == 2 else relay.squeeze(found, axis=[0])


def _split_pool(pool: Sequence[int], starts: Sequence[int]) -> list[Array]:
    """Return the n-grams of each length from 1 on, a row each."""
    stops = [*starts[1:], len(pool)][: len(starts)]
    found = []
    for length, (start, end) in enumerate(zip(starts, stops, strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            raise Unsupported(f"n-grams of length {length} from {start} to {end} of {len(pool)}")
        grams = np.array(pool[start:end], np.int64).reshape(-1, length)
        if len(np.unique(grams, axis=0)) < len(grams):
            raise Unsupported(f"an n-gram of length {length} is given twice")
        found.append(grams)
    return found


def _count_ngrams(ctx: Import, rows: Expr, grams: Array, skips: int) -> Expr:
    """Return how often each row has each n-gram, with up to `skips` items between its own."""
    length = grams.shape[1]
    keys = [ctx.array(column) for column in grams.T]
    parts = []
    for skipped in iterations(skips + 1 if length > 1 else 1, "the distances of an n-gram"):
        distance = skipped + 1
        items = _shift_items(rows, length, distance)
        same = [
            relay.equal(relay.expand_dims(each, axis=-1), key)
            for each, key in zip(items, keys, strict=True)
        ]
        whole = reduce(relay.logical_and, same)
        parts.append(relay.sum(relay.cast(whole, "int64"), axis=1))
    return reduce(relay.add, parts)


def _shift_items(rows: Expr, length: int, distance: int) -> Iterator[Expr]:
    """Yield the items of all n-grams at each position: the rows without some at their ends."""
    for position in range(length):
        before, after = position * distance, (length - 1 - position) * distance
        end = -after if after else np.iinfo(np.int64).max
        yield relay.strided_slice(rows, begin=[before], end=[end], strides=[1], axes=[1])


def _zero_counts(ctx: Import, rows: Expr, count: int) -> Expr:
    """Return zeros for n-grams whose length is not counted."""
    none = relay.sum(relay.cast(relay.not_equal(rows, rows), "int64"), axis=1, keepdims=True)
    return relay.add(none, ctx.array(zeros((1, count), np.int64)))


def _apply_weights(ctx: Import, counts: Expr, weights: Sequence[float], mode: str) -> Expr:
    factors = ctx.array(np.array(weights, np.float32))
    return relay.multiply(counts if mode == "TFIDF" else _is_positive(counts), factors)


def _is_positive(counts: Expr) -> Expr:
    return relay.cast(relay.greater(counts, relay.const(np.float32(0.0))), "float32")


def _sum_by_index(ctx: Import, counts: Expr, indices: Sequence[int]) -> Expr:
    """Return the entries of the result: sums of the counts that go to each of them."""
    if min(indices) < 0:
        raise Unsupported(f"entry {min(indices)} of the result")
    sources: list[Array] = []
    layers = zeros(max(indices) + 1, np.int64)
    for source, entry in enumerate(indices):
        if layers[entry] == len(sources):
            sources.append(full(len(layers), len(indices), np.int32))
        sources[layers[entry]][entry] = source
        layers[entry] += 1
    padded = relay.nn.pad(counts, ((0, 0), (0, 1)))
    taken = [relay.take(padded, ctx.array(each), axis=1, mode="fast") for each in sources]
    return reduce(relay.add, taken)
