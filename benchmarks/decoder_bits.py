"""Tiny decoders of 12 families with weights of 4 bits, judged on the numbers that these stand for.

``int4`` is ``serde convert --int4``; its judge is the same graph with the floats that NumPy makes
of each MatMulNBits by its documentation. ``gptq`` and ``awq`` are checkpoints packed by NumPy
(``tests/support/packed_checkpoints.py``), judged by transformers' ``generate`` on their floats::

    python benchmarks/decoder_bits.py [FAMILY...] [--ways int4,gptq,awq] [--steps 64]

A line each: the distance in spreads of the logits, perplexity in floats and in 4 bits on a text
that the model in floats drew, and bytes of the file in floats and in 4 bits. All tokens are equal
where it is right. ``--genai`` converts models of ``decoder_peers.py`` by GenAI's builder too
(``-p int4``): bytes of weights, CPU time of a step beside serde's in the same process, and the
distance of its logits from those of floats.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import decoder_peers
import decoders
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from support.packed_checkpoints import WAYS, pack_folder

import serde

onnxruntime.set_default_logger_severity(3)

FAMILIES = (
    "Llama", "Qwen2", "Qwen3", "Mistral", "Gemma2", "Gemma3", "Phi3", "GPT2", "GPTNeoX", "OPT",
    "Falcon", "Mixtral",
)  # fmt: skip
TURNED = {"GPT2": ("c_attn", "c_proj", "c_fc")}
TEXT = 256
"""Tokens that perplexity is told on."""


def in_floats(path: Path, target: Path) -> None:
    """Write a model with the floats that weights of MatMulNBits stand for."""
    model = onnx.load(path)
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMulNBits":
            continue
        facts = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        packed, scales = (stored[name] for name in node.input[1:3])
        rows, blocks = facts["N"], -(-facts["K"] // facts["block_size"])
        levels = np.stack([packed & 15, packed >> 4], -1).reshape(rows, blocks, -1)
        points: Any = 8
        if len(node.input) > 3:
            row = stored[node.input[3]].reshape(rows, -1)
            points = np.stack([row & 15, row >> 4], -1).reshape(rows, -1)[:, :blocks, None]
        floats = (levels.astype(np.float32) - points) * scales.reshape(rows, blocks, 1)
        weight = floats.reshape(rows, -1)[:, : facts["K"]].T.astype(np.float32)
        name = f"{node.input[1]}_floats"
        model.graph.initializer.append(numpy_helper.from_array(weight.copy(), name))
        data = node.input[0]
        node.op_type, node.domain = "MatMul", ""
        del node.attribute[:]
        node.input[:] = [data, name]
    onnx.save(model, target)


def generate(path: Path, steps: int) -> tuple[Any, Any]:
    """Return logits and greedy tokens of three prompts, by ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(path))
    names = [each.name for each in session.get_inputs()]
    ids = np.random.default_rng(0).integers(4, 256, (3, 11))
    mask, past = np.ones_like(ids), decoders._empty(session, 3, {})
    scores, tokens = [], []
    for _ in range(steps):
        position = mask.cumsum(1)[:, -ids.shape[1] :] - 1
        given = {"input_ids": ids, "attention_mask": mask, "position_ids": position, **past}
        logits, *present = session.run(None, {name: given[name] for name in names})
        past = dict(zip(past, present, strict=True))
        scores.append(logits[:, -1])
        ids = logits[:, -1:].argmax(-1)
        tokens.append(ids)
        mask = np.concatenate([mask, np.ones_like(ids)], 1)
    return np.stack(scores, 1), np.concatenate(tokens, 1)


def drawn_text(module: Any) -> Any:
    """Return tokens that a module draws by its own scores."""
    torch.manual_seed(1)
    with torch.no_grad():
        return module.generate(
            torch.tensor([[5]]), max_new_tokens=TEXT - 1, min_new_tokens=TEXT - 1, do_sample=True,
            top_k=0,
        ).numpy()  # fmt: skip


def perplexity(path: Path, text: Any) -> float:
    """Return that of a text which is read at once."""
    session = onnxruntime.InferenceSession(str(path))
    mask = np.ones_like(text)
    given = {"input_ids": text, "attention_mask": mask, "position_ids": mask.cumsum(1) - 1}
    given |= decoders._empty(session, 1, {})
    names = [each.name for each in session.get_inputs()]
    (logits,) = session.run(["logits"], {name: given[name] for name in names})
    rows = torch.tensor(logits[0, :-1]).double().log_softmax(-1)
    return math.exp(-float(rows.gather(1, torch.tensor(text[0, 1:, None])).mean()))


