"""How few nodes stay in float32 for a demanded cosine, beside ``onnxconverter_common``.

Ten nets become float16 by ``float16="auto"`` and by ``auto_convert_mixed_precision``, which is
asked for the same cosine on one sample. ONNX Runtime judges both on all samples, and onnx's
reference evaluator, which rounds after every node as ONNX Runtime on a processor does not, on the
first::

    python benchmarks/mixed_precision.py [NET...] [--min-cosine 0.999] [--samples 3]

It takes mxnet, torch, transformers and onnxconverter-common, and prints a line a net: bytes, least
cosine by both, nodes in float32 (casts left out), nodes on the list, runs of a float16 model and
seconds, for serde and, behind it, for the other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "tests")]

import serde  # noqa: E402

Feed = Mapping[str, np.ndarray]
RNG = np.random.default_rng(0)
WIDTH = 32


def zoo_net(name: str, path: Path) -> None:
    """Write a net of MXNet's zoo, whose BatchNorm statistics are those of data."""
    from calibrate import calibrate

    from serde.compat import import_mxnet

    import_mxnet()
    from mxnet.gluon.model_zoo import vision

    shapes = {"data": (1, 3, 224, 224)}
    symbol, arguments, states = calibrate(getattr(vision, name)(), shapes, batch=1)
    params = {f"arg:{key}": value for key, value in arguments.items()}
    params |= {f"aux:{key}": value for key, value in states.items()}
    serde.export_model(symbol, params, format="onnx", input_shapes=shapes, path=path)


def transformer(kind: str, path: Path) -> None:
    """Write a small net of transformers, with random weights of the size of trained ones."""
    import torch
    from support.checkpoints import transformers as load

    package = load()
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    eager = {"attn_implementation": "eager"}
    tokens, mask = torch.randint(0, 99, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
    mask[1, 8:] = 0
    if kind == "bert":
        config = package.BertConfig(vocab_size=100, intermediate_size=128, **sizes, **eager)
        net, given = package.BertModel(config), {"input_ids": tokens, "attention_mask": mask}
    elif kind == "gpt2":
        config = package.GPT2Config(
            vocab_size=100, n_embd=64, n_layer=3, n_head=4, use_cache=False, **eager
        )
        net = package.GPT2LMHeadModel(config)
        given = {"input_ids": tokens, "attention_mask": mask}
    elif kind == "vit":
        config = package.ViTConfig(image_size=32, patch_size=8, intermediate_size=128, **sizes)
        net = package.ViTForImageClassification(config)
        given = {"pixel_values": torch.randn(2, 3, 32, 32)}
    else:
        config = package.T5Config(
            vocab_size=100,
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=3,
            num_heads=4,
            use_cache=False,
        )
        net = package.T5ForConditionalGeneration(config)
        given = {"input_ids": tokens, "attention_mask": mask, "decoder_input_ids": tokens[:, :6]}
    with torch.no_grad():
        for name, each in net.named_parameters():
            if each.ndim > 1:
                each.normal_(0, 1 if "embed" in name else 1.5 / each.shape[-1] ** 0.5)

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net.eval()

        def forward(self, *values: Any) -> Any:
            return self.net(**dict(zip(given, values, strict=True)), return_dict=False)[0]

    # The other tool makes models of LayerNormalization, which opset 17 has, that do not load.
    examples = tuple(given.values())
    serde.export_model(First(), format="onnx", path=path, example_inputs=examples, opset=16)


def _weights(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: RNG.normal(0, shape[0] ** -0.5, shape) for name, shape in shapes.items()}


def overflowing(path: Path) -> None:
    """Write layers of which one leaves the range of float16 and comes back."""
    weights = _weights(w0=(WIDTH, WIDTH), w1=(WIDTH, WIDTH), w2=(WIDTH, 8))
    nodes = [
        ("MatMul", "x w0", "a"), ("Mul", "a far", "b"), ("Mul", "b b", "c"), ("Sqrt", "c", "d"),
        ("Div", "d far", "e"), ("MatMul", "e w1", "f"), ("Tanh", "f", "g"), ("MatMul", "g w2", "y"),
    ]  # fmt: skip
    _save(path, nodes, {**weights, "far": np.array(900.0)}, (6, WIDTH))


def masked(path: Path) -> None:
    """Write an attention whose causal mask has the least number of float32."""
    weights = _weights(q=(WIDTH, WIDTH), k=(WIDTH, WIDTH), v=(WIDTH, WIDTH))
    hidden = np.where(np.tri(6), 0, np.finfo(np.float32).min)
    nodes = [
        ("MatMul", "x q", "a"), ("MatMul", "x k", "b"), ("MatMul", "x v", "c"),
        ("Transpose", "b", "d"), ("MatMul", "a d", "e"), ("Add", "e mask", "f"),
        ("Softmax", "f", "g"), ("MatMul", "g c", "y"),
    ]  # fmt: skip
    _save(path, nodes, {**weights, "mask": hidden}, (6, WIDTH))


def normed(path: Path) -> None:
    """Write a norm of values around 1000, of which the squares leave the range of float16."""
    weights = _weights(w0=(WIDTH, WIDTH), w1=(WIDTH, WIDTH), w2=(WIDTH, 8))
    numbers = {"far": np.array(1000.0), "two": np.array(2.0), "small": np.array(1e-5)}
    nodes = [
        ("MatMul", "x w0", "a"), ("Add", "a far", "b"), ("Pow", "b two", "c"),
        ("ReduceMean", "c", "d"), ("Add", "d small", "e"), ("Sqrt", "e", "f"), ("Div", "b f", "g"),
        ("ReduceMean", "g", "m"), ("Sub", "g m", "h"), ("Mul", "h far", "i"),
        ("MatMul", "i w1", "j"), ("Sigmoid", "j", "k"), ("MatMul", "k w2", "y"),
    ]  # fmt: skip
    _save(path, nodes, {**weights, **numbers}, (6, WIDTH))


def _save(
    path: Path, nodes: list[tuple[str, str, str]], values: Feed, shape: tuple[int, int]
) -> None:
    more = {"ReduceMean": {"axes": [-1]}}
    made = [
        helper.make_node(op, given.split(), [out], f"{op.lower()}_{out}", **more.get(op, {}))
        for op, given, out in nodes
    ]
    graph = helper.make_graph(
        made,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(each.astype(np.float32), name) for name, each in values.items()],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


NETS: Mapping[str, Callable[[Path], None]] = {
    **{
        name: lambda path, name=name: zoo_net(name, path)
        for name in ("resnet18_v1", "mobilenet0_25", "squeezenet1_1")
    },
    **{
        kind: lambda path, kind=kind: transformer(kind, path)
        for kind in ("bert", "gpt2", "vit", "t5")
    },
    "overflow": overflowing,
    "mask": masked,
    "norm": normed,
}


def run(model: str | bytes, feed: Feed) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feed))


