"""Measures decoders that serde converts beside the tools that people use instead.

    python benchmarks/decoder_peers.py install [--python 3.11=python3.11]
    python benchmarks/decoder_peers.py run [FAMILY...]
    python benchmarks/decoder_peers.py page

A peer is a script in benchmarks/peers/decoders that makes ONNX of a checkpoint in float32; its
inline metadata names the packages of its environment in .venv-peers. ``run`` saves models of 10
families with random weights (hidden size 512, 4 layers, 8192 tokens), has each tool convert them
in a process of its own, and measures that: CPU seconds and the peak of its memory. Then all graphs
take the same steps behind a cache of 128 tokens in one process, in turn, one thread each: the
median of their CPU time, and how far the logits of a batch of two, one of them padded on the left,
are from those of PyTorch, in their spreads. ``page`` writes the table of docs/generate.md. Beside
ONNX Runtime, what ``serde.compile`` makes of the checkpoint is run by TVM.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import peers

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "benchmarks" / "peers" / "decoders"
FIGURES = peers.ENVIRONMENTS / "decoders.json"
PAGE = ROOT / "docs" / "generate.md"
FAMILIES = (
    "Llama",
    "Qwen2",
    "Qwen3",
    "Mistral",
    "Gemma2",
    "Gemma3",
    "Phi3",
    "GPT2",
    "Mixtral",
    "OLMoE",
)
SIZES = {
    "vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64,
}  # fmt: skip
TOOLS = {
    "serde": "serde", "serde-runtime": "serde, `--runtime onnxruntime`",
    "serde-tvm": "serde, compiled by TVM",
    "exporters": "transformers.exporters", "optimum": "optimum-onnx", "genai": "GenAI's builder",
}  # fmt: skip
PAST, STEPS = 128, 40


def make(family: str, folder: Path) -> None:
    """Save a model of a family, with a tokenizer, and what PyTorch says of the steps."""
    import decoders
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    decoders.TEXT.update(SIZES)
    module, _ = decoders.make(family, folder)
    words = {f"w{index}": index for index in range(SIZES["vocab_size"])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))
    decoders.transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(
        folder
    )
    past = np.random.default_rng(0).integers(4, 8000, (2, PAST))
    mask = np.ones((2, PAST + 1), np.int64)
    mask[1, :40] = 0
    with torch.no_grad():
        given = {"input_ids": torch.tensor(past), "attention_mask": torch.tensor(mask[:, :-1])}
        if family not in ("GPT2",):
            given["position_ids"] = torch.tensor(np.maximum(mask[:, :-1].cumsum(1) - 1, 0))
        cache = decoders.transformers.DynamicCache()
        found = module(**given, past_key_values=cache, use_cache=True).past_key_values
        step = {"input_ids": torch.full((2, 1), 7), "attention_mask": torch.tensor(mask),
                "position_ids": torch.tensor(mask.sum(1, keepdims=True) - 1)}  # fmt: skip
        arrays = {}
        for index, layer in enumerate(found.layers):
            arrays |= {f"key{index}": layer.keys.numpy(), f"value{index}": layer.values.numpy()}
        arrays = {name: each.copy() for name, each in arrays.items()}
        logits = module(**step, past_key_values=found).logits.numpy()
    np.savez(folder / "step.npz", logits=logits, **arrays)


def feeds(session: Any, arrays: Mapping[str, Any], batch: int) -> dict[str, Any]:
    """Return the inputs of a step, whatever a tool calls them."""
    mask = np.ones((batch, PAST + 1), np.int64)
    mask[1:, :40] = 0
    known = {"input_ids": np.full((batch, 1), 7), "attention_mask": mask,
             "position_ids": mask.sum(1, keepdims=True) - 1}  # fmt: skip
    given = {}
    for each in session.get_inputs():
        if each.name in known:
            given[each.name] = known[each.name]
            continue
        place = re.search(r"\.(\d+)\.(key|value)", each.name)
        if place is None:
            raise ValueError(f"no such input is known: {each.name}")
        given[each.name] = arrays[f"{place[2]}{place[1]}"][:batch]
    return given


class Compiled:
    """A library of TVM's, asked as a session of ONNX Runtime is."""

    def __init__(self, path: Path) -> None:
        import serde

        self._net = serde.Runnable.load(path)

    def get_inputs(self) -> Sequence[Any]:
        """Return the inputs, which have names."""
        return self._net.interface.inputs

    def run(self, names: Sequence[str] | None, given: Mapping[str, Any]) -> list[Any]:
        """Return outputs by name, or all."""
        found = dict(zip(self._net.outputs, self._net.run(given), strict=True))
        return [found[name] for name in names or found]


