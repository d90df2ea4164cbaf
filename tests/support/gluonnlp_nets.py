"""Language models built of gluonnlp's blocks, and the inputs that they take.

Each recipe returns a block that is not initialised and a function from a seed to its inputs.
Vocabularies are small: what an embedding holds is data, not structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VOCABULARY = 300
BATCH, LENGTH = 2, 12
MASKED = 3
"""Positions that a masked language model fills in."""

Inputs = dict[str, np.ndarray]
Recipe = Callable[[], tuple[Any, Callable[[int], Inputs]]]


def _tokens(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, VOCABULARY, shape).astype(np.float32)


def _sentences(seed: int) -> Inputs:
    """Pairs of sentences of different lengths, as BERT takes them."""
    rng = np.random.default_rng(seed)
    return {
        "inputs": _tokens(rng, BATCH, LENGTH),
        "token_types": (np.arange(LENGTH) >= rng.integers(3, 8, (BATCH, 1))).astype(np.float32),
        "valid_length": np.array([LENGTH - 3, LENGTH], np.float32),
    }


def _untyped(seed: int) -> Inputs:
    return {name: each for name, each in _sentences(seed).items() if name != "token_types"}


def _masked(seed: int) -> Inputs:
    positions = np.random.default_rng(seed).integers(0, LENGTH - 3, (BATCH, MASKED))
    return {**_sentences(seed), "masked_positions": positions.astype(np.float32)}


def _masked_untyped(seed: int) -> Inputs:
    return {name: each for name, each in _masked(seed).items() if name != "token_types"}


def _translation(seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return {
        "source": _tokens(rng, BATCH, LENGTH),
        "target": _tokens(rng, BATCH, LENGTH - 2),
        "valid_length": np.array([LENGTH - 3, LENGTH], np.float32),
    }


def _time_major(seed: int) -> Inputs:
    return {"data": _tokens(np.random.default_rng(seed), LENGTH, BATCH)}


def _characters(seed: int) -> Inputs:
    rng = np.random.default_rng(seed)
    return {"data": rng.integers(0, 262, (BATCH, LENGTH, 50)).astype(np.float32)}


def _bert_encoder(layers: int, units: int, heads: int) -> Any:
    from gluonnlp.model.bert import BERTEncoder

    return BERTEncoder(
        num_layers=layers, units=units, hidden_size=4 * units, num_heads=heads, max_length=64
    )


def _bert(layers: int, units: int, heads: int, *, decoder: bool = False, **options: Any) -> Any:
    from gluonnlp.model import BERTModel

    return BERTModel(
        _bert_encoder(layers, units, heads),
        VOCABULARY,
        token_type_vocab_size=2,
        units=units,
        embed_size=units,
        use_decoder=decoder,
        use_classifier=decoder,
        **options,
    )


def bert(layers: int, units: int, heads: int) -> Recipe:
    """The encoder and its pooled first token."""
    return lambda: (_bert(layers, units, heads), _sentences)


def bert_classifier(layers: int, units: int, heads: int) -> Recipe:
    """Classes of pairs of sentences."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import BERTClassifier

        return BERTClassifier(_bert(layers, units, heads), num_classes=3), _sentences

    return build


def bert_answering(layers: int, units: int, heads: int) -> Recipe:
    """Where an answer begins and ends: two numbers a token."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from mxnet.gluon import HybridBlock, nn

        class Answering(HybridBlock):
            def __init__(self) -> None:
                super().__init__()
                with self.name_scope():
                    self.bert = _bert(layers, units, heads, use_pooler=False)
                    self.span = nn.Dense(2, flatten=False)

            def hybrid_forward(self, _f: Any, *inputs: Any) -> Any:
                return self.span(self.bert(*inputs))

        return Answering(), _sentences

    return build


def bert_pretraining(layers: int, units: int, heads: int) -> Recipe:
    """The two tasks of pretraining: masked words and next sentence."""
    return lambda: (_bert(layers, units, heads, decoder=True), _masked)


def roberta(layers: int, units: int, heads: int, *, decoder: bool = False) -> Recipe:
    """RoBERTa, with or without its language model."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import RoBERTaModel

        encoder = _bert_encoder(layers, units, heads)
        block = RoBERTaModel(
            encoder, VOCABULARY, units=units, embed_size=units, use_decoder=decoder
        )
        return block, _masked_untyped if decoder else _untyped

    return build


