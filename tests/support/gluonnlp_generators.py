"""Gluon blocks that generate, with states as inputs and outputs, and MXNet's own run of them.

The Transformer, the language models and the update of a beam are gluonnlp's; GPT-2, which its wheel
lacks, is written here of the operators that its scripts use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

VOCABULARY = 60
UNITS, HEADS = 32, 4


def flatten(values: Any) -> list[Any]:
    """Return what nested lists hold."""
    if not isinstance(values, (list, tuple)):
        return [values]
    return [leaf for each in values for leaf in flatten(each)]


def drawn(block: Any, *, scale: float = 0.5) -> Any:
    """Return a block with weights of which tokens depend on what was before."""
    import mxnet as mx

    mx.random.seed(1)
    np.random.seed(1)
    block.initialize(mx.init.Normal(scale), force_reinit=True)
    block.hybridize()
    return block


def interface(block: Any) -> tuple[list[str], list[str]]:
    """Return the names of inputs and outputs of a block that was called once."""
    inputs, symbol = block._cached_graph
    return [each.name for each in inputs], symbol.list_outputs()


def language_model(kind: str) -> Any:
    """Return one of gluonnlp's language models, which take tokens ``[length, batch]``."""
    from gluonnlp.model import AWDRNN, StandardRNN

    if kind == "awd_lstm":
        return drawn(AWDRNN("lstm", VOCABULARY, 24, UNITS, 3, True, 0, 0, 0, 0, 0))
    return drawn(StandardRNN(kind, VOCABULARY, UNITS, UNITS, 2, 0, True))


