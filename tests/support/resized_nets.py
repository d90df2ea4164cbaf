"""Small nets as ONNX text for any size of image, as exporters write them for one.

Each function gives the graph's results and nodes for a height and a width, and its weights. What
a net computes at another size is what ONNX Runtime gives for the text of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : 17]> m '
Weights = Mapping[str, Any]
Net = tuple[str, Weights]

DOWN = "Conv<pads = [1,1,1,1], strides = [2,2]>"
SAME = "Conv<pads = [1,1,1,1]>"
LINEAR = 'Resize<mode = "linear">'
K33, K11 = (3, 3, 3, 3), (12, 3, 1, 1)


def half(length: int) -> int:
    return -(-length // 2)


def build(text: str, weights: Weights) -> onnx.ModelProto:
    """Return a model of a text, with weights: arrays, or shapes of seeded ones."""
    proto = parser.parse_model(HEAD + text)
    rng = np.random.default_rng(3)
    for name, given in weights.items():
        made = rng.normal(size=given).astype(np.float32) if isinstance(given, tuple) else given
        proto.graph.initializer.append(numpy_helper.from_array(made, name))
    return proto


def image(h: int, w: int, net: Net) -> onnx.ModelProto:
    """Return a net of an image."""
    return build(f"(float[1,3,{h},{w}] x) => {net[0]}", net[1])


def unet(h: int, w: int) -> Net:
    return (
        f"""(float[1,4,{h},{w}] y) <int64[4] s = {{1,4,{h},{w}}}> {{
        a = {SAME}(x, k)
        b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a)
        c = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(b, , , s)
        d = Concat<axis = 1>(a, c)
        y = {SAME}(d, l)
    }}""",
        {"k": (4, 3, 3, 3), "l": (4, 8, 3, 3)},
    )


def pyramid(h: int, w: int) -> Net:
    p, q = half(h), half(w)
    return (
        f"""(float[1,3,{p},{q}] y) <int64[4] s = {{1,3,{p},{q}}}> {{
        a = {DOWN}(x, k)
        b = {DOWN}(a, k)
        c = {LINEAR}(b, , , s)
        y = Add(a, c)
    }}""",
        {"k": K33},
    )


def segmentation(h: int, w: int) -> Net:
    return (
        f"""(int64[1,{h},{w}] y) <int64[4] s = {{1,3,{h},{w}}}> {{
        a = {DOWN}(x, k)
        b = {DOWN}(a, k)
        c = {LINEAR}(b, , , s)
        y = ArgMax<axis = 1, keepdims = 0>(c)
    }}""",
        {"k": K33},
    )


def doubled(h: int, w: int) -> Net:
    p, q = 2 * half(h), 2 * half(w)
    return (
        f"""(float[1,3,{p},{q}] y) <int64[4] s = {{1,3,{p},{q}}}> {{
        a = {DOWN}(x, k)
        y = {LINEAR}(a, , , s)
    }}""",
        {"k": K33},
    )


def tripled(h: int, w: int) -> Net:
    p, q = 3 * half(h), 3 * half(w)
    return (
        f"""(float[1,3,{p},{q}] y) <int64[4] s = {{1,3,{p},{q}}}> {{
        a = {DOWN}(x, k)
        y = {LINEAR}(a, , , s)
    }}""",
        {"k": K33},
    )


def scaled(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{2 * h},{2 * w}] y) <float[4] s = {{1,1,2,2}}> {{
        a = Relu(x)
        y = {LINEAR}(a, , s)
    }}""",
        {},
    )


def cropped(h: int, w: int) -> Net:
    return (
        f"""(float[1,4,{h},{w}] y)
        <int64[2] z = {{0,0}}, int64[2] e = {{{h},{w}}}, int64[2] ax = {{2,3}}> {{
        a = ConvTranspose<kernel_shape = [3,3], strides = [2,2]>(x, k)
        b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a)
        c = Pad(b, p)
        d = Slice(c, z, e, ax)
        f = {SAME}(x, l)
        y = Add(d, f)
    }}""",
        {"k": (3, 4, 3, 3), "l": (4, 3, 3, 3), "p": np.int64([0, 0, 0, 0, 0, 0, 1, 1])},
    )


