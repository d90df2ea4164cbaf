"""How well a smaller model predicts a text; PyTorch reads the same windows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import save, transformers

import serde
from serde.errors import CheckError, OptionError

torch = pytest.importorskip("torch")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("onnxruntime.quantization")
pytest.importorskip("onnx_ir")
transformers()

pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


def save_tokenizer(folder: Path) -> None:
    """Write a tokenizer of words, the first token of whose texts is 1."""
    known = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3}
    vocab = {**known, **{word: i for i, word in enumerate(WORDS, 4)}}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, "<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    transformers().PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("llama")
    module = save(folder, "LlamaConfig", max_position_embeddings=600)
    save_tokenizer(folder)
    return folder, module


def write_text(path: Path, count: int) -> list[int]:
    """Write words drawn at random; return their tokens."""
    drawn = np.random.default_rng(3).integers(0, 60, count)
    path.write_text(" ".join(WORDS[i] for i in drawn), encoding="utf-8")
    return [1, *(int(i) + 4 for i in drawn)]


def expected(module: Any, tokens: list[int], window: int, stride: int) -> float:
    """Return the perplexity: each token by the first window that holds it."""
    starts = [
        0 if t < window else -(-(t - window + 1) // stride) * stride for t in range(len(tokens))
    ]
    costs = []
    for start in sorted(set(starts)):
        part = torch.tensor([tokens[start : start + window]])
        with torch.no_grad():
            logs = module(input_ids=part).logits[0].double().log_softmax(-1)
        own = [t for t in range(1, len(tokens)) if starts[t] == start]
        costs += [-float(logs[t - 1 - start, tokens[t]]) for t in own]
    assert len(costs) == len(tokens) - 1
    return math.exp(sum(costs) / len(costs))


@pytest.mark.parametrize("count", [900, 20])
def test_before_and_after(model: tuple[Path, Any], tmp_path: Path, count: int) -> None:
    folder, module = model
    tokens = write_text(tmp_path / "text.txt", count)
    report = serde.convert(
        folder, tmp_path / "out", target_format="onnx", int4=True,
        perplexity_text=str(tmp_path / "text.txt"), max_perplexity=1e9,
    )  # fmt: skip
    assert report.facts["perplexity_tokens"] == count + 1
    wanted = expected(module, tokens, 512, 256)
    assert report.facts["perplexity_before"] == pytest.approx(wanted, rel=1e-4)
    assert report.facts["perplexity_after"] != report.facts["perplexity_before"]
    assert report.facts["perplexity_after"] == pytest.approx(wanted, rel=0.5)


def test_what_is_read_token_by_token(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "MambaConfig", state_size=8)
    save_tokenizer(tmp_path / "in")
    tokens = write_text(tmp_path / "text.txt", 12)
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", int4=True,
        perplexity_text=str(tmp_path / "text.txt"),
    )  # fmt: skip
    wanted = expected(module, tokens, 512, 256)
    assert report.facts["perplexity_before"] == pytest.approx(wanted, rel=1e-4)


def test_too_great(model: tuple[Path, Any], tmp_path: Path) -> None:
    write_text(tmp_path / "text.txt", 20)
    with pytest.raises(CheckError, match=r"a perplexity of .*, above 1\.5"):
        serde.convert(
            model[0], tmp_path / "out", target_format="onnx", int4=True,
            perplexity_text=str(tmp_path / "text.txt"), max_perplexity=1.5,
        )  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["text.txt"]


def test_tokens_that_stay(model: tuple[Path, Any], tmp_path: Path) -> None:
    """Of scores of tokens, agreement is the share of places with the same best token."""
    report = serde.convert(model[0], tmp_path / "out", target_format="onnx", int4=True)
    scores = report.accuracy[0]
    assert scores.output == "logits"
    assert scores.before.agreement == 1.0
    assert 0.2 < (scores.after.agreement or 0) < 1.0
    with pytest.raises(CheckError, match="logits is below the least"):
        serde.convert(
            model[0], tmp_path / "b", target_format="onnx", int4=True, min_agreement=0.999
        )


REFUSED = {
    "no text": ({"perplexity_text": "nowhere.txt"}, "nowhere.txt"),
    "a limit alone": ({"max_perplexity": 9.0}, "of a text, which perplexity_text names"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(model: tuple[Path, Any], tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    with pytest.raises(OptionError, match=message):
        serde.convert(model[0], tmp_path / "out", target_format="onnx", int4=True, **options)
    assert list(tmp_path.iterdir()) == []


def test_no_tokenizer(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "LlamaConfig")
    write_text(tmp_path / "text.txt", 20)
    given = {"target_format": "onnx", "int4": True, "task": "text-generation"}
    given |= {"perplexity_text": str(tmp_path / "text.txt")}
    with pytest.raises(OptionError, match="no tokenizer that loads"):
        serde.convert(tmp_path / "in", tmp_path / "out", **given)
    with pytest.raises(OptionError, match="a module in memory has no tokenizer"):
        serde.convert(module, tmp_path / "out", **given)
