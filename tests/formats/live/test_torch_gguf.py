"""Files of GGUF, against transformers on the numbers that the package gguf reads in them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import TEXT, save, transformers
from support.gguf_files import write_gguf
from support.runtime import open_session

import serde
from serde.errors import FormatError, SerdeError

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("gguf")
transformers()

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
         "num_key_value_heads": 2, "num_hidden_layers": 2}  # fmt: skip


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


def make(folder: Path, family: str, config: str, kind: str, **own: Any) -> tuple[Path, Any]:
    facts = own.pop("facts", {})
    module = save(folder / "saved", config, **{**SIZES, **own})
    path = folder / "model.gguf"
    write_gguf(path, module, family, kind, **facts)
    return path, module


def compare(path: Path, module: Any) -> None:
    """Compare the scores of a prompt, without a past, with a module's."""
    session = open_session(path, fuse=False)
    ids = np.random.default_rng(0).integers(4, TEXT["vocab_size"], (2, 9))
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    given["position_ids"] = given["attention_mask"].cumsum(1) - 1
    for each in session.get_inputs():
        if each.name.startswith("past"):
            shape = [2 if d == "batch" else 0 if isinstance(d, str) else d for d in each.shape]
            given[each.name] = np.zeros(shape, np.float32)
    names = [each.name for each in session.get_inputs()]
    found = session.run(["logits"], {name: given[name] for name in names})[0]
    with torch.no_grad():
        expected = module(input_ids=torch.from_numpy(ids)).logits.numpy()
    assert np.abs(expected - found).max() <= 1e-5 * expected.std()


KINDS = {"F32": 0, "F16": 0, "BF16": 0, "Q8_0": 15, "Q4_0": 15, "Q4_1": 0, "Q5_0": 0, "Q5_1": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_blocks(tmp_path: Path, kind: str) -> None:
    """Those of a scale alone stay blocks, the head's too; others are floats."""
    path, module = make(tmp_path, "llama", "LlamaConfig", kind)
    out = tmp_path / "out"
    serde.convert(
        path, out, target_format="onnx", task="text-generation", runtime="onnxruntime",
        dtype="float32", check=True,
    )  # fmt: skip
    compare(out / "model.onnx", module)
    nodes = [each.op_type for each in onnx.load(out / "model.onnx").graph.node]
    assert nodes.count("MatMulNBits") == KINDS[kind]


FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen2": ("qwen2", "Qwen2Config", {}),
    "qwen3": ("qwen3", "Qwen3Config", {"head_dim": 128, "facts": {
        "add_key_length": 128, "add_value_length": 128}}),
    "mistral": ("llama", "MistralConfig", {
        "sliding_window": None, "facts": {"add_name": "mistral"}}),
    "gemma2": ("gemma2", "Gemma2Config", {
        "head_dim": 16, "sliding_window": 4096, "query_pre_attn_scalar": 256,
        "facts": {"add_key_length": 16, "add_value_length": 16, "add_sliding_window": 4096,
                  "add_attn_logit_softcapping": 50.0, "add_final_logit_softcapping": 30.0}}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_families(tmp_path: Path, name: str) -> None:
    family, config, own = FAMILIES[name]
    path, module = make(tmp_path, family, config, "Q8_0", **own)
    serde.convert(path, tmp_path / "out", target_format="onnx", task="text-generation", opset=21)
    compare(tmp_path / "out" / "model.onnx", module)


def test_what_is_no_file_of_it(tmp_path: Path) -> None:
    path, _ = make(tmp_path, "llama", "LlamaConfig", "Q4_0")
    whole = path.read_bytes()
    target = tmp_path / "out"
    for name, data in (("short", whole[:200]), ("cut", whole[:-4096]), ("empty", whole[:4])):
        broken = tmp_path / f"{name}.gguf"
        broken.write_bytes(data)
        with pytest.raises(FormatError, match=name):
            serde.convert(broken, target, target_format="onnx", task="text-generation")
        assert not target.exists()


def test_an_order_that_is_not_known(tmp_path: Path) -> None:
    path, _ = make(tmp_path, "bloom", "LlamaConfig", "F32")
    with pytest.raises(SerdeError):
        serde.convert(path, tmp_path / "out", target_format="onnx", task="text-generation")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("claim", ["array", "fields", "tensors", "text"])
def test_lengths_that_lie(tmp_path: Path, claim: str) -> None:
    """What a header merely claims is neither gone through nor allocated."""
    fields, tensors = 2**40 if claim == "fields" else 1, 2**40 if claim == "tensors" else 0
    data = b"GGUF" + struct.pack("<IQQ", 3, tensors, fields)
    if claim == "array":
        data += struct.pack("<Q3sIIQ", 3, b"a.b", 9, 0, 2**50)
    elif claim == "text":
        data += struct.pack("<Q", 2**50)
    path = tmp_path / "net.gguf"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="no GGUF that can be read"):
        serde.convert(path, tmp_path / "out", target_format="onnx", task="text-generation")
