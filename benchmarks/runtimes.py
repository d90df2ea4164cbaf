"""What runtimes take of sixty nets, as they are and written for each; and whether it runs there.

Nets of MXNet's zoo, transformers, torchvision and PyTorch's own layers become ONNX, plainly and for
each profile; what a profile does not take is counted, and integers of 64 bits that no weight holds.
What is written for OpenVINO and for ONNX Runtime in the browser runs there, beside ONNX Runtime
with the plain model, on the same seeded inputs::

    python benchmarks/runtimes.py [NET...] [--web FOLDER]

It wants the environment with PyTorch, and openvino; FOLDER is one in which ``npm install
onnxruntime-web`` was run. It prints a line a net, and what a table of all of them says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "tests")]

import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from calibrate import calibrate  # noqa: E402
from support.torch_programs import PROGRAMS, build  # noqa: E402

import serde  # noqa: E402
from serde.bridge.formats import get_bridge  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402
from serde.onnx.judge import Judge  # noqa: E402
from serde.onnx.profile import profile_names, read_supported  # noqa: E402

ZOO = (
    "alexnet", "densenet121", "inception_v3", "mobilenet0_25", "mobilenet1_0", "mobilenet_v2_0_25",
    "mobilenet_v2_1_0", "resnet18_v1", "resnet18_v2", "resnet50_v1", "squeezenet1_0", "vgg11",
)  # fmt: skip
# Quantised nets are for integers of 8 bits, which is another question.
NETS = (*ZOO, *(name for name in PROGRAMS if "quantised" not in name))
LIMIT = 1e-3
"""Distance in deviations of an output up to which a runtime computes the same."""

_WEB = """
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
const ort = createRequire(process.argv[2] + "/x.js")("onnxruntime-web");
ort.env.wasm.numThreads = 1;
const kinds = { float32: Float32Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array };
const { model, inputs } = JSON.parse(readFileSync(process.argv[3], "utf8"));
const options = { executionProviders: ["wasm"] };
const session = await ort.InferenceSession.create(readFileSync(model), options);
const feeds = {};
for (const [name, { file, dtype, shape }] of Object.entries(inputs)) {
  const { buffer, byteOffset, byteLength } = readFileSync(file);
  const data = new kinds[dtype](buffer.slice(byteOffset, byteOffset + byteLength));
  feeds[name] = new ort.Tensor(dtype, data, shape);
}
const found = await session.run(feeds);
const told = session.outputNames.map((name, at) => {
  const { data, type, dims } = found[name];
  const file = `${process.argv[3]}.${at}`;
  writeFileSync(file, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  return { file, dtype: type, shape: dims };
});
console.log(JSON.stringify(told));
"""


def source(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a net as ONNX, plainly, and inputs for it."""
    rng = np.random.default_rng(0)
    if name in ZOO:
        import_mxnet()
        from mxnet.gluon.model_zoo import vision

        side = 299 if name == "inception_v3" else 224
        shape = (1, 3, side, side)
        symbol, arguments, states = calibrate(getattr(vision, name)(), {"data": shape}, batch=1)
        params = {f"arg:{key}": value for key, value in arguments.items()}
        params |= {f"aux:{key}": value for key, value in states.items()}
        proto = serde.export_model(symbol, params, format="onnx", input_shapes={"data": shape})
        return proto, {"data": rng.standard_normal(shape).astype(np.float32)}
    program = build(name)
    with torch.no_grad():
        exported = torch.export.export(program.module, program.inputs)
    proto = serde.export_model(exported, format="onnx")
    given = [each.numpy() for each in program.inputs]
    return proto, dict(zip((each.name for each in proto.graph.input), given, strict=True))


def outside(proto: onnx.ModelProto, profile: str) -> int:
    """Return how many nodes of a model a runtime does not take."""
    bridge = get_bridge("onnx")
    native = bridge.load(proto, None, bridge.bind_import({}))
    opset = proto.opset_import[0].version
    return len(Judge(read_supported(profile), opset, {}).find_gaps(native))


def wide(proto: onnx.ModelProto) -> int:
    """Return how many values are int64 that nodes give or are given, weights left out."""
    held = {each.name for each in proto.graph.initializer}
    graph = onnx.shape_inference.infer_shapes(proto).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {each.name: each.type.tensor_type.elem_type for each in values}
    return sum(kind == onnx.TensorProto.INT64 for name, kind in types.items() if name not in held)


def distance(expected: list[np.ndarray], found: list[np.ndarray]) -> float:
    """Return the greatest distance of outputs, in deviations of what is expected."""
    worst = 0.0
    for x, y in zip(expected, found, strict=True):
        if x.shape != y.shape:
            return float("inf")
        scale = float(np.std(x)) if x.dtype.kind == "f" else 1.0
        far = float(np.abs(x.astype(np.float64) - y.astype(np.float64)).max(initial=0.0))
        worst = max(worst, far / max(scale, 1e-12))
    return worst


def as_declared(path: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return inputs in the dtypes that a model declares."""
    graph = onnx.load(path, load_external_data=False).graph
    dtypes = {
        each.name: onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        for each in graph.input
    }
    return {name: inputs[name].astype(dtypes[name]) for name in dtypes if name in inputs}


def by_openvino(path: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    compiled = core.compile_model(core.read_model(path), "CPU")
    found = compiled(as_declared(path, inputs))
    return [np.asarray(found[port]) for port in compiled.outputs]


def by_web(folder: Path, path: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    told: dict[str, Any] = {}
    for at, (name, array) in enumerate(as_declared(path, inputs).items()):
        file = path.with_suffix(f".{at}.in")
        array.tofile(file)
        told[name] = {"file": str(file), "dtype": str(array.dtype), "shape": array.shape}
    request, script = path.with_suffix(".json"), path.with_suffix(".mjs")
    request.write_text(json.dumps({"model": str(path), "inputs": told}))
    script.write_text(_WEB)
    done = subprocess.run(
        ["node", str(script), str(folder.resolve()), str(request)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1][:200])
    rows = json.loads(done.stdout.splitlines()[-1])
    return [np.fromfile(each["file"], each["dtype"]).reshape(each["shape"]) for each in rows]


def verdict(run: Any, expected: list[np.ndarray]) -> str:
    try:
        far = distance(expected, run())
    except Exception as error:
        return f"refused: {str(error).splitlines()[0][:120]}"
    return f"right {far:.0e}" if far <= LIMIT else f"WRONG {far:.0e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", default=NETS)
    parser.add_argument("--web", type=Path)
    given = parser.parse_args()
    totals: Counter[str] = Counter()
    for name in given.nets:
        with tempfile.TemporaryDirectory() as folder:
            proto, inputs = source(name)
            session = onnxruntime.InferenceSession(proto.SerializeToString())
            expected = session.run(None, inputs)
            cells = [f"int64 {wide(proto)}"]
            for profile in profile_names():
                path = Path(folder) / f"{profile}.onnx"
                serde.export_model(proto, format="onnx", profile=profile, path=path)
                made = onnx.load(path)
                before, after = outside(proto, profile), outside(made, profile)
                totals[f"{profile}: nodes outside before"] += before
                totals[f"{profile}: nodes outside after"] += after
                totals[f"{profile}: nets whole before"] += not before
                totals[f"{profile}: nets whole after"] += not after
                cells.append(f"{profile} {before}>{after}")
                session = onnxruntime.InferenceSession(made.SerializeToString())
                same = session.run(None, as_declared(path, inputs))
                if distance(expected, same) > LIMIT:
                    cells.append("WRONG in ONNX Runtime")
                    totals[f"{profile}: wrong"] += 1
                if not read_supported(profile).int64:
                    totals[f"{profile}: int64 before"] += wide(proto)
                    totals[f"{profile}: int64 after"] += wide(made)
                    cells.append(f"int64 {wide(made)}")
            path = Path(folder) / "openvino.onnx"
            told = {"OpenVINO": verdict(lambda: by_openvino(path, inputs), expected)}  # noqa: B023
            if given.web is not None:
                path = Path(folder) / "onnxruntime-web.onnx"
                told["web"] = verdict(lambda: by_web(given.web, path, inputs), expected)  # noqa: B023
            for runtime, text in told.items():
                totals[f"{runtime}: {text.split()[0].strip(':')}"] += 1
                cells.append(f"{runtime} {text}")
            print(f"{name:24}", "  ".join(cells), flush=True)
    for what, count in sorted(totals.items()):
        print(f"{what:40} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