def run_strictly(model: bytes, feed: Feed) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(onnx.load_from_string(model)).run(None, dict(feed))


def cosine(wanted: list[np.ndarray], found: list[np.ndarray]) -> float:
    """Return the least cosine of an output; -1 where one is not finite."""
    least = 1.0
    for left, right in zip(wanted, found, strict=True):
        a, b = (each.astype(np.float64).ravel() for each in (left, right))
        if not np.isfinite(b[np.isfinite(a)]).all():
            return -1.0
        least = min(least, float(a @ b / np.sqrt((a @ a) * (b @ b))))
    return least


def draw(path: Path, count: int) -> list[Feed]:
    feeds = []
    for _ in range(count):
        feed = {}
        for each in onnxruntime.InferenceSession(path).get_inputs():
            shape = [2 if isinstance(dim, str) else dim for dim in each.shape]
            if each.type != "tensor(int64)":
                feed[each.name] = RNG.normal(0, 1, shape).astype(np.float32)
            elif len(feed) == 1:  # The mask behind the tokens hides the end of the second text.
                feed[each.name] = np.ones(shape, np.int64)
                feed[each.name][1:, 8:] = 0
            else:
                feed[each.name] = RNG.integers(1, 99, shape)
        feeds.append(feed)
    return feeds


def by_serde(path: Path, feeds: list[Feed], least: float) -> tuple[bytes, int, int]:
    target = path.with_name("serde.onnx")
    report = serde.convert(
        path, target, float16="auto", min_cosine=least, check_data=feeds, keep_io_types=True
    )
    names = [each for each in report.facts["op_block_list"].split(",") if each]
    return target.read_bytes(), len(names), report.facts["float16_runs"]


def by_common(path: Path, feeds: list[Feed], least: float) -> tuple[bytes, int, int]:
    from onnxconverter_common import auto_mixed_precision, float16

    blocked: list[int] = []
    convert = float16.convert_float_to_float16

    def counted(*args: Any, node_block_list: list[str], **options: Any) -> Any:
        blocked.append(len(node_block_list))
        return convert(*args, node_block_list=node_block_list, **options)

    float16.convert_float_to_float16 = counted
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            made = auto_mixed_precision.auto_convert_mixed_precision(
                onnx.load(path), dict(feeds[0]), lambda a, b: cosine(a, b) >= least,
                keep_io_types=True,
            )  # fmt: skip
    finally:
        float16.convert_float_to_float16 = convert
    return made.SerializeToString(), blocked[-1], len(blocked)


def wide_nodes(data: bytes) -> int:
    """Return how many operators read float32, casts left out."""
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(data))
    graph = model.graph
    kinds = {each.name: each.data_type for each in graph.initializer}
    for each in (*graph.input, *graph.output, *graph.value_info):
        kinds[each.name] = each.type.tensor_type.elem_type
    return sum(
        any(kinds.get(name) == TensorProto.FLOAT for name in node.input)
        for node in graph.node
        if node.op_type != "Cast"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    parser.add_argument("--min-cosine", type=float, default=0.999)
    parser.add_argument("--samples", type=int, default=3)
    given = parser.parse_args()
    names = {"bytes": 10, "cosine": 9, "strict": 9, "float32": 7, "list": 4, "runs": 4, "s": 6}
    columns = " ".join(f"{name:>{width}}" for name, width in names.items())
    print(f"{'net':14} {'float32':>10} | {columns} | {columns}")
    for name in given.nets:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            NETS[name](path)
            feeds = draw(path, given.samples)
            wanted = [run(str(path), feed) for feed in feeds]
            line = f"{name:14} {path.stat().st_size:10,}"
            for way in (by_serde, by_common):
                begun = time.perf_counter()
                try:
                    data, listed, runs = way(path, feeds, given.min_cosine)
                    taken = time.perf_counter() - begun
                    pairs = zip(wanted, feeds, strict=True)
                    found = min(cosine(each, run(data, feed)) for each, feed in pairs)
                    strict = cosine(wanted[0], run_strictly(data, feeds[0]))
                except Exception as error:
                    line += f" | {type(error).__name__}: {str(error).splitlines()[0]:.36}"
                    continue
                line += f" | {len(data):10,} {found:9.6f} {strict:9.6f} {wide_nodes(data):7}"
                line += f" {listed:4} {runs:4} {taken:6.1f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
