"""Blocks of gluonnlp that generate, step by step in ONNX Runtime, against MXNet itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gluonnlp_generators import (
    UNITS,
    VOCABULARY,
    beam_update,
    drawn,
    flatten,
    gpt2,
    interface,
    language_model,
    recurrent_decoder,
    translator,
)

import serde
from serde.compat import import_mxnet

mx = import_mxnet()
pytest.importorskip("gluonnlp")
runtime = pytest.importorskip("onnxruntime")

STEPS = 12
NEAR = 2e-5
"""Of the spread of what MXNet gives."""


def array(value: Any) -> Any:
    return mx.nd.array(value, dtype=value.dtype)


class Net:
    """A model in ONNX Runtime, whose states are kept from call to call."""

    def __init__(self, path: Path) -> None:
        self._session = runtime.InferenceSession(str(path))
        self.inputs = {each.name: each.shape for each in self._session.get_inputs()}
        self.outputs = [each.name for each in self._session.get_outputs()]
        self.states: dict[str, np.ndarray] = {}

    def begin(self, **lengths: int) -> None:
        """Let states be zero, of these lengths; a past is empty."""
        for name, shape in self.inputs.items():
            if name.startswith("past."):
                known = [n if isinstance(n, int) else lengths.get(n, 0) for n in shape]
                self.states[name] = np.zeros(known, np.float32)

    def __call__(self, *given: np.ndarray) -> list[np.ndarray]:
        """Return what is no state."""
        free = [name for name in self.inputs if name not in self.states]
        fed = dict(zip(free, given, strict=True))
        found = dict(zip(self.outputs, self._session.run(None, fed | self.states), strict=True))
        self.states = {
            name.replace("present.", "past."): each
            for name, each in found.items()
            if name.startswith("present.")
        }
        return [each for name, each in found.items() if not name.startswith("present.")]


def numbered(inputs: list[str], outputs: list[str], **other: str) -> dict[str, Any]:
    """Return options that make states of inputs and outputs, and number them.

    Args:
        inputs: Names of the inputs.
        outputs: Names of what they become.
        other: New names of further outputs by the names.
    """
    return {
        "states": dict(zip(inputs, outputs, strict=True)),
        "rename_inputs": {name: f"past.{i}" for i, name in enumerate(inputs)},
        "rename_outputs": {name: f"present.{i}" for i, name in enumerate(outputs)} | other,
    }


def check(expected: Any, found: np.ndarray) -> np.ndarray:
    """Compare scores, and return the tokens that both choose."""
    expected = expected.asnumpy()
    assert np.abs(expected - found).max() < NEAR * expected.std()
    np.testing.assert_array_equal(expected.argmax(-1), found.argmax(-1))
    return found.argmax(-1).astype(np.float32)


@pytest.mark.parametrize("kind", ["lstm", "gru", "awd_lstm"])
def test_a_language_model_goes_on_from_its_states(tmp_path: Path, kind: str) -> None:
    block = language_model(kind)
    states = block.begin_state(batch_size=2)
    tokens = np.array([[3, 7], [9, 11], [2, 5]], np.float32)
    block(array(tokens), states)
    (data, *begins), (scores, *ends) = interface(block)
    shapes = {
        name: (len(each), "batch", each.shape[2])
        for name, each in zip(begins, flatten(states), strict=True)
    }
    report = serde.convert(
        block, tmp_path / "lm.onnx", input_shapes={data: ("length", "batch"), **shapes},
        **numbered(begins, ends, **{scores: "scores"}), check=True,
    )  # fmt: skip
    assert report.passed
    assert {"scores of 16 steps", "present.0 of 16 steps"} <= {x.output for x in report.verdicts}
    net, made = Net(tmp_path / "lm.onnx"), []
    assert list(net.inputs) == [data, *(f"past.{i}" for i in range(len(begins)))]
    assert net.outputs == ["scores", *(f"present.{i}" for i in range(len(begins)))]
    net.begin(batch=2)
    for _ in range(STEPS):
        expected, states, *_ = block(array(tokens), states)
        tokens = check(expected, net(tokens)[0])[-1:]
        made.append(tokens)
    assert len(np.unique(made)) > 4


def test_a_symbol_with_states_as_inputs_goes_on_from_them(tmp_path: Path) -> None:
    symbol, params = recurrent_decoder()
    states, (_, *ends) = ["hidden", "lstm_h", "lstm_c"], symbol.list_outputs()
    row = ("batch", UNITS)
    report = serde.convert(
        symbol, tmp_path / "step.onnx", params=params, **numbered(states, ends), check=True,
        input_shapes={
            "prev_word": ("batch",), "source": ("batch", "words", UNITS),
            "source_length": ("batch",), **dict.fromkeys(states, row),
        },
    )  # fmt: skip
    assert report.passed
    net, made = Net(tmp_path / "step.onnx"), []
    net.begin(batch=2)
    source = np.random.default_rng(1).standard_normal((2, 6, UNITS)).astype(np.float32)
    given = {"source": source, "source_length": np.array([6, 4], np.float32)}
    held = {name: np.zeros((2, UNITS), np.float32) for name in states}
    word = np.full(2, 2, np.float32)
    for _ in range(STEPS):
        fed = {name: array(each) for name, each in {"prev_word": word, **given, **held}.items()}
        expected, *kept = symbol.bind(mx.cpu(), {**params, **fed}).forward()
        held = {name: each.asnumpy() for name, each in zip(states, kept, strict=True)}
        fed = {"prev_word": word, **given}
        free = [name for name in net.inputs if name not in net.states]
        word = check(expected, net(*(fed[name] for name in free))[0])
        made.append(word)
    assert len(np.unique(made)) > 4


def _convert_translator(folder: Path, encoder: Any, step: Any, model: Any) -> tuple[Net, Net]:
    """Convert both parts of a translator to the names that runtimes look for."""
    source, lengths = np.ones((2, 4), np.float32), np.full(2, 4, np.float32)
    encoder.hybridize()
    memory, mask = encoder(array(source), array(lengths))
    step.hybridize()
    step(array(source[:, 0]), mx.nd.zeros((2, 3, UNITS)), memory, mask)
    (tokens, counts), outputs = interface(encoder)
    serde.convert(
        encoder, folder / "encoder_model.onnx", check=True,
        input_shapes={tokens: ("batch", "encoder_sequence"), counts: ("batch",)},
        rename_outputs=dict(zip(outputs, ["last_hidden_state", "mask"], strict=True)),
    )  # fmt: skip
    (tokens, past, hidden, hides), (scores, present) = interface(step)
    rows = ("batch", "encoder_sequence")
    report = serde.convert(
        step, folder / "decoder_model.onnx", check=True, states={past: present},
        input_shapes={
            tokens: ("batch",), past: ("batch", "past", UNITS), hidden: (*rows, UNITS), hides: rows
        },
        rename_inputs={
            past: "past.0", hidden: "encoder_hidden_states", hides: "encoder_attention_mask"
        },
        rename_outputs={scores: "logits", present: "present.0"},
    )  # fmt: skip
    assert report.passed
    return Net(folder / "encoder_model.onnx"), Net(folder / "decoder_model.onnx")


def _sentences() -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0).integers(4, VOCABULARY, (2, 9)).astype(np.float32)
    return source, np.array([9, 6], np.float32)


def test_a_translator_begins_with_an_empty_past(tmp_path: Path) -> None:
    model, *blocks = translator()
    source, lengths = _sentences()
    memory, _ = model.encode(array(source), valid_length=array(lengths))
    states = model.decoder.init_state_from_encoder(memory, array(lengths))
    encoder, step = _convert_translator(tmp_path, *blocks, model)
    hidden, mask = encoder(source, lengths)
    np.testing.assert_allclose(hidden, memory.asnumpy(), atol=1e-5)
    tokens, made = np.full(2, 2, np.float32), []
    step.begin(batch=2)
    for _ in range(STEPS):
        expected, states, _ = model.decode_step(array(tokens), states)
        tokens = check(expected, step(tokens, hidden, mask)[0])
        made.append(tokens)
    assert len(np.unique(made)) > 4


def test_a_beam_is_searched_as_gluonnlp_does(tmp_path: Path) -> None:
    from gluonnlp.model.sequence_sampler import BeamSearchSampler, BeamSearchScorer

    beam, end = 3, 3
    model, *blocks = translator()
    source, lengths = _sentences()
    scorer = BeamSearchScorer(alpha=1.0, K=5, from_logits=False)
    memory, _ = model.encode(array(source), valid_length=array(lengths))
    states = model.decoder.init_state_from_encoder(memory, array(lengths))
    sampler = BeamSearchSampler(
        beam, lambda tokens, held: model.decode_step(tokens, held)[:2], end, scorer, STEPS
    )
    expected, expected_scores, _ = sampler(mx.nd.full(2, 2), states)

    update = beam_update(scorer, beam, end)
    update.initialize()
    update.hybridize()
    samples, alive = np.full((2, beam, 1), 2, np.int32), np.ones((2, beam), np.int32)
    valid, shift = alive.copy(), np.arange(0, 2 * beam, beam, dtype=np.int32)
    scores = np.where(np.arange(beam) > 0, np.float32(-1e18), np.float32(0)) + np.zeros((2, 1))
    size, scores = np.array([VOCABULARY], np.int32), scores.astype(np.float32)
    rows = np.zeros((2 * beam, VOCABULARY), np.float32)
    given = [samples, valid, rows, scores, np.ones(1, np.float32), alive]
    given += [np.zeros((2 * beam, 1, UNITS), np.float32), size, shift]
    update(*map(array, given))
    names, _ = interface(update)
    beams, flat = ("batch", beam), ("rows", VOCABULARY)
    shapes = [(*beams, "length"), beams, flat, beams, (1,), beams, ("rows", "past", UNITS)]
    serde.convert(
        update, tmp_path / "update.onnx",
        input_shapes=dict(zip(names, [*shapes, (1,), ("batch",)], strict=True)),
        input_dtypes={n: str(x.dtype) for n, x in zip(names, given, strict=True)},
    )  # fmt: skip
    choose = Net(tmp_path / "update.onnx")
    encoder, step = _convert_translator(tmp_path, *blocks, model)
    hidden, mask = (np.repeat(each, beam, 0) for each in encoder(source, lengths))
    tokens = np.full(2 * beam, 2, np.float32)
    step.begin(batch=2 * beam)
    for place in range(STEPS):
        (rows,) = step(tokens, hidden, mask)
        counted = np.array([place + 1], np.float32)
        samples, valid, scores, chosen, alive, past = choose(
            samples, valid, rows, scores, counted, alive, step.states["past.0"], size, shift
        )
        step.states["past.0"] = past
        tokens = np.maximum(chosen, 0).reshape(-1).astype(np.float32)
    np.testing.assert_array_equal(samples, expected.asnumpy()[..., :-1])
    np.testing.assert_allclose(scores, expected_scores.asnumpy(), rtol=1e-5)
    assert len(np.unique(samples)) > 4


def test_gpt2_continues_a_prompt_from_keys_and_values(tmp_path: Path) -> None:
    whole, step = drawn(gpt2(), scale=0.3), gpt2()
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (2, 5)).astype(np.float32)
    scores, states = whole(array(tokens))
    step.initialize()
    step.hybridize()
    step(array(tokens[:, :1]), states)
    for one, other in zip(
        whole.collect_params().values(), step.collect_params().values(), strict=True
    ):
        other.set_data(one.data())
    (data,), outputs = interface(whole)
    present = dict(zip(outputs[1:], [f"present.{i}" for i in range(4)], strict=True))
    serde.convert(
        whole, tmp_path / "decoder_model.onnx", input_shapes={data: ("batch", "sequence")},
        rename_outputs=present,
    )  # fmt: skip
    (data, *past), (_, *kept) = interface(step)
    held = ("batch", 4, "past", UNITS // 4)
    report = serde.convert(
        step, tmp_path / "decoder_with_past_model.onnx", check=True,
        input_shapes={data: ("batch", "sequence"), **dict.fromkeys(past, held)},
        **numbered(past, kept),
    )  # fmt: skip
    assert report.passed
    prompt, net = (
        Net(tmp_path / "decoder_model.onnx"),
        Net(tmp_path / "decoder_with_past_model.onnx"),
    )
    found, made = prompt(tokens)[0], tokens
    net.states = prompt.states
    for _ in range(STEPS):
        token = check(scores, found)[:, -1:]
        made = np.concatenate([made, token], 1)
        # Without a past, MXNet computes all again.
        np.testing.assert_allclose(
            whole(array(made))[0].asnumpy()[:, -1:], (found := net(token)[0]), atol=1e-4
        )
        scores, states = step(array(token), states)
    assert len(np.unique(made[:, 5:])) > 4


def test_bert_fills_one_place_after_the_other(tmp_path: Path) -> None:
    from support.gluonnlp_nets import VOCABULARY as WORDS, bert_pretraining

    block, _ = bert_pretraining(2, 64, 4)()
    drawn(block, scale=0.1)
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, WORDS, (2, STEPS)).astype(np.float32)
    kinds = (np.arange(STEPS) > 5) * np.ones((2, 1), np.float32)
    lengths = np.full(2, STEPS, np.float32)
    block(array(tokens), array(kinds), array(lengths), mx.nd.zeros((2, 1)))
    names, outputs = interface(block)
    rows = ("batch", "sequence")
    serde.convert(
        block, tmp_path / "model.onnx", check=True,
        input_shapes=dict(zip(names, [rows, rows, ("batch",), ("batch", 1)], strict=True)),
    )  # fmt: skip
    net, tokens = Net(tmp_path / "model.onnx"), np.full((2, STEPS), 2, np.float32)
    for place in range(STEPS):
        at = np.full((2, 1), place, np.float32)
        given = tokens, kinds, lengths, at
        *_, expected = block(*map(array, given))
        tokens[:, place] = check(expected, net(*given)[len(outputs) - 1])[:, 0]
    assert len(np.unique(tokens)) > 4


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ({"data9": "dense0_fwd_output"}, "data9=dense0_fwd_output: no such input or output"),
        ({"data": "none_output"}, "data=none_output: no such input or output; there are data, "),
        ({"data": "dense0_fwd_output"}, "states: data is .* and becomes "),
    ],
)
def test_a_state_that_is_none_is_refused(tmp_path: Path, states: dict[str, str], told: str) -> None:
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=3, name="dense0_fwd", flatten=True)
    params = {"dense0_fwd_weight": mx.nd.ones((3, 8)), "dense0_fwd_bias": mx.nd.ones(3)}
    with pytest.raises(serde.OptionError, match=told):
        serde.convert(
            net,
            tmp_path / "x.onnx",
            params=params,
            input_shapes={"data": ("N", 2, 4)},
            states=states,
        )
    assert not (tmp_path / "x.onnx").exists()
