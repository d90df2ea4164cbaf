"""Checkpoints of GPTQ and AWQ, against transformers on the floats that they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import TEXT, save, transformers
from support.packed_checkpoints import WAYS, pack_folder, quantize
from support.runtime import open_session

import serde
from serde.errors import FormatError

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
transformers()

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2}


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


def make(folder: Path, way: str, config: str = "LlamaConfig", **own: Any) -> Any:
    """Save a packed checkpoint; return the module with the floats that it stands for."""
    return pack_folder(folder, save(folder, config, **{**SIZES, **own}), WAYS[way])


def logits(path: Path, module: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of a prompt, of a module and of a file."""
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
    return expected, found


def close(expected: np.ndarray, found: np.ndarray, least: float = 1e-5) -> None:
    assert np.abs(expected - found).max() <= least * expected.std()


def operators(path: Path) -> list[str]:
    return [each.op_type for each in onnx.load(path).graph.node]


@pytest.mark.parametrize("way", WAYS)
def test_products_of_onnx_runtime(tmp_path: Path, way: str) -> None:
    module = make(tmp_path / "in", way)
    serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime", check=True
    )
    path = tmp_path / "out" / "model.onnx"
    close(*logits(path, module))
    if way == "gptq-one-group":
        return  # Of 96 inputs in one, no power of two.
    assert operators(path).count("MatMulNBits") == 7
    assert "DequantizeLinear" not in operators(path)


@pytest.mark.parametrize("way", ["gptq", "awq", "gptq-act-order"])
@pytest.mark.parametrize("opset", [17, 21])
def test_operators_of_onnx(tmp_path: Path, way: str, opset: int) -> None:
    module = make(tmp_path / "in", way)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", opset=opset)
    close(*logits(tmp_path / "out" / "model.onnx", module))
    assert operators(tmp_path / "out" / "model.onnx").count("DequantizeLinear") == 7


