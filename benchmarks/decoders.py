"""Tiny models of 30 families, with random weights, from a checkpoint to ONNX that generates.

Each is saved as Hugging Face does, converted by ``serde convert``, and run by ONNX Runtime, whose
logits and tokens transformers' own ``generate`` judges::

    python benchmarks/decoders.py [FAMILY...] [--steps 64] [--opset 17] [--runtime any]
    python benchmarks/decoders.py --to coreml --steps 32 [--precision float32]

Core ML packages with caches of a fixed length are run by the executor of the tests instead.

It prints a line a family: right (the greatest distance in spreads of the logits), refused with
the reason, or wrong.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import torch  # noqa: E402
from support.checkpoints import transformers as load_transformers  # noqa: E402

import serde  # noqa: E402

transformers = load_transformers()

TEXT: dict[str, Any] = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
PAIRED: dict[str, Any] = {
    "vocab_size": 256, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0, "decoder_start_token_id": 3, "forced_eos_token_id": None,
}  # fmt: skip
VISION = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
GENERATES, PAIRS, SPEAKS = "text-generation", "text2text-generation", "automatic-speech-recognition"
IMAGES = "image-classification"


def _nested(kind: str) -> Callable[[], Any]:
    """Return what makes a config of a text and an image model."""
    text = {k: v for k, v in TEXT.items() if k not in ("num_key_value_heads", "head_dim")}

    def make() -> Any:
        config = getattr(transformers, kind)
        return config(text_config={**text, "projection_dim": 64}, vision_config=VISION)

    return make


FAMILIES: Mapping[str, tuple[str, str, Any]] = {
    "Llama": (GENERATES, "LlamaConfig", {}),
    "Qwen2": (GENERATES, "Qwen2Config", {}),
    "Qwen3": (GENERATES, "Qwen3Config", {}),
    "Mistral": (GENERATES, "MistralConfig", {"sliding_window": 8}),
    "Gemma2": (GENERATES, "Gemma2Config", {"sliding_window": 8}),
    "Gemma3": (GENERATES, "Gemma3TextConfig", {"sliding_window": 8, "num_hidden_layers": 6}),
    "Phi3": (GENERATES, "Phi3Config", {}),
    "GPT2": (GENERATES, "GPT2Config", {"n_positions": 512}),
    "GPTNeoX": (GENERATES, "GPTNeoXConfig", {}),
    "OPT": (GENERATES, "OPTConfig", {"word_embed_proj_dim": 64, "ffn_dim": 96}),
    "Falcon": (GENERATES, "FalconConfig", {"head_dim": None}),
    "BLOOM": (GENERATES, "BloomConfig", {"n_layer": 2, "n_head": 4}),
    "Mixtral": (GENERATES, "MixtralConfig", {"num_local_experts": 4}),
    "OLMoE": (GENERATES, "OlmoeConfig", {**MOE, "num_experts": 4}),
    "Mamba": (GENERATES, "MambaConfig", {"state_size": 16}),
    "LFM2": (GENERATES, "Lfm2Config", {"layer_types": ["conv", "full_attention"]}),
    "Qwen3-Next": (
        GENERATES, "Qwen3NextConfig",
        {**MOE, "num_experts": 4, "shared_expert_intermediate_size": 48,
         "layer_types": ["linear_attention", "full_attention"],
         "linear_key_head_dim": 16, "linear_value_head_dim": 16,
         "linear_num_key_heads": 2, "linear_num_value_heads": 4},
    ),
    "T5": (PAIRS, "T5Config", {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2,
                               "num_heads": 4, "decoder_start_token_id": 0}),
    "BART": (PAIRS, "BartConfig", PAIRED),
    "Marian": (PAIRS, "MarianConfig", PAIRED),
    "Whisper": (SPEAKS, "WhisperConfig", {**PAIRED, "num_mel_bins": 16, "max_source_positions": 50,
                                          "max_target_positions": 128}),
    "Moonshine": (SPEAKS, "MoonshineConfig", {"encoder_num_hidden_layers": 2,
                                              "decoder_num_hidden_layers": 2,
                                              "decoder_start_token_id": 1}),
    "BERT": ("fill-mask", "BertConfig", {}),
    "RoBERTa": ("fill-mask", "RobertaConfig", {"type_vocab_size": 1}),
    "DeBERTa": ("text-classification", "DebertaV2Config", {
        "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16,
        "norm_rel_ebd": "layer_norm", "share_att_key": True}),
    "MiniLM": ("feature-extraction", "BertConfig", {"num_hidden_layers": 3}),
    "CLIP": ("zero-shot-image-classification", _nested("CLIPConfig"), None),
    "SigLIP": ("zero-shot-image-classification", _nested("SiglipConfig"), None),
    "ViT": (IMAGES, "ViTConfig", VISION),
    "wav2vec2": (SPEAKS, "Wav2Vec2Config", {
        "conv_dim": [32] * 3, "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2],
        "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}),
}  # fmt: skip


def make(name: str, folder: Path) -> tuple[Any, str]:
    """Save a tiny model of a family with random weights; return it and its task."""
    task, kind, own = FAMILIES[name]
    base = {} if own in (PAIRED, VISION) else TEXT
    given = {key: value for key, value in {**base, **(own or {})}.items() if value is not None}
    config = kind() if callable(kind) else getattr(transformers, kind)(**given)
    torch.manual_seed(0)
    auto = {
        GENERATES: "AutoModelForCausalLM", PAIRS: "AutoModelForSeq2SeqLM",
        SPEAKS: "AutoModelForCTC" if name == "wav2vec2" else "AutoModelForSpeechSeq2Seq",
        "fill-mask": "AutoModelForMaskedLM", "feature-extraction": "AutoModel",
        "text-classification": "AutoModelForSequenceClassification", IMAGES:
        "AutoModelForImageClassification",
        "zero-shot-image-classification": "AutoModelForZeroShotImageClassification",
    }[task]  # fmt: skip
    module = getattr(transformers, auto).from_config(config).eval()
    with torch.no_grad():  # As initialised, most families repeat one token for ever.
        for each in module.parameters():
            if each.ndim > 1:
                each.mul_(6.0 if each.std() < 0.05 else 1.0)
    tokens = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
    given = {name: getattr(config.get_text_config(), name, None) for name in tokens}
    if task in (GENERATES, PAIRS, SPEAKS) and name != "wav2vec2":
        module.generation_config = transformers.GenerationConfig(**given)
    module.save_pretrained(folder)
    return module, task


class Judge:
    """What transformers gives, and how far what ONNX Runtime gives is from it."""

    def __init__(self, module: Any, folder: Path, steps: int) -> None:
        self.module, self.folder, self.steps = module, folder, steps
        self.worst = 0.0
        self.faults: list[str] = []

    def session(self, name: str) -> Any:
        import onnxruntime

        return onnxruntime.InferenceSession(str(self.folder / f"{name}.onnx"))

    def compare(self, what: str, expected: Any, found: Any, where: Any = ...) -> None:
        """Note the distance of two arrays in spreads of the first."""
        expected, found = np.asarray(expected), np.asarray(found)
        if expected.shape != found.shape:
            self.faults.append(f"{what}: {list(found.shape)} for {list(expected.shape)}")
            return
        distance = np.abs(expected - found)[where].max() / max(expected[where].std(), 1e-12)
        self.worst = max(self.worst, float(distance))
        if not distance <= 1e-3:
            self.faults.append(f"{what}: {distance:.1e} spreads away")

    def tokens(self, what: str, expected: Any, found: Any) -> None:
        if not np.array_equal(expected, found):
            self.faults.append(f"{what}: other tokens")


def _empty(session: Any, batch: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a past of no length for each state of a session."""
    past = {}
    for each in session.get_inputs():
        if each.name.startswith("past") and each.name not in given:
            shape = [batch if d == "batch" else 0 if isinstance(d, str) else d for d in each.shape]
            past[each.name] = np.zeros(shape, np.float32)
    return past


