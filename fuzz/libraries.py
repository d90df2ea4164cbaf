"""Models that the libraries of the formats write themselves."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fuzz.case import Case
from fuzz.mutators.archives import write_tar

__all__ = ["LIBRARIES"]

SHAPES: Final[Mapping[str, Any]] = {"input_shapes": {"data": [2, 3, 8, 8]}}
"""Options of readers: the shape of the input that MXNet's files do not tell."""

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden"


def _onnx() -> Iterator[Case]:
    """The models of onnx's backend suite, a few of them in each form that onnx writes."""
    import onnx
    from google.protobuf import json_format, text_format
    from support.onnx_suite import load_cases

    for place, case in enumerate(load_cases()):
        model = case.model()
        name = f"{case.kind}-{case.name}"
        yield Case.of("onnx", name, {"m.onnx": model.SerializeToString()})
        if place % 40 == 0:
            text = onnx.printer.to_text(model)
            yield Case.of("onnx", f"syntax-{name}", {"m.onnxtxt": text.encode()})
        if place % 40 == 10:
            text = text_format.MessageToString(model)
            yield Case.of("onnx", f"text-{name}", {"m.textproto": text.encode()})
        if place % 40 == 20:
            text = json_format.MessageToJson(model)
            yield Case.of("onnx", f"json-{name}", {"m.onnxjson": text.encode()})
    yield from _external()


