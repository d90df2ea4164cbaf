"""Whole nets of gluoncv and gluonnlp with drawn weights, and what is compared of them.

What selects (non-maximum suppression, sorting) flips where two candidates are nearly equal,
and everything behind it with it; MXNet does not agree with itself there. A net that selects
is therefore compared in two ways: element by element with each selection replaced by an
input, fed with what MXNet selected, what the selection reads being outputs; and as a whole,
by the share of MXNet's detections that are found again.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from calibrate import calibrate, images
from support import gluoncv_nets, gluonnlp_nets
from support.accuracy import Net
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.relay.ir.compare import first_difference

SELECTIONS = {"_contrib_box_nms", "topk", "argsort", "_contrib_Proposal", "floor"}
"""Operators whose results jump where their inputs change a little; a pyramid's level is a floor."""

POOLS_OF_REGIONS = {"_contrib_ROIAlign", "ROIPooling"}
LAST_WITH_POOLS_OF_REGIONS = 21
"""ONNX Runtime has no kernels of the RoiAlign and MaxRoiPool that version 22 brought."""

_BOXES = "box_nms takes some 25 nodes and box_decode 9, for which ONNX has no operator"
_REGIONS = f"{_BOXES}; ROIAlign takes 9, since regions of no image are zero"
_DEFORMED = "before version 19 ONNX has no deformable convolution, which takes some 20 nodes"

MORE_NODES = {
    **{
        name: "tokens go through MatMul and Add, indices are clipped, a masked softmax takes two"
        for name in gluonnlp_nets.RECIPES
        if "bert" in name
    },
    **{name: _BOXES for name in gluoncv_nets.RECIPES if "vgg16_atrous" in name},
    **{name: _REGIONS for name in gluoncv_nets.RECIPES if name.startswith("mask_rcnn")},
    **{name: _DEFORMED for name in gluoncv_nets.RECIPES if "dcnv2" in name},
}
"""Nets that take more nodes in ONNX than in MXNet, and why."""

LEAST_FOUND = 0.95
"""Share of MXNet's detections that have to be found again."""

LEAST_CHANGE_OF_BOXES = 0.01
"""Change of a detector's outputs by another image; boxes lie where their anchors do."""

Feed = Callable[[int], dict[str, np.ndarray]]

NAMES: tuple[str, ...] = (*gluoncv_nets.RECIPES, *gluonnlp_nets.RECIPES)


@dataclass(frozen=True)
class FedNet(Net):
    """A net whose inputs are not one image.

    Attributes:
        feed: Gives the inputs of a seed.
    """

    feed: Feed = dict  # type: ignore[assignment]

    @functools.cached_property
    def reference(self) -> Any:
        """The symbol, with zeros where MXNet leaves what its memory held before."""
        return _with_empty_regions(import_mxnet(), self.symbol)

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Values of all inputs, in the order of the symbol."""
        values = self.feed(seed)
        return {name: values[name] for name in self.symbol.list_inputs() if name in values}


def package_of(name: str) -> str:
    """The package that has a net's definition."""
    return "gluonnlp" if name in gluonnlp_nets.RECIPES else "gluoncv"


def zoo_net(name: str, seed: int = 1) -> FedNet:
    """A net of the zoo with calibrated parameters."""
    import_mxnet()  # before gluoncv and gluonnlp, whose own import of it fails
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages are of 2022 and use what is deprecated now
        recipe = gluoncv_nets.RECIPES.get(name)
        if recipe is None:
            block, feed = gluonnlp_nets.RECIPES[name]()
        else:
            block, feed = gluoncv_nets.build(name), _images_of(recipe.shapes)
        shapes = {each: values.shape for each, values in feed(seed).items()}
        batch, deviations = (recipe.batch, recipe.deviations) if recipe else (1, {})
        symbol, args, aux = calibrate(block, shapes, seed, batch, deviations)
    _calm(args)
    if any(each.endswith("query_weight") for each in args):
        _centre(args)
    return FedNet(symbol, args, aux, (), feed=feed)