def test_integers_are_moved_alone(tmp_path: Path) -> None:
    """What is stored of a layer are its levels, scales and zero points, bit by bit."""
    module = save(tmp_path / "in", "LlamaConfig", **SIZES)
    weight = module.model.layers[0].mlp.down_proj.weight.detach().numpy().copy()
    pack_folder(tmp_path / "in", module, WAYS["gptq"])
    parts, _ = quantize(weight, WAYS["gptq"])
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime")
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    tensors = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    (node,) = (
        x for x in graph.node if x.op_type == "MatMulNBits" and "down_proj" in x.input[1]
    )  # fmt: skip
    levels, scales, points = (tensors[name] for name in node.input[1:])
    words = parts["qweight"].view(np.uint32)
    wanted = (words[:, None] >> (4 * np.arange(8, dtype=np.uint32))[:, None]) & 15
    wanted = wanted.reshape(96, 64).T
    np.testing.assert_array_equal(levels.reshape(64, -1) & 15, wanted[:, ::2])
    np.testing.assert_array_equal(levels.reshape(64, -1) >> 4, wanted[:, 1::2])
    np.testing.assert_array_equal(scales, parts["scales"].T.astype("f4"))
    zero = (parts["qzeros"].view(np.uint32)[..., None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    zero = np.pad(zero.reshape(3, 64).T + 1, ((0, 0), (0, 1)))
    np.testing.assert_array_equal(points, zero[:, ::2] | zero[:, 1::2] << 4)


def test_experts(tmp_path: Path) -> None:
    """Layers of experts, which transformers stacks, are stacked as levels."""
    own = {"num_local_experts": 3, "num_experts_per_tok": 2}
    module = make(tmp_path / "in", "gptq-sym", "MixtralConfig", **own)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", opset=21)
    close(*logits(tmp_path / "out" / "model.onnx", module))
    model = onnx.load(tmp_path / "out" / "model.onnx")
    floats = [x for x in model.graph.initializer if x.data_type == onnx.TensorProto.FLOAT]
    assert floats
    assert max(np.prod(each.dims) for each in floats) == TEXT["vocab_size"] * 64


def test_layers_of_inputs_first(tmp_path: Path) -> None:
    """GPT-2 has weights of (inputs, outputs), square ones among them."""
    module = save(tmp_path / "in", "GPT2Config", n_positions=64, **SIZES)
    turned = ("c_attn", "c_proj", "c_fc")
    judge = pack_folder(tmp_path / "in", module, WAYS["gptq"], turned)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime")
    close(*logits(tmp_path / "out" / "model.onnx", judge))
    assert operators(tmp_path / "out" / "model.onnx").count("MatMulNBits") == 4


def test_half(tmp_path: Path) -> None:
    """Scales keep their dtype where layers compute in it."""
    make(tmp_path / "in", "awq")
    serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime",
        dtype="float16",
    )  # fmt: skip
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    kinds = {each.name: each.data_type for each in graph.initializer}
    nodes = [each for each in graph.node if each.op_type == "MatMulNBits"]
    assert len(nodes) == 7
    assert {kinds[each.input[2]] for each in nodes} == {onnx.TensorProto.FLOAT16}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another method": ({"quant_method": "bitsandbytes"}, "quant_method: expected gptq or awq"),
    "bits": ({"bits": 3}, "bits: expected 4 or 8, found 3"),
    "no group": ({"group_size": 0}, "group_size: expected -1 or more, found 0"),
    "another group": ({"group_size": 64}, "scales and qzeros: expected"),
    "a form": ({"checkpoint_format": "marlin"}, "checkpoint_format: expected gptq or gptq_v2"),
    "a version": ({"quant_method": "awq", "version": "gemv"}, "version: expected gemm"),
    "other bits": ({"bits": 8}, "scales and qzeros: expected"),
    "text": ("gptq", "quant_method: expected gptq or awq"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path: Path, case: str) -> None:
    change, message = REFUSED[case]
    make(tmp_path / "in", "gptq")
    path = tmp_path / "in" / "config.json"
    config = json.loads(path.read_text())
    own = config["quantization_config"]
    config["quantization_config"] = {**own, **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(config))
    with pytest.raises(FormatError, match=message):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx")
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("part", ["scales", "g_idx", "qzeros", "words"])
def test_parts_that_do_not_fit(tmp_path: Path, part: str) -> None:
    from safetensors.torch import load_file, save_file

    make(tmp_path / "in", "gptq-act-order")
    path = tmp_path / "in" / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.0.mlp.up_proj."
    if part == "scales":
        del tensors[f"{name}scales"]
    elif part == "g_idx":
        tensors[f"{name}g_idx"][0] = tensors[f"{name}g_idx"][1:].unique()[0] + 1
        tensors[f"{name}g_idx"][1:5] = 0
    elif part == "qzeros":
        tensors[f"{name}qzeros"][0, 0] |= 15
    else:
        tensors[f"{name}qweight"] = tensors[f"{name}qweight"].float()
    save_file(tensors, path, metadata={"format": "pt"})
    messages = {
        "scales": "qweight is without", "g_idx": "expected groups of 16", "qzeros": "gptq_v2",
        "words": "expected matrices, of int32",
    }  # fmt: skip
    with pytest.raises(FormatError, match=messages[part]):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx")


@pytest.mark.wide
@pytest.mark.parametrize("way", ["gptq", "awq"])
def test_genai_generates(tmp_path: Path, way: str) -> None:
    """onnxruntime-genai reads the folder as it is, and gives transformers' greedy tokens."""
    genai = pytest.importorskip("onnxruntime_genai")
    module = make(tmp_path / "in", way)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime")
    prompt = [5, 9, 30, 7]
    params = genai.GeneratorParams(model := genai.Model(str(tmp_path / "out")))
    params.set_search_options(max_length=16, min_length=16, do_sample=False)
    generator = genai.Generator(model, params)
    generator.append_tokens(np.array([prompt], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    with torch.no_grad():
        wanted = module.generate(
            torch.tensor([prompt]), max_length=16, min_length=16, do_sample=False
        )
    assert generator.get_sequence(0).tolist() == wanted[0].tolist()