def _external() -> Iterator[Case]:
    """Models whose weights are in files beside them, and sparse ones."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    places = numpy_helper.from_array(np.array([1, 5], np.int64))
    values = numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "s")
    sparse = helper.make_sparse_tensor(values, places, [3, 4])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    for kept in ({}, {"sparse_initializer": [sparse]}):
        second = "s" if kept else "w"
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("MatMul", ["x", second], ["q"]),
            helper.make_node("Add", ["p", "q"], ["y"]),
        ]
        graph = helper.make_graph(
            nodes, "g", [x], [y], [numpy_helper.from_array(weight, "w")], **kept
        )
        with tempfile.TemporaryDirectory() as folder:
            onnx.save_model(
                helper.make_model(graph),
                f"{folder}/m.onnx",
                save_as_external_data=True,
                location="m.onnx.data",
                size_threshold=0,
            )
            paths = [Path(folder, "m.onnx"), Path(folder, "m.onnx.data")]
            yield Case.of_paths("onnx", f"external-{second}", paths)


def _torch() -> Iterator[Case]:
    """Programs that ``torch.export`` wrote; where PyTorch is installed, more, and TorchScript."""
    for path in sorted((GOLDEN / "torch").glob("*.pt2")):
        yield Case.of("torch", path.stem, {"m.pt2": path.read_bytes()})
    if importlib.util.find_spec("torch") is None:
        return
    import torch
    from support.torch_scripted import PROGRAMS

    torch.manual_seed(0)
    for name, program in PROGRAMS.items():
        net = program().eval()
        with contextlib.suppress(Exception):  # Some are there because PyTorch refuses them.
            made = io.BytesIO()
            torch.jit.save(torch.jit.script(net), made)
            yield Case.of(
                "torch", f"script-{name}", {"m.pt": made.getvalue()}, input_shapes={"x": [4, 3]}
            )
    for name, module in _modules(torch).items():
        made = io.BytesIO()
        torch.export.save(torch.export.export(module.eval(), (torch.randn(2, 3, 8, 8),)), made)
        yield Case.of("torch", f"export-{name}", {"m.pt2": made.getvalue()})
        made = io.BytesIO()
        torch.jit.save(torch.jit.trace(module.eval(), torch.randn(2, 3, 8, 8)), made)
        yield Case.of(
            "torch",
            f"traced-{name}",
            {"m.pt": made.getvalue()},
            input_shapes={"input": [2, 3, 8, 8]},
        )


def _tflite() -> Iterator[Case]:
    """Models of one operator, laid out by the flatbuffers library."""
    from support.tflite_cases import CASES

    for name, data in CASES.items():
        yield Case.of("tflite", f"operator-{name}", {"m.tflite": data})


def _modules(torch: Any) -> Mapping[str, Any]:
    """Small modules of images of 3 channels and 8 x 8 pixels."""
    nn = torch.nn
    return {
        "conv": nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        "deconv": nn.ConvTranspose2d(3, 2, 3, stride=2),
        "pools": nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12, 5)),
        "norms": nn.Sequential(nn.GroupNorm(1, 3), nn.LayerNorm(8), nn.InstanceNorm2d(3)),
        "resize": nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelUnshuffle(2)),
        "acts": nn.Sequential(nn.GELU(), nn.SiLU(), nn.Softmax(1), nn.Hardswish(), nn.PReLU(3)),
        "adaptive": nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(1), nn.LogSoftmax(-1)),
        "pads": nn.Sequential(nn.ReflectionPad2d(1), nn.ZeroPad2d((1, 2, 0, 1)), nn.Unfold(3)),
    }


def _coreml() -> Iterator[Case]:
    """Models that coremltools wrote, of five releases."""
    for path in sorted((GOLDEN / "coreml").glob("*.zip")):
        models: dict[str, dict[str, bytes]] = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    models.setdefault(name.partition("/")[0], {})[name] = archive.read(name)
        for name, files in models.items():
            if name.endswith((".mlmodel", ".mlpackage")):
                yield Case.of("coreml", f"{path.stem}-{name}", files)


def _mxnet() -> Iterator[Case]:
    """Symbols that older releases of MXNet wrote, and nets that the installed one does."""
    for path in sorted((GOLDEN / "compat").glob("*-symbol.json")):
        yield Case.of("mxnet", path.stem, {"m-symbol.json": path.read_bytes()}, **SHAPES)
    from serde.compat import import_mxnet

    mx = import_mxnet()
    for name, net in _symbols(mx).items():
        shapes = net.infer_shape(data=(2, 3, 8, 8))
        named = dict(zip(net.list_arguments(), shapes[0], strict=True))
        arrays = {f"arg:{k}": mx.nd.ones(shape) for k, shape in named.items() if k != "data"}
        states = zip(net.list_auxiliary_states(), shapes[2], strict=True)
        arrays |= {f"aux:{k}": mx.nd.ones(shape) for k, shape in states}
        if name == "fc":
            arrays["arg:fc_weight"] = arrays["arg:fc_weight"].tostype("row_sparse")
        with tempfile.TemporaryDirectory() as folder:
            net.save(f"{folder}/m-symbol.json")
            mx.nd.waitall()  # Else a sparse array may be written before its rows are counted.
            mx.nd.save(f"{folder}/m-0000.params", arrays)
            paths = [Path(folder, "m-symbol.json"), Path(folder, "m-0000.params")]
            case = Case.of_paths("mxnet", f"net-{name}", paths, **SHAPES)
        yield case
        members = list(case.files.items())
        yield Case.of("mxnet", f"tar-{name}", {"m.tar": write_tar(members, b"")}, **SHAPES)
        yield Case.of("mxnet", f"tgz-{name}", {"m.tgz": write_tar(members, b"\x1f\x8b")}, **SHAPES)
        folder_of = {f"m/{each}": content for each, content in members}
        yield Case.of("mxnet", f"folder-{name}", folder_of, **SHAPES)
    yield from _malformed("mxnet")
    yield _layouts()


def _layouts() -> Case:
    """Arrays of every layout and storage, and a symbol that takes each."""
    from formats.test_malformed import mxnet_params

    names = ["data", "w", *(f"state{number}" for number in range(1, 10))]
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names]
    nodes += [
        {"op": "_copy", "name": f"out{place}", "inputs": [[place, 0, 0]]}
        for place in range(len(names))
    ]
    graph = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names) + place, 0, 0] for place in range(len(names))],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    files = {"m-symbol.json": json.dumps(graph).encode(), "m-0000.params": mxnet_params()}
    return Case.of("mxnet", "layouts", files, **SHAPES)


def _symbols(mx: Any) -> Mapping[str, Any]:
    """Small nets of images of 3 channels and 8 x 8 pixels."""
    sym = mx.sym
    x = sym.var("data")
    conv = sym.Convolution(x, kernel=(3, 3), num_filter=4, pad=(1, 1), name="c")
    norm = sym.BatchNorm(conv, name="bn", fix_gamma=False)
    flat = sym.Flatten(sym.Pooling(norm, kernel=(2, 2), stride=(2, 2), pool_type="avg"))
    layer = sym.FullyConnected(sym.Activation(flat, act_type="relu"), num_hidden=5, name="fc")
    row = sym.Reshape(x, shape=(2, 3, 64))
    parts = sym.SliceChannel(x, num_outputs=3, axis=1)
    anchors = sym.contrib.MultiBoxPrior(x, sizes=(0.5, 0.25), ratios=(1, 2))
    step = sym.contrib.foreach(lambda a, s: (a + s, a * s), row, sym.zeros((3, 64)))
    return {
        "fc": sym.SoftmaxOutput(layer, name="softmax"),
        "deconv": sym.Deconvolution(x, kernel=(4, 4), stride=(2, 2), num_filter=2, pad=(1, 1)),
        "rnn": sym.RNN(
            sym.transpose(row, (1, 0, 2)), sym.var("p"), sym.zeros((1, 2, 4)), sym.zeros((1, 2, 4)),
            state_size=4, num_layers=1, mode="lstm",
        ),
        "parts": sym.Concat(*parts, dim=2),
        "anchors": sym.Group([anchors, sym.ones_like(x)]),
        "loop": sym.Group([step[0], step[1]]),
        "takes": sym.take(sym.var("table", shape=(7, 2)), sym.argmax(x, axis=1)),
        "ordered": sym.topk(sym.sort(x, axis=3), k=2, ret_typ="both")[1],
        "slices": sym.slice_axis(sym.Pad(x, mode="reflect", pad_width=(0, 0, 0, 0, 1, 1, 2, 2)),
                                 axis=2, begin=1, end=5),
        "spaces": sym.broadcast_mul(x, sym.reshape(sym.arange(0, 8), (1, 1, 1, 8))),
        "upsampled": sym.UpSampling(x, scale=2, sample_type="nearest"),
        "regions": sym.ROIPooling(x, sym.var("rois", shape=(2, 5)), pooled_size=(2, 2),
                                  spatial_scale=0.5),
        "hot": sym.one_hot(sym.argmin(x, axis=1), depth=4),
        "embedded": sym.Embedding(sym.sum(x, axis=1), input_dim=9, output_dim=2, name="e"),
        "products": sym.batch_dot(row, row, transpose_b=True),
        "normal": sym.L2Normalization(sym.LRN(sym.InstanceNorm(x, name="i"), nsize=3)),
    }  # fmt: skip


def _malformed(format: str) -> Iterator[Case]:
    """Files of every layout, of which tests damage each byte."""
    from formats.test_malformed import CASES

    for each in CASES:
        case = each.values[0] if hasattr(each, "values") else each
        if format in case.read.__name__ or format in case.make.__name__:
            name = case.name if case.name.startswith("m") else f"m{case.name}"
            yield Case.of(format, f"layout-{case.make.__name__}", {name: case.make()}, **SHAPES)


def _nnef() -> Iterator[Case]:
    """Graphs of one fragment each, with tensors that Khronos' package writes."""
    from support.nnef_grid import CASES

    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "m_nnef")
            case.write(path)
            yield Case.of_paths("nnef", f"fragment-{name}", [path])


