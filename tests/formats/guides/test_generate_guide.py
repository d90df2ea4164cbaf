"""The guide to models that generate, docs/generate.md: its commands and blocks of Python run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.checkpoints import save, save_speech, transformers
from support.gguf_files import write_gguf
from support.packed_checkpoints import WAYS, pack_folder
from support.pipelines import CLIP, save as save_pipeline

from serde.command.cli import main

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
transformers()

pytestmark = pytest.mark.filterwarnings("ignore")

GUIDE = (Path(__file__).parents[3] / "docs" / "generate.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(serde .*)\n```$", GUIDE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def test_the_guide_generates_what_transformers_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)
    monkeypatch.chdir(tmp_path)
    module = save(tmp_path / "llama", "LlamaConfig")
    for command in (each for each in COMMANDS if " llama/ " in each):
        assert main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    for block in BLOCKS:
        exec(compile(block, "generate.md", "exec"), {})
    expected = module.generate(
        torch.tensor([[1, 5, 9]]), attention_mask=torch.ones(1, 3, dtype=torch.int64),
        do_sample=False, max_new_tokens=8, min_new_tokens=8, eos_token_id=63,
    )  # fmt: skip
    assert capsys.readouterr().out.strip() == str(expected[0, 3:].tolist())
    assert (tmp_path / "llama-live.onnx").exists()
    assert (tmp_path / "llama-coreml" / "model.mlpackage").exists()


def test_the_guide_converts_a_pipeline_and_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)
    monkeypatch.chdir(tmp_path)
    kinds = {"text_encoder": (transformers().CLIPTextModel, CLIP)}
    save_pipeline(tmp_path / "stable-diffusion", "StableDiffusionPipeline", **kinds)
    save_speech(tmp_path / "whisper")
    for command in (each for each in COMMANDS if re.search(" (stable-diffusion|whisper)/ ", each)):
        assert main(shlex.split(command)[1:]) == 0
    assert (tmp_path / "sd-onnx" / "text_encoder" / "model.onnx").exists()
    assert (tmp_path / "whisper-onnx" / "encoder_model.onnx").exists()


def test_what_is_packed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf")
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)
    monkeypatch.chdir(tmp_path)
    module = save(tmp_path / "llama-gptq", "LlamaConfig")
    write_gguf(tmp_path / "model.gguf", module, "llama", "F16")
    pack_folder(tmp_path / "llama-gptq", module, WAYS["gptq"])
    commands = [each for each in COMMANDS if re.search(r" (llama-gptq/|model\.gguf) ", each)]
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    graph = onnx.load(tmp_path / "llama-onnx" / "model.onnx").graph
    assert sum(each.op_type == "MatMulNBits" for each in graph.node) == 7
    assert (tmp_path / "out" / "model.onnx").exists()
