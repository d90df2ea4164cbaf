"""Decoders that TVM compiles, and the text that they generate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import save
from support.decoders import VOCABULARY, decoder, scores

import serde
from serde.errors import OptionError

pytest.importorskip("tvm")

pytestmark = pytest.mark.wide

PROMPT = np.random.default_rng(4).integers(0, VOCABULARY, 7).tolist()
COUNT = 9


def expected(prompt: list[int], count: int = COUNT) -> list[int]:
    """Return the tokens with the best scores, each of the whole text before it."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(scores(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


@pytest.fixture(scope="module", params=[None, len(PROMPT) + COUNT], ids=["growing", "fixed"])
def net(request: pytest.FixtureRequest) -> Any:
    batch = {} if request.param is None else {"cache_batch": 2}
    return serde.compile(decoder(), cache_length=request.param, **batch)


def test_texts_of_a_batch_go_on_as_each_alone(net: Any) -> None:
    other = PROMPT[3:]
    made = net.generate(
        [PROMPT, [0] * 3 + other], max_new_tokens=COUNT, attention_mask=[[1] * 7, [0] * 3 + [1] * 4]
    )
    assert made.tolist() == [expected(PROMPT), expected(other)]


def test_a_text_ends_behind_an_end(net: Any) -> None:
    wanted = expected(PROMPT)
    end = wanted[2]
    at = wanted.index(end)
    assert (
        net.generate([PROMPT] * 2, max_new_tokens=COUNT, eos=[end]).tolist()
        == [wanted[: at + 1]] * 2
    )
    assert net.generate([PROMPT] * 2, max_new_tokens=0).shape == (2, 0)
    with pytest.raises(OptionError, match="prompts of one token or more"):
        net.generate([[], []], max_new_tokens=1)


def test_a_library_of_a_file_generates(tmp_path: Path) -> None:
    serde.compile(decoder(), cache_length=32).save(tmp_path / "net.so")
    net = serde.Runnable.load(tmp_path / "net.so")
    assert net.generate(PROMPT, max_new_tokens=COUNT).tolist() == [expected(PROMPT)]
    with pytest.raises(OptionError, match="one text at once, which is not padded"):
        net.generate(PROMPT, max_new_tokens=1, attention_mask=[0, *[1] * 6])
    with pytest.raises(OptionError, match="caches for 32 tokens have no room for 37"):
        net.generate(PROMPT, max_new_tokens=30)


def test_what_keeps_nothing_does_not_generate(tmp_path: Path) -> None:
    import serde.relay as relay

    x = relay.var("x", relay.TensorType((2,), "float32"))
    net = serde.compile(relay.Function([x], relay.negative(x)))
    with pytest.raises(OptionError, match=r"expected a decoder with its caches, found \['x'\]"):
        net.generate(PROMPT, max_new_tokens=1)


def test_a_checkpoint_generates_what_transformers_does(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module = save(tmp_path / "in", "LlamaConfig")
    net = serde.compile(tmp_path / "in", task="text-generation")
    prompts = np.array([[5, 9, 30, 11], [0, 0, 8, 41]])
    mask = (prompts > 0).astype(np.int64)
    expected = module.generate(
        torch.tensor(prompts), attention_mask=torch.tensor(mask), do_sample=False,
        max_new_tokens=8, min_new_tokens=8, eos_token_id=63,
    )  # fmt: skip
    made = net.generate(prompts, attention_mask=mask, max_new_tokens=8)
    assert made.tolist() == expected[:, 4:].tolist()