_BATCHES = ((1, "none"), (3, "left"), (3, "right"))


def judge_decoder(judge: Judge) -> None:
    """Greedy tokens and logits of batches of one and three, padded on both sides."""
    session = judge.session("model")
    names = [each.name for each in session.get_inputs()]
    rng = np.random.default_rng(0)
    single = session.get_inputs()[0].shape[1] == 1
    for batch, side in ((1, "none"), (3, "none")) if single else _BATCHES:
        ids = rng.integers(4, 256, (batch, 11))
        mask = np.ones_like(ids)
        for row in range(1 if side != "none" else batch, batch):
            hidden = slice(0, 2 * row) if side == "left" else slice(11 - 2 * row, 11)
            mask[row, hidden] = 0
            ids[row, hidden] = 0
        steps = judge.steps if side != "right" else 0
        position = np.maximum(mask.cumsum(1) - 1, 0)
        with torch.no_grad():
            given = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
            takes = inspect.signature(judge.module.forward).parameters
            if "position_ids" in takes:
                given["position_ids"] = torch.tensor(position)
            prompt = judge.module(**given).logits.numpy()
            del given["input_ids"]
            given.pop("position_ids", None)
            whole = steps and judge.module.generate(
                torch.tensor(ids), **given, max_new_tokens=steps, min_new_tokens=steps,
                do_sample=False, output_logits=True, return_dict_in_generate=True,
            )  # fmt: skip
        past = _empty(session, batch, {})
        made, feed = [], ids

        def call(feed: Any, mask: Any, position: Any, past: Any) -> tuple[Any, dict[str, Any]]:
            inputs = {"input_ids": feed, "attention_mask": mask, "position_ids": position, **past}
            outputs = session.run(None, {name: inputs[name] for name in names})
            kept = [name for name in names if name.startswith("past")]
            return outputs[0], dict(zip(kept, outputs[1:], strict=True))

        for step in range(max(steps, 1)):
            if single and step == 0:  # The prompt goes in token by token.
                rows = []
                for i in range(11):
                    own = ids[:, i : i + 1], mask[:, : i + 1], position[:, i : i + 1]
                    row, past = call(*own, past)
                    rows.append(row)
                logits = np.concatenate(rows, 1)
            else:
                logits, past = call(feed, mask, position, past)
            if step == 0:
                judge.compare(f"prompt of {batch}, {side}", prompt, logits, mask.astype(bool))
            if steps:
                judge.compare(f"step {step} of {batch}, {side}", whole.logits[step], logits[:, -1])
            scores = logits[:, -1].copy()
            scores[:, 2] = -np.inf  # min_new_tokens keeps the end away.
            feed = scores.argmax(-1)[:, None]
            made.append(feed)
            mask = np.concatenate([mask, np.ones_like(feed)], 1)
            position = mask.sum(1, keepdims=True) - 1
        if steps:
            found = np.concatenate(made, 1)
            judge.tokens(f"batch of {batch}, {side}", whole.sequences[:, 11:].numpy(), found)