def run(name: str, way: str, steps: int) -> Mapping[str, Any]:
    """Return what became of a family."""
    how: dict[str, Any] = {"target_format": "onnx", "task": decoders.GENERATES}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        module, _ = decoders.make(name, folder / "in")
        text = drawn_text(module)
        serde.convert(folder / "in", folder / "floats", **how)
        before = perplexity(folder / "floats" / "model.onnx", text)
        if way == "int4":
            serde.convert(folder / "in", folder / "out", int4=True, **how)
        else:
            module = pack_folder(folder / "in", module, WAYS[way], TURNED.get(name, ()))
            how["runtime"] = "onnxruntime"
            serde.convert(folder / "in", folder / "out", **how)
        path = folder / "out" / "model.onnx"
        judge = decoders.Judge(module, folder / "out", steps)
        if way == "int4":
            in_floats(path, folder / "judge.onnx")
            wanted, found = generate(folder / "judge.onnx", steps), generate(path, steps)
            judge.compare("logits", wanted[0], found[0])
            judge.tokens("tokens", wanted[1], found[1])
        else:
            decoders.judge_decoder(judge)
        nodes = [each.op_type for each in onnx.load(path).graph.node]
        return {
            "family": name, "way": way, "result": "wrong" if judge.faults else "right",
            "worst": judge.worst, "why": "; ".join(judge.faults[:2]), "before": before,
            "after": perplexity(path, text), "products": nodes.count("MatMulNBits"),
            "floats": (folder / "floats" / "model.onnx").stat().st_size,
            "bytes": path.stat().st_size,
        }  # fmt: skip


def beside_genai(family: str) -> str:
    """Return a line on what serde and GenAI's builder make of a model."""
    own = Path(__file__).with_name("decoder_peers.py")
    with tempfile.TemporaryDirectory() as directory:
        source, targets = Path(directory, "in"), {}
        subprocess.run([sys.executable, own, "make", family, source], check=True)
        for name in ("serde", "builder"):
            targets[name] = Path(directory, name)
        serde.convert(
            source, targets["serde"], target_format="onnx", task=decoders.GENERATES, int4=True,
            runtime="onnxruntime",
        )  # fmt: skip
        builder = ["-m", "onnxruntime_genai.models.builder", "-p", "int4", "-e", "cpu", "-c"]
        where = ["-i", source, "-o", targets["builder"]]
        done = subprocess.run(
            [sys.executable, *builder, Path(directory, "cache"), *where], capture_output=True
        )
        if done.returncode:
            return f"{family:<8} the builder fails: {done.stderr.decode().splitlines()[-1][:150]}"
        told = [f"{family:<8}"]
        for name, row in decoder_peers.step(source, targets).items():
            size = sum(each.stat().st_size for each in targets[name].glob("model.onnx*"))
            told.append(f"{name} {size / 1e6:.2f} MB, {1e3 * (row.get('step') or 0):.2f} ms")
            told.append(f"{row.get('distance', -1):.2f} spreads away, {row.get('fault', '')}")
        return "  ".join(told)


def main() -> None:
    """Print a line a family and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--ways", default="int4,gptq,awq", help=f"int4, or of {', '.join(WAYS)}")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--genai", action="store_true", help="beside GenAI's builder")
    options = parser.parse_args()
    if options.genai:
        for name in options.families or ("Llama", "Qwen2", "Qwen3", "Mistral", "Gemma2"):
            print(beside_genai(name), flush=True)
        return
    found = []
    for name in options.families or FAMILIES:
        for way in options.ways.split(","):
            try:
                each = run(name, way, options.steps)
            except serde.SerdeError as error:
                each = {"family": name, "way": way, "result": "refused", "why": f"{error}"}
            found.append(each)
            figures = ""
            if "worst" in each:
                figures = (
                    f"{each['worst']:8.1e} {each['products']:3} products  perplexity "
                    f"{each['before']:7.2f} -> {each['after']:7.2f}  {each['floats']:7} -> "
                    f"{each['bytes']:7} bytes"
                )
            print(
                f"{name:<8} {way:<15} {each['result']:<8} {figures}  {each['why'][:200]}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