def translator() -> tuple[Any, Any, Any]:
    """Return gluonnlp's NMTModel with a Transformer, and its encoder and step as blocks to convert.

    The step takes a token for each text, the embedded tokens before it, what the encoder gave and
    its mask; it gives scores and the embedded tokens.
    """
    from gluonnlp import Vocab
    from gluonnlp.data import Counter
    from gluonnlp.model.transformer import get_transformer_encoder_decoder
    from gluonnlp.model.translation import NMTModel
    from mxnet.gluon import HybridBlock

    vocabulary = Vocab(Counter(map(str, range(VOCABULARY - 4))))
    encoder, decoder, step = get_transformer_encoder_decoder(
        num_layers=2, num_heads=HEADS, units=UNITS, hidden_size=64
    )
    model = NMTModel(
        vocabulary, vocabulary, encoder, decoder, step, embed_size=UNITS, prefix="transformer_"
    )

    class Encoder(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.encoder = model.src_embed, model.encoder

        def hybrid_forward(self, f: Any, source: Any, lengths: Any) -> Any:
            encoded, _ = self.encoder(self.embed(source), valid_length=lengths)
            places = f.contrib.arange_like(source, axis=1)
            mask = f.broadcast_lesser(places.reshape((1, -1)), lengths.reshape((-1, 1)))
            return encoded, mask

    class Step(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.step = model.tgt_embed, model.one_step_ahead_decoder
            self.words = model.tgt_proj

        def hybrid_forward(self, f: Any, token: Any, past: Any, encoded: Any, mask: Any) -> Any:
            every = f.concat(past, f.expand_dims(self.embed(token), axis=1), dim=1)
            found, states, _ = HybridBlock.forward(self.step, every, [encoded, mask])
            return self.words(found), states[0]

    return drawn(model, scale=0.1), Encoder(), Step()


class _Attention:
    """Attention over a past, of the operators that gluonnlp's GPT-2 has."""

    def __init__(self, project: Any, out: Any) -> None:
        self.project, self.out = project, out

    def __call__(self, f: Any, x: Any, past: Any) -> tuple[Any, list[Any]]:
        rows = f.split(f.swapaxes(self.project(x), 1, 2), num_outputs=3, axis=1)
        query, key, value = (
            f.swapaxes(
                each.reshape(shape=(0, -4, HEADS, -1, 0)).reshape(shape=(-1, 0, 0), reverse=True),
                1,
                2,
            )
            for each in rows
        )
        places = every = f.contrib.arange_like(x, axis=1)
        if past is not None:
            before = f.contrib.arange_like(past[0], axis=2)
            count = f.broadcast_add(f.slice_axis(before, axis=0, begin=-1, end=None), f.ones((1,)))
            places = f.broadcast_add(places, count)
            every = f.contrib.arange_like(f.concat(before, every, dim=0))
            key, value = (
                f.concat(old.reshape((-1, 0, 0), reverse=True), new, dim=1)
                for old, new in zip(past, (key, value), strict=True)
            )
        mask = f.broadcast_lesser_equal(every.reshape((1, -1)), places.reshape((-1, 1)))
        scores = f.batch_dot(query, key, transpose_b=True) / np.sqrt(UNITS // HEADS)
        mask = f.broadcast_like(f.expand_dims(mask, axis=0), scores, lhs_axes=(0,), rhs_axes=(0,))
        weights = f.softmax(f.where(mask, scores, f.ones_like(scores) * -1e18)) * mask
        found = f.batch_dot(weights, value).reshape((-1, HEADS, 0, 0), reverse=True)
        found = self.out(f.transpose(found, axes=(0, 2, 1, 3)).reshape((0, 0, -1)))
        present = [each.reshape((-1, HEADS, 0, 0), reverse=True) for each in (key, value)]
        return found, present


def gpt2(layers: int = 2) -> Any:
    """Return a GPT-2: tokens ``[batch, length]`` and keys and values of each layer, or none."""
    from mxnet.gluon import HybridBlock, nn

    class GPT2(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.embed = nn.Embedding(VOCABULARY, UNITS)
                self.place = nn.Embedding(64, UNITS)
                self.norms = nn.HybridSequential()
                self.maps = nn.HybridSequential()
                self.norm = nn.LayerNorm()
                self.words = nn.Dense(VOCABULARY, use_bias=False, flatten=False)
                for _ in range(layers):
                    self.norms.add(nn.LayerNorm(), nn.LayerNorm())
                    for width in (3 * UNITS, UNITS, 4 * UNITS, UNITS):
                        self.maps.add(nn.Dense(width, flatten=False))

        def hybrid_forward(self, f: Any, tokens: Any, states: Any = None) -> Any:
            places = f.contrib.arange_like(tokens, axis=1)
            if states is not None:
                before = f.contrib.arange_like(states[0], axis=2)
                last = f.slice_axis(before, axis=0, begin=-1, end=None)
                places = f.broadcast_add(places, f.broadcast_add(last, f.ones((1,))))
            x = f.broadcast_add(self.embed(tokens), f.expand_dims(self.place(places), axis=0))
            present = []
            for layer in range(layers):
                project, out, widen, narrow = (self.maps[4 * layer + i] for i in range(4))
                past = None if states is None else states[2 * layer : 2 * layer + 2]
                found, kept = _Attention(project, out)(f, self.norms[2 * layer](x), past)
                x = x + found
                x = x + narrow(f.LeakyReLU(widen(self.norms[2 * layer + 1](x)), act_type="gelu"))
                present += kept
            return self.words(self.norm(x)), present

    return GPT2()


def recurrent_decoder() -> tuple[Any, dict[str, Any]]:
    """Return a step of a recurrent decoder with attention as a symbol, and its parameters.

    As Sockeye's, it takes the token before, what the encoder gave with its lengths, and what it
    returned itself: the vector that it looks with, and the state of an LSTM.
    """
    import mxnet as mx

    names = ("prev_word", "source", "source_length", "hidden", "lstm_h", "lstm_c")
    word, source, length, hidden, *held = map(mx.sym.Variable, names)
    embedded = mx.sym.Embedding(word, input_dim=VOCABULARY, output_dim=UNITS, name="embed")
    cell = mx.rnn.LSTMCell(UNITS, prefix="decoder_")
    out, states = cell(mx.sym.concat(embedded, hidden, dim=1), held)
    scores = mx.sym.batch_dot(source, mx.sym.expand_dims(out, axis=2))
    scores = mx.sym.SequenceMask(
        mx.sym.swapaxes(scores, 0, 1), length, use_sequence_length=True, value=-1e8
    )
    weights = mx.sym.softmax(mx.sym.swapaxes(scores, 0, 1), axis=1)
    context = mx.sym.reshape(mx.sym.batch_dot(weights, source, transpose_a=True), shape=(0, -1))
    both = mx.sym.concat(out, context, dim=1)
    looks = mx.sym.FullyConnected(both, num_hidden=UNITS, name="looks")
    looks = mx.sym.Activation(looks, act_type="tanh", name="next_hidden")
    logits = mx.sym.FullyConnected(looks, num_hidden=VOCABULARY, name="logits")
    symbol = mx.sym.Group([logits, looks, *states])
    shapes, _, _ = symbol.infer_shape(
        prev_word=(2,), source=(2, 7, UNITS), source_length=(2,), hidden=(2, UNITS),
        lstm_h=(2, UNITS), lstm_c=(2, UNITS),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    params = {
        name: mx.nd.array(rng.normal(0, 0.35, shape))
        for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
        if name not in names
    }
    return symbol, params


def beam_update(scorer: Any, beam: int, end: int) -> Any:
    """Return gluonnlp's update of beams by the scores of a step, for one state ``[rows, ...]``."""
    from gluonnlp.model.sequence_sampler import _BeamSearchStepUpdate
    from mxnet.gluon import HybridBlock

    class Update(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.update = _BeamSearchStepUpdate(beam, end, scorer, None)

        def hybrid_forward(
            self, _f: Any, samples: Any, lengths: Any, outputs: Any, scores: Any, step: Any,
            alive: Any, state: Any, size: Any, shift: Any,
        ) -> Any:  # fmt: skip
            return self.update(samples, lengths, outputs, scores, step, alive, [state], size, shift)

    return Update()
