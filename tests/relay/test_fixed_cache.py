"""Caches of a fixed length, against the decoder spelled out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.decoders import VOCABULARY, decoder, scores

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import OptionError
from serde.relay.ir import called_name
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.visit import post_order
from serde.relay.transform import fix_cache, with_batch

LENGTH = 24
TOKENS = np.random.default_rng(1).integers(0, VOCABULARY, 20).tolist()


class Reader:
    """Reads texts piece by piece, from caches that hold nonsense at first."""

    def __init__(self, model: RelayModel) -> None:
        self._model, self._engine = model, RelayEngine(model)
        types = {each.name_hint: each.type for each in model.inputs()}
        self._kept = {
            name: np.full(types[name].shape, 9, np.float32) for name in model.meta.states.values()
        }
        self._read = 0

    def read(self, ids: Any, padded: int = 0, **given: Any) -> Any:
        count = ids.shape[1]
        ids = np.pad(ids, ((0, 0), (0, padded)))
        places = np.arange(self._read, self._read + ids.shape[1])
        own = {"input_ids": ids, "cache_position": places, **given}
        found = dict(
            zip(self._model.meta.outputs, self._engine.run({**own, **self._kept}), strict=True)
        )
        self._kept = {name: found[output] for output, name in self._model.meta.states.items()}
        self._read += count
        return found["logits"][:, :count]


@pytest.mark.parametrize(
    "pieces", [[20], [1] * 20, [7, 1, 5, 7]], ids=["at once", "by token", "in pieces"]
)
@pytest.mark.parametrize("padded", [0, 3])
def test_a_text_is_read_piece_by_piece(pieces: list[int], padded: int) -> None:
    reader, found, first = Reader(fix_cache(decoder(), LENGTH)), [], 0
    for count in pieces:
        found.append(reader.read(np.array([TOKENS[first : first + count]]), padded)[0])
        first += count
    np.testing.assert_allclose(np.concatenate(found), scores(TOKENS), rtol=1e-4, atol=1e-5)


def test_texts_of_a_batch_are_padded_on_the_left() -> None:
    reader = Reader(fix_cache(decoder(), LENGTH, 2))
    ids, mask = np.array([TOKENS[:8], [0, 0, 0, *TOKENS[8:13]]]), np.ones((2, LENGTH), np.int64)
    mask[1, :3] = 0
    first = reader.read(ids, attention_mask=mask)
    later = reader.read(np.array([[3], [4]]), attention_mask=mask)
    np.testing.assert_allclose(first[0], scores(TOKENS[:8]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(first[1, 3:], scores(TOKENS[8:13]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(later[1], scores([*TOKENS[8:13], 4])[-1:], rtol=1e-4, atol=1e-5)


def test_nothing_grows_any_more() -> None:
    model = fix_cache(decoder(), LENGTH)
    shapes = {each.name_hint: list(each.type.shape) for each in model.inputs()}
    assert [str(each) for each in shapes.pop("input_ids")] == ["1", "sequence"]
    assert [str(each) for each in shapes.pop("cache_position")] == ["sequence"]
    assert {*map(tuple, shapes.values())} == {(1, 2, LENGTH, 32)}
    names = [called_name(node) for node in post_order(model.main)]
    assert names.count("serde.tensor_scatter") == 4
    assert "concatenate" not in names
    assert model.meta.extra["sequence.range"] == f"1:{LENGTH}:1"


def test_an_input_of_that_name_is_left_alone() -> None:
    model = serde.to_relay(decoder(), rename_inputs={"attention_mask": "cache_position"})
    found = serde.to_relay(model, cache_length=LENGTH)
    assert found.meta.inputs[:3] == ("input_ids", "cache_position", "cache_position_1")


def test_a_batch_may_be_fixed_alone() -> None:
    model = with_batch(decoder(), 3)
    assert {str(each.type.shape[0]) for each in model.inputs()} == {"3"}


def without_states(model: RelayModel) -> RelayModel:
    return model.evolve(meta=ModelMeta(model.meta.inputs, model.meta.outputs))


@pytest.mark.parametrize(
    ("model", "asked", "message"),
    [
        (decoder(causal=False), {"cache_length": 8}, "attention may see keys that are not yet"),
        (without_states(decoder()), {"cache_length": 8}, "keeps nothing that grows"),
        (decoder(), {"cache_length": 0}, "cache_length: expected 1 or more, found 0"),
        (decoder(), {"cache_batch": -1}, "cache_batch: expected 1 or more, found -1"),
    ],
)
def test_what_has_no_such_cache_is_refused(
    model: RelayModel, asked: dict[str, int], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        serde.to_relay(model, **asked)