def head(h: int, w: int) -> Net:
    p, q = half(half(h)), half(half(w))
    return (
        f"""(float[1,{3 * p * q},4] y)
        <int64[5] s = {{1,3,4,{p},{q}}}, int64[3] t = {{1,{3 * p * q},4}}> {{
        a = {DOWN}(x, m)
        b = {DOWN}(a, m)
        c = Conv(b, k)
        d = Reshape(c, s)
        e = Transpose<perm = [0,1,3,4,2]>(d)
        y = Reshape(e, t)
    }}""",
        {"m": K33, "k": K11},
    )


def two_heads(h: int, w: int) -> Net:
    n, m = h * w, half(h) * half(w)
    return (
        f"""(float[1,{n + m},3] y) <int64[3] s = {{1,-1,3}}, int64[3] t = {{1,{m},3}}> {{
        a = {DOWN}(x, m)
        b = Transpose<perm = [0,2,3,1]>(x)
        c = Transpose<perm = [0,2,3,1]>(a)
        d = Reshape(b, s)
        e = Reshape(c, t)
        y = Concat<axis = 1>(d, e)
    }}""",
        {"m": K33},
    )


def blocks(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{2 * h},{2 * w}] y)
        <int64[6] s = {{1,3,2,2,{h},{w}}}, int64[4] t = {{1,3,{2 * h},{2 * w}}}> {{
        a = Conv(x, k)
        b = Reshape(a, s)
        c = Transpose<perm = [0,1,4,2,5,3]>(b)
        y = Reshape(c, t)
    }}""",
        {"k": K11},
    )


def attention(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{h},{w}] y)
        <int64[3] s = {{1,3,{h * w}}}, int64[4] t = {{1,3,{h},{w}}}> {{
        a = Reshape(x, s)
        b = Transpose<perm = [0,2,1]>(a)
        c = MatMul(b, a)
        d = Softmax<axis = -1>(c)
        e = MatMul(a, d)
        y = Reshape(e, t)
    }}""",
        {},
    )