def distilbert(layers: int, units: int, heads: int) -> Recipe:
    """DistilBERT: no types and no pooling."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import DistilBERTModel

        encoder = _bert_encoder(layers, units, heads)
        return DistilBERTModel(encoder, VOCABULARY, units=units, embed_size=units), _untyped

    return build


def awd_lstm(embedded: int, hidden: int) -> Recipe:
    """The language model of three LSTM layers with tied weights."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import AWDRNN

        block = AWDRNN("lstm", VOCABULARY, embedded, hidden, 3, True, 0, 0, 0, 0, 0)
        return block, _time_major

    return build


def standard_rnn(mode: str, hidden: int) -> Recipe:
    """The language model of two recurrent layers."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import StandardRNN

        return StandardRNN(mode, VOCABULARY, hidden, hidden, 2, 0, True), _time_major

    return build


def transformer_encoder(layers: int, units: int, heads: int) -> Recipe:
    """The encoder of the Transformer, over embedded tokens."""
    return lambda: (_translator(layers, units, heads, decode=False), _untyped)


def transformer(layers: int, units: int, heads: int) -> Recipe:
    """Encoder and decoder with attention to each other, trained on pairs of sentences."""
    return lambda: (_translator(layers, units, heads, decode=True), _translation)


def _translator(layers: int, units: int, heads: int, *, decode: bool) -> Any:
    from gluonnlp.model.transformer import get_transformer_encoder_decoder
    from mxnet.gluon import HybridBlock, nn

    class Translator(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            encoder, decoder, _ = get_transformer_encoder_decoder(
                layers, heads, units=units, hidden_size=4 * units
            )
            with self.name_scope():
                self.embed = nn.Embedding(VOCABULARY, units)
                self.encoder = encoder
                if decode:
                    self.decoder = decoder
                    self.words = nn.Dense(VOCABULARY, flatten=False)

        def hybrid_forward(self, f: Any, source: Any, *others: Any) -> Any:
            valid = others[-1]
            encoded, _ = self.encoder(self.embed(source), valid_length=valid)
            if not decode:
                return encoded
            steps = f.contrib.arange_like(source, axis=1)
            mask = f.broadcast_lesser(steps.reshape((1, -1)), valid.reshape((-1, 1)))
            decoded, _, _ = self.decoder(self.embed(others[0]), [encoded, mask])
            return self.words(decoded)

    return Translator()


def elmo(filters: list[list[int]], hidden: int, projected: int) -> Recipe:
    """Characters through convolutions and two bidirectional LSTM layers with projection."""

    def build() -> tuple[Any, Callable[[int], Inputs]]:
        from gluonnlp.model import ELMoBiLM
        from mxnet.gluon import HybridBlock

        class Unrolled(HybridBlock):
            """ELMo from its own begin states, which are zero."""

            def __init__(self) -> None:
                super().__init__()
                with self.name_scope():
                    self.elmo = ELMoBiLM(
                        rnn_type="lstmpc",
                        output_size=projected,
                        filters=filters,
                        char_embed_size=16,
                        char_vocab_size=262,
                        num_highway=1,
                        conv_layer_activation="relu",
                        max_chars_per_token=50,
                        input_size=projected,
                        hidden_size=hidden,
                        proj_size=projected,
                        num_layers=2,
                        cell_clip=3,
                        proj_clip=3,
                    )

            def hybrid_forward(self, f: Any, data: Any) -> Any:
                states = self.elmo.begin_state(f.zeros, batch_size=BATCH)
                return self.elmo(data, states)[0]

        return Unrolled(), _characters

    return build


RECIPES: dict[str, Recipe] = {
    "bert_small": bert(2, 64, 4),
    "bert_base": bert(12, 768, 12),
    "bert_base_classifier": bert_classifier(12, 768, 12),
    "bert_base_qa": bert_answering(12, 768, 12),
    "bert_base_mlm_nsp": bert_pretraining(12, 768, 12),
    "roberta_base": roberta(12, 768, 12),
    "roberta_base_mlm": roberta(12, 768, 12, decoder=True),
    "distilbert": distilbert(6, 768, 12),
    "awd_lstm_lm_600": awd_lstm(200, 600),
    "awd_lstm_lm_1150": awd_lstm(400, 1150),
    "standard_lstm_lm_200": standard_rnn("lstm", 200),
    "standard_lstm_lm_650": standard_rnn("lstm", 650),
    "standard_gru_lm_200": standard_rnn("gru", 200),
    "transformer_encoder_512": transformer_encoder(6, 512, 8),
    "transformer_en_de_512": transformer(6, 512, 8),
    "transformer_small": transformer(2, 64, 4),
    "elmo_small": elmo([[1, 16], [2, 16], [3, 32]], 64, 32),
    "elmo_2x1024_128": elmo(
        [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]], 1024, 128
    ),
}
