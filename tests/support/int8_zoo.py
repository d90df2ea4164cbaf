"""The int8 nets whose symbols gluoncv ships, with random weights that fill their ranges."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from serde.compat import import_mxnet

SHAPES: dict[str, tuple[int, ...]] = {
    "mobilenet1.0_int8": (1, 3, 224, 224),
    "resnet50_v1_int8": (1, 3, 224, 224),
    "ssd_300_vgg16_atrous_voc_int8": (1, 3, 300, 300),
    "ssd_512_mobilenet1.0_voc_int8": (1, 3, 512, 512),
    "ssd_512_resnet50_v1_voc_int8": (1, 3, 512, 512),
    "ssd_512_vgg16_atrous_voc_int8": (1, 3, 512, 512),
    **{
        f"{net}_resnet101_{data}_int8": (1, 3, 480, 480)
        for net in ("fcn", "psp", "deeplab")
        for data in ("voc", "coco")
    },
    **{
        f"simple_pose_resnet{net}_int8": (1, 3, 256, 192)
        for net in ("18_v1b", "50_v1b", "50_v1d", "101_v1b", "101_v1d")
    },
    "vgg16_ucf101_int8": (3, 3, 224, 224),
    "inceptionv3_ucf101_int8": (3, 3, 299, 299),
    "resnet18_v1b_kinetics400_int8": (7, 3, 224, 224),
    "resnet50_v1b_kinetics400_int8": (7, 3, 224, 224),
    "inceptionv3_kinetics400_int8": (3, 3, 299, 299),
}
"""Every net and the shape of its only input, ``data``; a video is a batch of its images."""

LAYERS = (
    "Convolution",
    "Deconvolution",
    "FullyConnected",
    "_sg_mkldnn_conv",
    "_sg_mkldnn_fully_connected",
)


def symbol_text(name: str) -> str:
    """The JSON of a net: a file of its own, or packed in the module that makes the nets.

    gluoncv itself is not imported, as it asks for more than these symbols.
    """
    spec = importlib.util.find_spec("gluoncv")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model_zoo" / "quantized"
    path = folder / f"{name}-symbol.json"
    if path.exists():
        return path.read_text()
    for node in ast.parse((folder / "quantized.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_compressed_int8_json":
            return zlib.decompress(base64.b64decode(ast.literal_eval(node.value)[name])).decode()
    raise LookupError(name)


def drawn(symbol: Any, shape: tuple[int, ...]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Weights with which the layers fill a third of their calibrated ranges, and an image."""
    rng = np.random.default_rng(1)
    nodes = json.loads(symbol.tojson())["nodes"]
    reach = _reaches(nodes)
    arguments, _, states = symbol.infer_shape(data=shape)
    shapes = dict(zip(symbol.list_arguments(), arguments, strict=True))
    shapes |= dict(zip(symbol.list_auxiliary_states(), states, strict=True))
    values: dict[str, np.ndarray] = {}
    for place, node in enumerate(nodes):
        if node["op"] not in LAYERS:
            continue
        before = reach[node["inputs"][0][0]]
        after = reach[place] if "max_calib_range" in node.get("attrs", {}) else before
        name, *others = (nodes[entry[0]]["name"] for entry in node["inputs"][1:])
        depth = shapes[name][0] * 4 if node["op"] == "Deconvolution" else np.prod(shapes[name][1:])
        values[name] = rng.normal(0, after / before / np.sqrt(depth), shapes[name])
        for other in others:
            if other.endswith(("bias", "beta")):
                values[other] = rng.normal(0, after / 20, shapes[other])
    for name, each in shapes.items():
        if name not in values and name != "data":
            values[name] = _plain(rng, name, each)
    found = {name: value.astype(np.float32) for name, value in values.items()}
    return found, rng.normal(0, 0.7, shape).astype(np.float32)


def _reaches(nodes: list[dict[str, Any]]) -> list[float]:
    """The end of the range of what each node gives, of its input where it has none."""
    found: list[float] = []
    for node in nodes:
        attrs = node.get("attrs", {})
        if "max_calib_range" in attrs:
            found.append(max(abs(float(attrs[f"{end}_calib_range"])) for end in ("min", "max")))
        elif not node["inputs"]:
            found.append(1.0)
        elif node["op"] == "_contrib_quantized_concat":
            parts = node["inputs"][: int(attrs["num_args"])]
            found.append(max(found[part[0]] for part in parts))
        else:
            found.append(found[node["inputs"][0][0]])
    return found


def _plain(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name.endswith(("gamma", "var")):
        return rng.uniform(0.7, 1.3, shape)
    if "anchor" in name:
        return rng.uniform(0.1, 0.9, shape)
    if name.endswith("scale"):
        return np.full(shape, 20.0)
    return rng.normal(0, 0.05, shape)


def apart(symbol: Any) -> tuple[Any, list[str], list[str]]:
    """A graph in which each node reads variables in place of the first results of other nodes.

    Ranges, the further results, stay connected. So every layer is compared on the very numbers
    that MXNet has there.

    Returns:
        The graph with a head for each node; the names of the nodes; those of the nodes that
        others read, and with ``from_`` before them of the variables in their place.
    """
    graph = json.loads(symbol.tojson())
    nodes, kept, place, read = graph["nodes"], [], {}, {}
    for number, node in enumerate(nodes):
        entries = []
        for source, result, version in node["inputs"]:
            if nodes[source]["op"] == "null" or result:
                entries.append([place[source], result, version])
                continue
            if source not in read:
                read[source] = len(kept)
                name = f"from_{nodes[source]['name']}"
                kept.append({"op": "null", "name": name, "inputs": []})
            entries.append([read[source], 0, 0])
        node["inputs"] = entries
        place[number] = len(kept)
        kept.append(node)
    computed = [number for number, node in enumerate(nodes) if node["op"] != "null"]
    graph["nodes"] = kept
    graph["arg_nodes"] = [i for i, node in enumerate(kept) if node["op"] == "null"]
    graph["heads"] = [[place[number], 0, 0] for number in computed]
    del graph["node_row_ptr"]
    names = [[nodes[number]["name"] for number in numbers] for numbers in (computed, read)]
    return import_mxnet().sym.load_json(json.dumps(graph)), *names


def every_node(symbol: Any, names: list[str]) -> Any:
    """The graph with the first result of each node as a head."""
    inside = symbol.get_internals()
    outputs = set(inside.list_outputs())
    endings = ("_output", "_output0", "_mean")
    heads = [next(f"{name}{e}" for e in endings if f"{name}{e}" in outputs) for name in names]
    return import_mxnet().sym.Group([inside[head] for head in heads])