def judge_paired(judge: Judge, task: str) -> None:
    """Greedy tokens and logits of a batch of two whose texts have other lengths, or of sound."""
    encoder, decoder = judge.session("encoder_model"), judge.session("decoder_model")
    rng, config = np.random.default_rng(0), judge.module.config
    given: dict[str, Any]
    if task == PAIRS:
        ids, mask = rng.integers(4, 256, (2, 9)), np.ones((2, 9), np.int64)
        ids[1, 6:], mask[1, 6:] = 0, 0
        given = {"input_ids": ids, "attention_mask": mask}
    elif hasattr(config, "num_mel_bins"):
        shape = (2, config.num_mel_bins, 2 * config.max_source_positions)
        given = {"input_features": rng.standard_normal(shape).astype(np.float32)}
    else:
        given = {"input_values": rng.standard_normal((2, 8000)).astype(np.float32)}
    with torch.no_grad():
        whole = judge.module.generate(
            **{name: torch.tensor(each) for name, each in given.items()},
            max_new_tokens=judge.steps, min_new_tokens=judge.steps, do_sample=False, num_beams=1,
            output_logits=True, return_dict_in_generate=True, output_hidden_states=False,
        )  # fmt: skip
    outputs = dict(
        zip([x.name for x in encoder.get_outputs()], encoder.run(None, given), strict=True)
    )
    cross = {
        name.replace("present", "past_key_values"): each
        for name, each in outputs.items()
        if name.startswith("present")
    }
    names = [each.name for each in decoder.get_inputs()]
    past = _empty(decoder, 2, cross)
    feed = np.full((2, 1), config.decoder_start_token_id)
    made = []
    for step in range(judge.steps):
        inputs = {"input_ids": feed, **cross, **past}
        if "encoder_attention_mask" in names:
            inputs["encoder_attention_mask"] = given["attention_mask"]
        found = decoder.run(None, {name: inputs[name] for name in names})
        judge.compare(f"step {step}", whole.logits[step], found[0][:, -1])
        scores = found[0][:, -1].copy()
        scores[:, 2] = -np.inf
        feed = scores.argmax(-1)[:, None]
        made.append(feed)
        past = dict(zip(past, found[1:], strict=True))
    start = whole.sequences.shape[1] - judge.steps
    judge.tokens("batch of 2", whole.sequences[:, start:].numpy(), np.concatenate(made, 1))