def tokens(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{half(h)},{half(w)}] y)
        <int64[3] s = {{1,3,{h * w}}}, int64[4] t = {{1,{h},{w},3}}> {{
        a = Reshape(x, s)
        b = Transpose<perm = [0,2,1]>(a)
        c = Reshape(b, t)
        d = Transpose<perm = [0,3,1,2]>(c)
        y = {DOWN}(d, k)
    }}""",
        {"k": K33},
    )


def rows(h: int, w: int) -> Net:
    return (
        f"""(float[{h * w},3] y) <int64[2] s = {{{h * w},-1}}> {{
        a = Transpose<perm = [0,2,3,1]>(x)
        y = Reshape(a, s)
    }}""",
        {},
    )


def image_pooling(h: int, w: int) -> Net:
    return (
        f"""(float[1,6,{h},{w}] y) <int64[4] s = {{1,3,{h},{w}}}> {{
        a = GlobalAveragePool(x)
        b = {LINEAR}(a, , , s)
        y = Concat<axis = 1>(x, b)
    }}""",
        {},
    )


def expanded_mean(h: int, w: int) -> Net:
    return (
        f"""(float[1,6,{h},{w}] y) <int64[4] s = {{1,3,{h},{w}}}> {{
        a = ReduceMean<axes = [2,3]>(x)
        b = Expand(a, s)
        y = Concat<axis = 1>(x, b)
    }}""",
        {},
    )


def focus(h: int, w: int) -> Net:
    return (
        f"""(float[1,6,{h // 2},{w}] y) <int64[1] z = {{0}}, int64[1] o = {{1}},
        int64[1] e = {{{h}}}, int64[1] ax = {{2}}, int64[1] t = {{2}}> {{
        a = Slice(x, z, e, ax, t)
        b = Slice(x, o, e, ax, t)
        y = Concat<axis = 1>(a, b)
    }}""",
        {},
    )


def rolled(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{h},{w}] y)
        <int64[1] z = {{0}}, int64[1] o = {{1}}, int64[1] e = {{{h}}}, int64[1] ax = {{2}}> {{
        a = Slice(x, o, e, ax)
        b = Slice(x, z, o, ax)
        y = Concat<axis = 2>(a, b)
    }}""",
        {},
    )


def parts(h: int, w: int) -> Net:
    return (
        f"""(float[1,6,{h // 2},{w}] y) <int64[2] s = {{{h // 2},{h // 2}}}> {{
        a, b = Split<axis = 2>(x, s)
        y = Concat<axis = 1>(a, b)
    }}""",
        {},
    )


def reflected(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{h},{w}] y) <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{
        a = Pad<mode = "reflect">(x, p)
        y = Conv(a, k)
    }}""",
        {"k": K33},
    )


def transposed(h: int, w: int) -> Net:
    return (
        f"""(float[1,3,{2 * h},{2 * w}] y) {{
        y = ConvTranspose<kernel_shape = [4,4], strides = [2,2], pads = [1,1,1,1]>(x, k)
    }}""",
        {"k": (3, 3, 4, 4)},
    )


def thumbnail(h: int, w: int) -> Net:
    return (
        f"""(float[1,5] y) <int64[4] s = {{1,3,4,4}}, int64[2] t = {{1,48}}> {{
        a = {LINEAR}(x, , , s)
        b = Reshape(a, t)
        y = MatMul(b, k)
    }}""",
        {"k": (48, 5)},
    )


def classifier(h: int, w: int) -> Net:
    return (
        f"""(float[1,5] y) <int64[2] s = {{1,3}}> {{
        a = {DOWN}(x, m)
        b = GlobalAveragePool(a)
        c = Reshape(b, s)
        y = MatMul(c, k)
    }}""",
        {"m": K33, "k": (3, 5)},
    )


FOLLOWING: Mapping[str, Callable[[int, int], Net]] = {
    each.__name__: each
    for each in (
        unet, pyramid, tripled, scaled, cropped, head, two_heads, blocks, attention, rows, tokens,
        image_pooling, expanded_mean, focus, rolled, parts, reflected, transposed, thumbnail,
        classifier,
    )
}  # fmt: skip
"""Nets that follow at any size."""

DOUBTFUL: Mapping[str, Callable[[int, int], Net]] = {
    each.__name__: each for each in (segmentation, doubled)
}
"""Nets that follow where two readings of a size are one."""


def _dense(h: int, w: int, code: int) -> Net:
    n = 3 * half(h) * half(w)
    return (
        f"""(float[1,5] y) <int64[2] s = {{{code},{n}}}> {{
        a = {DOWN}(x, m)
        b = Reshape(a, s)
        y = MatMul(b, k)
    }}""",
        {"m": K33, "k": (n, 5)},
    )


def _reshaped(h: int, w: int) -> Net:
    n = half(h) * half(w)
    return (
        f"""(float[1,3,5] y) <int64[3] s = {{1,3,{n}}}> {{
        a = {DOWN}(x, m)
        b = Reshape(a, s)
        y = MatMul(b, k)
    }}""",
        {"m": K33, "k": (n, 5)},
    )


def _pool(h: int, w: int, size: int, stride: int) -> Net:
    return (
        f"""(float[1,3,P,Q] y) {{
        a = Relu(x)
        y = AveragePool<kernel_shape = [{size},{size}], strides = [{stride},{stride}]>(a)
    }}""",
        {},
    )


def _constant(h: int, w: int, node: str, shape: tuple[int, ...]) -> Net:
    return (
        f"""(float y, float z) <int64[3] s = {{1,-1,3}}> {{
        a = Transpose<perm = [0,2,3,1]>(x)
        b = Reshape(a, s)
        z = Relu(b)
        y = {node}
    }}""",
        {"k": shape},
    )


def _node(h: int, w: int, node: str, weights: Weights) -> Net:
    return f"(float[A,B,C,D] y) {{ a = Relu(x) y = {node} }}", weights


def _repeated() -> Net:
    return (
        """(float[1,3,8,8] y) <int64[4] s = {1,1,8,8}> {
        a = GlobalAveragePool(x)
        y = Tile(a, s)
    }""",
        {},
    )


def _either_way(h: int, w: int) -> Net:
    return (
        f"""(float[1,{h},{w},3] y, float z)
        <int64[3] s = {{1,3,{h * w}}}, int64[4] t = {{1,{h},{w},3}}> {{
        z = Transpose<perm = [0,1,3,2]>(x)
        a = Reshape(z, s)
        b = Transpose<perm = [0,2,1]>(a)
        y = Reshape(b, t)
    }}""",
        {},
    )


REFUSED: Mapping[str, tuple[Net, str, str]] = {
    "dense": (_dense(8, 8, 1), "nn.matmul", "y"),
    "dense behind -1": (_dense(8, 8, -1), "nn.matmul", "y"),
    "elements of a map": (_reshaped(8, 8), "nn.matmul", "y"),
    "mean of all": (_pool(8, 8, 8, 1), "nn.avg_pool2d", "y"),
    "mean of all with its stride": (_pool(8, 8, 8, 8), "nn.avg_pool2d", "y"),
    "means of four parts": (_pool(8, 8, 4, 4), "nn.avg_pool2d", "y"),
    "anchors added": (_constant(8, 8, "Add(b, k)", (1, 64, 3)), "add", "y"),
    "anchors beside": (
        _constant(8, 8, "Concat<axis = 2>(b, k)", (1, 64, 3)), "concatenate", "y"
    ),
    "anchors as an output": (_constant(8, 8, "Identity(k)", (64, 3)), "call", "k"),
    "positions": (_node(8, 8, "Add(a, k)", {"k": (1, 3, 8, 8)}), "add", "y"),
    "mesh": (_node(8, 8, "Concat<axis = 1>(a, k)", {"k": (1, 2, 8, 8)}), "concatenate", "y"),
    "grid": (_node(8, 8, "GridSample(a, k)", {"k": (1, 8, 8, 2)}), "serde.grid_sample", "y"),
    "windows": (
        _node(8, 8, "Reshape(a, k)", {"k": np.int64([1, 3, 4, 2, 4, 2])}), "reshape", "y"
    ),
    "all but the last": (
        _node(8, 8, "Slice(a, b, e, c)", {
            "b": np.int64([0]), "e": np.int64([7]), "c": np.int64([2])
        }), "strided_slice", "y",
    ),
    "first half": (
        _node(8, 8, "Slice(a, b, e, c)", {
            "b": np.int64([0]), "e": np.int64([4]), "c": np.int64([2])
        }), "strided_slice", "y",
    ),
    "rows that may be columns": (_either_way(8, 8), "reshape", "y"),
    "the last by its index": (
        ("(float y) <int64 i = {7}> { a = Relu(x) y = Gather<axis = 2>(a, i) }", {}),
        "serde.take", "y",
    ),
    "unequal parts": (
        ("(float y, float z) <int64[2] s = {3,5}> { y, z = Split<axis = 2>(x, s) }", {}),
        "split", "y",
    ),
    "repeated": (
        _repeated(), "tile", "y"
    ),
    "output_shape": (
        _node(8, 8, "ConvTranspose<kernel_shape = [3,3], strides = [2,2], output_shape = [16,16]>"
              "(a, k)", {"k": K33}), "ConvTranspose", "y",
    ),
}  # fmt: skip
"""Nets of 8 x 8 that cannot follow, with the operator and the node that are named."""