def step(source: Path, targets: Mapping[str, Path]) -> dict[str, Any]:
    """Return CPU seconds of a step, distance of its logits, and nodes, of each tool."""
    import onnx
    import onnxruntime

    arrays = dict(np.load(source / "step.npz"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    found: dict[str, dict[str, Any]] = {}
    sessions = {}
    for tool, folder in targets.items():
        files = [folder / name for name in ("net.so", "model.onnx", "decode.onnx")]
        path = next(each for each in files if each.exists())
        is_library = path.suffix == ".so"
        proto = None if is_library else onnx.load(path, load_external_data=False)
        found[tool] = {"nodes": "" if proto is None else len(proto.graph.node), "taken": []}
        try:
            session: Any = (
                Compiled(path) if is_library else onnxruntime.InferenceSession(path, options)
            )
            logits = session.run(["logits"], feeds(session, arrays, 2))[0][:, -1]
            wanted = arrays["logits"][:, -1]
            distance = np.abs(logits - wanted).max(-1) / wanted.std()
            found[tool] |= {"distance": float(distance[0]), "padded": float(distance[1])}
            sessions[tool] = session, feeds(session, arrays, 1)
        except Exception as error:
            found[tool]["fault"] = str(error).strip().splitlines()[-1][:200]
    for _ in range(STEPS):
        for tool, (session, given) in sessions.items():
            start = time.process_time()
            session.run(None, given)
            found[tool]["taken"].append(time.process_time() - start)
    for each in found.values():
        taken = each.pop("taken")
        each["step"] = statistics.median(taken) if taken else None
    return found


def scripts() -> list[peers.Peer]:
    """Return the peers."""
    return [peers.Peer.read(path) for path in sorted(SCRIPTS.glob("*.py"))]


def run(families: Sequence[str]) -> None:
    """Measure the peers whose environments are there, and serde beside them."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    with tempfile.TemporaryDirectory() as place:
        for family in families or FAMILIES:
            source, out = Path(place, family), Path(place, f"{family}-out")
            out.mkdir()
            own = [sys.executable, __file__]
            subprocess.run([*own, "make", family, source], check=True)
            serde = [*own, "serde", source]
            commands = {"serde": [*serde, out / "serde"],
                        "serde-runtime": [*serde, out / "serde-runtime", "onnxruntime"],
                        "serde-tvm": [*serde, out / "serde-tvm", "tvm"]}  # fmt: skip
            for peer in scripts():
                if peer.python.exists():
                    name = peer.path.stem
                    commands[name] = [peer.python, peer.path, source, out / name]
            rows: dict[str, dict[str, Any]] = {}
            for tool, command in commands.items():
                taken, fault = peers.measure(command, out / tool, 1)
                rows[tool] = (
                    {"fault": fault} if fault else {"cpu": taken[0][0], "peak": taken[0][1]}
                )
            done = [out / tool for tool, row in rows.items() if not row.get("fault")]
            text = subprocess.run([*own, "step", source, *done], check=True, capture_output=True,
                                  env={**os.environ, "TVM_NUM_THREADS": "1"})  # fmt: skip
            for tool, row in json.loads(text.stdout.splitlines()[-1]).items():
                rows[tool] |= row
            figures[family] = rows
            FIGURES.write_text(json.dumps(figures, indent=1))
            print(family, json.dumps(rows, indent=1), flush=True)


def cell(row: Mapping[str, Any] | None) -> list[str]:
    """Return nodes, seconds, memory, tokens a second and distance of a tool."""
    if not row or "nodes" not in row:
        return ["—", "—", "—", "fails" if row else "—", "—"]
    step = f"{1 / row['step']:.0f}" if row.get("step") else "not measured"
    worst = max(row.get("distance", np.inf), row.get("padded", np.inf))
    right = (
        "right" if worst < 1e-3 else "padding wrong" if row.get("distance", 9) < 1e-3 else "wrong"
    )
    return [str(row["nodes"]), f"{row['cpu']:.1f}", f"{row['peak'] / 1e9:.2f}", step,
            right if row.get("step") else "—"]  # fmt: skip


def page() -> None:
    """Write the table between its marks."""
    figures = json.loads(FIGURES.read_text())
    lines = ["| family | tool | nodes | CPU s | peak GB | tokens/s | a step |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for family in filter(figures.get, FAMILIES):
        for tool, title in TOOLS.items():
            row = cell(figures[family].get(tool))
            lines.append(f"| {family} | {title} | {' | '.join(row)} |")
    text = PAGE.read_text(encoding="utf-8")
    start, end = "<!-- peers -->\n", "<!-- end of peers -->\n"
    before, rest = text.split(start)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{start}\n{table}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def main() -> None:
    """Do what is asked."""
    if sys.argv[1:2] == ["make"]:
        make(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["serde"]:
        sys.path.insert(0, str(ROOT))
        import serde

        runtime: Any = sys.argv[4] if len(sys.argv) > 4 else "any"
        if runtime == "tvm":
            Path(sys.argv[3]).mkdir()
            net = serde.compile(sys.argv[2], task="text-generation")
            net.save(Path(sys.argv[3], "net.so"))
            return
        serde.convert(sys.argv[2], sys.argv[3], target_format="onnx", runtime=runtime,
                      task="text-generation")  # fmt: skip
    elif sys.argv[1:2] == ["step"]:
        sys.path.insert(0, str(ROOT))
        source, *targets = map(Path, sys.argv[2:])
        print(json.dumps(step(source, {each.name: each for each in targets})))
    else:
        parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
        parser.add_argument("what", choices=("install", "run", "page"))
        parser.add_argument("families", nargs="*", metavar="FAMILY")
        parser.add_argument("--python", action="append", default=[], metavar="3.11=PATH")
        options = parser.parse_args()
        if options.what == "install":
            peers.install(scripts(), dict(each.split("=", 1) for each in options.python))
        elif options.what == "run":
            run(options.families)
        else:
            page()


if __name__ == "__main__":
    main()