def judge_once(judge: Judge) -> None:
    """All outputs, for batches of one and three."""
    session, rng = judge.session("model"), np.random.default_rng(0)
    for batch, length in ((1, 7), (3, 12)):
        given = {}
        for each in session.get_inputs():
            shape = [
                (2 if d == "image_batch" else batch) if i == 0
                else d if isinstance(d, int) else 8000 if d == "samples" else length
                for i, d in enumerate(each.shape)
            ]  # fmt: skip
            if each.type == "tensor(float)":
                given[each.name] = rng.standard_normal(shape).astype(np.float32)
            elif each.name == "input_ids":
                given[each.name] = rng.integers(4, 256, shape)
            else:
                given[each.name] = np.ones(shape, np.int64)
                if each.name == "attention_mask":
                    given[each.name][-1, length // 2 :] = batch == 1
        with torch.no_grad():
            expected = judge.module(**{k: torch.tensor(v) for k, v in given.items()})
        outputs = session.get_outputs()
        for each, found in zip(outputs, session.run(None, given), strict=True):
            mask = given.get("attention_mask")
            rows = mask.astype(bool) if mask is not None and found.shape[:2] == mask.shape else ...
            judge.compare(each.name, getattr(expected, each.name), found, rows)


def judge_package(judge: Judge, path: Path) -> None:
    """Greedy tokens and scores behind a prompt that is read in pieces, by the executor of MIL."""
    from support.coreml_decoders import Decoder, load_by_coremltools, read_by_transformers

    load_by_coremltools(path)
    prompt = np.random.default_rng(0).integers(4, 256, 9).tolist()
    net = Decoder(path)
    made, found = net.generate(prompt, judge.steps, net.most)
    expected = read_by_transformers(judge.module, prompt, made)
    judge.worst = float(np.abs(expected - found).max() / expected.std())
    judge.tokens("one text", expected.argmax(-1), made)


def run(name: str, steps: int, **how: Any) -> dict[str, Any]:
    """Return what became of a family, converted with options."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "in"), Path(directory, "out")
        module, task = make(name, source)
        start = time.process_time()
        to = how.pop("target_format")
        try:
            report = serde.convert(source, target, target_format=to, task=task, **how)
        except serde.SerdeError as error:
            return {"family": name, "result": "refused", "why": f"{error}"}
        except Exception as error:
            if os.environ.get("DEBUG"):
                raise
            return {"family": name, "result": "wrong", "worst": 9, "why": f"BUG {error!r}"}
        seconds = time.process_time() - start
        judge = Judge(module, target, steps)
        if os.environ.get("KEEP"):
            shutil.copytree(target, Path(os.environ["KEEP"], name), dirs_exist_ok=True)
            shutil.copytree(source, Path(os.environ["KEEP"], name, "in"), dirs_exist_ok=True)
        if to == "coreml":
            judge_package(judge, target / "model.mlpackage")
        elif task == GENERATES:
            judge_decoder(judge)
        elif (target / "decoder_model.onnx").exists():
            judge_paired(judge, task)
        else:
            judge_once(judge)
        return {
            "family": name, "result": "wrong" if judge.faults else "right", "worst": judge.worst,
            "why": "; ".join(judge.faults[:3]), "seconds": round(seconds, 1),
            "nodes": sum(report.after.values()),
        }  # fmt: skip


def main() -> None:
    """Print a line a family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--runtime", default="any", choices=("any", "onnxruntime"))
    parser.add_argument("--to", default="onnx", choices=("onnx", "coreml"))
    parser.add_argument("--precision", default="float16", choices=("float16", "float32"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    how: dict[str, Any] = {"opset": options.opset, "runtime": options.runtime}
    families = options.families or [*FAMILIES]
    if options.to == "coreml":
        how = {
            "cache_length": 16 + options.steps, "minimum_deployment_target": "iOS18",
            "compute_precision": options.precision, "allow": {"int64-as-int32"},
        }  # fmt: skip
        families = [x for x in families if FAMILIES[x][0] == GENERATES and x != "Mamba"]
    for name in families:
        found.append(run(name, options.steps, target_format=options.to, **how))
        each = found[-1]
        distance = f"{each['worst']:.1e}" if "worst" in each else ""
        figures = f"{distance:>8} {each.get('seconds', ''):>6} {each.get('nodes') or '':>6}"
        print(f"{name:<12} {each['result']:<8} {figures}  {each['why'][:300]}", flush=True)
    counts = {x: sum(e["result"] == x for e in found) for x in ("right", "refused", "wrong")}
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