def _relay() -> Iterator[Case]:
    """Programs that TVM 0.18 wrote."""
    programs = json.loads((GOLDEN / "tvm" / "relay_golden.json").read_text())
    texts = [(f"tvm{name}", text) for name, text in _texts(programs, "")]
    texts += _data_types()
    for name, text in texts:
        yield Case.of("relay", name, {"m.relay": text.encode()})
    for name, text in _graphs(texts[::3]):
        yield Case.of("relay", f"json-{name}", {"m.json": text.encode()})
    yield from _malformed("relay")


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{name}-{key}"[:80])
    elif isinstance(value, str) and ("fn (" in value or "def @" in value):
        yield name, value


def _data_types() -> Iterator[tuple[str, str]]:
    """Texts with data types, matches, references and type parameters."""
    from formats.test_relay_data import CASES, program
    from relay.test_data_text import HEADER, TEXTS

    for number, text in enumerate(TEXTS):
        yield f"text-{number}", HEADER + text
    for name, (text, _) in CASES.items():
        yield f"data-{name}", program(text).astext()


def _graphs(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The JSON of programs, as TVM lays it out."""
    from formats.test_relay_data import list_graph
    from formats.test_relay_format import conv_graph
    from support.tvm_layout import module_json

    import serde.relay as relay
    from serde.errors import SerdeError

    yield "list", json.dumps(list_graph())
    yield "conv", json.dumps(conv_graph())
    yield "conv-axis", json.dumps(conv_graph(axis_object=True))
    for name, text in texts:
        with contextlib.suppress(SerdeError, AssertionError, AttributeError):
            yield name, module_json(relay.fromtext(text))


LIBRARIES: Final[Mapping[str, Callable[[], Iterator[Case]]]] = {
    "coreml": _coreml,
    "mxnet": _mxnet,
    "nnef": _nnef,
    "onnx": _onnx,
    "relay": _relay,
    "tflite": _tflite,
    "torch": _torch,
}
"""What makes the seeds of a format that serde has no part in."""