def _calm(args: Mapping[str, Any]) -> None:
    """Scale recurrent weights down where chance would make a net that enlarges every rounding."""
    for name, value in args.items():
        if name.endswith(("i2h_weight", "h2h_weight", "h2r_weight")):
            value *= _CALM / float(value.asnumpy().std() * value.shape[1] ** 0.5)


def _centre(args: Mapping[str, Any]) -> None:
    """Make a net of attention look at more than one token, and tokens stay different.

    Biases and betas lie around one for the sake of ReLUs; what all tokens have in common
    would grow with each layer. Large queries and keys let attention jump between tokens.
    """
    for name, value in args.items():
        if name.endswith(("bias", "beta")):
            value -= 1
        elif name.endswith(("query_weight", "key_weight")):
            value *= _ATTENTIVE


_CALM = 1.5
"""Gain of a recurrent layer's matrices; a larger one saturates gates and amplifies rounding."""

_ATTENTIVE = 0.15
"""Factor of the matrices that make queries and keys."""


def _images_of(shapes: Mapping[str, tuple[int, ...]]) -> Feed:
    def feed(seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {name: images(rng, shape) for name, shape in shapes.items()}

    return feed


def newest_opset(symbol: Any) -> int:
    """The newest operator set that ONNX Runtime runs a net at."""
    pools = any(node["op"] in POOLS_OF_REGIONS for node in json.loads(symbol.tojson())["nodes"])
    return LAST_WITH_POOLS_OF_REGIONS if pools else newest_runtime_opset()


def selections(symbol: Any) -> list[str]:
    """Names of the nodes that select."""
    return [n["name"] for n in json.loads(symbol.tojson())["nodes"] if n["op"] in SELECTIONS]


def around_selections(mx: Any, net: FedNet) -> FedNet:
    """The same net with each selection replaced by inputs, and what selections read as outputs."""
    symbol, selected = _without_selections(mx, net.symbol)
    internals = net.reference.get_internals()
    values = mx.sym.Group([internals[name] for name in selected])
    params = {**net.args, **net.aux}

    def feed(seed: int) -> dict[str, np.ndarray]:
        given = net.inputs(seed)
        return {**given, **dict(zip(selected, run_mxnet(values, params, given), strict=True))}

    kept = set(symbol.list_inputs())
    args = {name: value for name, value in net.args.items() if name in kept}
    aux = {name: value for name, value in net.aux.items() if name in kept}
    return replace(net, symbol=symbol, args=args, aux=aux, feed=feed)


def _with_empty_regions(mx: Any, symbol: Any) -> Any:
    """A symbol in which regions of no image are zero behind each ROIAlign.

    Those are the regions of the other levels of a pyramid. MXNet 1.9.1 means to make them zero,
    as it does on GPUs. On CPUs it leaves them as its memory was, and makes as many elements at
    the beginning of the result zero, which belong to the first regions.
    """
    graph = json.loads(symbol.tojson())
    nodes: list[dict[str, Any]] = []
    place: dict[int, int] = {}

    def add(op: str, name: str, *inputs: int, **attrs: str) -> int:
        entries = [[each, 0, 0] for each in inputs]
        nodes.append({"op": op, "name": name, "attrs": attrs, "inputs": entries})
        return len(nodes) - 1

    for at, node in enumerate(graph["nodes"]):
        read = [[place[source], *rest] for source, *rest in node["inputs"]]
        if node["op"] != "_contrib_ROIAlign":
            place[at] = len(nodes)
            nodes.append({**node, "inputs": read})
            continue
        name, rois = node["name"], read[1][0]
        image = add("slice_axis", f"{name}_image", rois, axis="1", begin="0", end="1")
        boxes = add("slice_axis", f"{name}_boxes", rois, axis="1", begin="1", end="5")
        first = add("_maximum_scalar", f"{name}_first", image, scalar="0")
        rois = add("Concat", f"{name}_regions", first, boxes, dim="1", num_args="2")
        pooled = len(nodes)
        nodes.append({**node, "inputs": [read[0], [rois, 0, 0]]})
        image = add("Reshape", f"{name}_images", image, shape="(-1,)")
        real = add("_greater_equal_scalar", f"{name}_real", image, scalar="0")
        nothing = add("zeros_like", f"{name}_nothing", pooled)
        place[at] = add("where", f"{name}_whole", real, pooled, nothing)
    heads = [[place[source], *rest] for source, *rest in graph["heads"]]
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    new = {"nodes": nodes, "arg_nodes": arguments, "heads": heads, "attrs": graph["attrs"]}
    return mx.sym.load_json(json.dumps(new))


def _without_selections(mx: Any, symbol: Any) -> tuple[Any, list[str]]:
    """The symbol and the names of its new inputs: those of the results that they replace."""
    graph = json.loads(symbol.tojson())
    old = graph["nodes"]
    outputs = set(symbol.get_internals().list_outputs())
    nodes: list[dict[str, Any]] = []
    place: dict[tuple[int, int], list[int]] = {}
    selected: dict[tuple[int, int], str] = {}
    used = {(e[0], e[1]) for node in old for e in node["inputs"]}
    used |= {(e[0], e[1]) for e in graph["heads"]}
    heads = []
    for at, node in enumerate(old):
        read = [place[source, output] for source, output, *_ in node["inputs"]]
        if node["op"] not in SELECTIONS:
            place.update({(at, i): [len(nodes), i, 0] for i in _results(at, used)})
            nodes.append({**node, "inputs": read})
            continue
        heads += read
        for i in _results(at, used):
            name = next(
                n for n in (f"{node['name']}_output{i}", f"{node['name']}_output") if n in outputs
            )
            selected[at, i] = name
            place[at, i] = [len(nodes), 0, 0]
            nodes.append({"op": "null", "name": name, "inputs": []})
    heads += [place[source, output] for source, output, *_ in graph["heads"]]
    heads = [entry for entry in heads if nodes[entry[0]]["op"] != "null"]
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    unique = [list(entry) for entry in dict.fromkeys(map(tuple, heads))]
    new = {"nodes": nodes, "arg_nodes": arguments, "heads": unique, "attrs": graph["attrs"]}
    result = mx.sym.load_json(json.dumps(new))
    reached = set(result.list_inputs())
    return result, [name for name in selected.values() if name in reached]


def _results(node: int, used: set[tuple[int, int]]) -> list[int]:
    return sorted(output for at, output in used if at == node) or [0]


def found_again(expected: list[np.ndarray], found: list[np.ndarray]) -> float:
    """The share of detections in `expected` that are in `found`.

    Args:
        expected: Class ids, scores and boxes, (1, N, 1) or (1, N) and (1, N, 4), then
            anything; a negative id or score is no detection.
        found: Likewise.
    """
    theirs, ours = _detections(expected), _detections(found)
    size = max(np.ptp(theirs[:, 2:], axis=0).max(initial=1.0), 1.0)
    again = 0
    for each in np.unique(theirs[:, 0]):
        wanted, given = (side[side[:, 0] == each, 1:] for side in (theirs, ours))
        for row in wanted:
            apart = np.abs(given - row)
            again += bool(((apart[:, 0] < 1e-4) & (apart[:, 1:].max(-1) < 1e-3 * size)).any())
    return again / len(theirs) if len(theirs) else 1.0


def _detections(outputs: list[np.ndarray]) -> np.ndarray:
    """Rows of class id, score and box."""
    ids, scores = (np.ravel(each) for each in outputs[:2])
    rows = np.column_stack([ids, scores, outputs[2].reshape(-1, 4)])
    return rows[(ids >= 0) & (scores > 0)]


def layers_of(symbol: Any) -> int:
    """Nodes of a symbol, variables left out."""
    return len(symbol.get_internals()) - len(symbol.list_inputs())


def text_fault(paths: Sequence[Path], inputs: Mapping[str, np.ndarray]) -> str:
    """How the module of a checkpoint differs from what its own text is parsed to; empty if not."""
    shapes = {name: values.shape for name, values in inputs.items()}
    mod = serde.to_relay(list(paths), input_shapes=shapes).mod
    difference = first_difference(relay.fromtext(mod.astext()), mod)
    return "" if difference is None else f"text: {difference}"
