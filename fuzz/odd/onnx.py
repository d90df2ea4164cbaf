"""Models of ONNX with attributes, tensors, functions and sparse weights that are odd."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fuzz.case import Case

__all__ = ["make_cases"]


def make_cases() -> Iterator[Case]:
    for name, model in itertools.chain(_onnx_attributes(), _onnx_tensors(), _onnx_sparse()):
        yield Case.of("onnx", f"odd-{name}", {"m.onnx": model.SerializeToString()})
    from google.protobuf import text_format

    for name, model in _onnx_tensors():
        if name.startswith("long"):
            text = text_format.MessageToString(model).encode()
            yield Case.of("onnx", f"odd-text-{name}", {"m.textproto": text})


def _onnx_model(nodes: Sequence[Any], **kept: Any) -> Any:
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    functions = kept.pop("functions", [])
    graph = helper.make_graph(list(nodes), "g", [x], [y], **kept)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def _onnx_attributes() -> Iterator[tuple[str, Any]]:
    """Attributes without a kind, of text that is none, and those that functions pass on."""
    from onnx import AttributeProto, helper

    for kind in ("none", "bytes", "kindless", "twice"):
        node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
        if kind == "none":
            node.attribute[0].ClearField("i")
            node.attribute[0].type = AttributeProto.UNDEFINED
        elif kind == "bytes":
            node.attribute.add(name="mode", s=b"\xff\xfe", type=AttributeProto.STRING)
        elif kind == "kindless":
            node.attribute[0].type = AttributeProto.UNDEFINED
        else:
            node.attribute.add().CopyFrom(node.attribute[0])
        yield f"attribute-{kind}", _onnx_model([node])
    inner = helper.make_node("LeakyRelu", ["a"], ["b"])
    inner.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    function = helper.make_function(
        "own", "Leaky", ["a"], ["b"], [inner], [helper.make_opsetid("", 18)], ["slope"]
    )
    for kept in ({}, {"slope": 0.5}, {"other": 1}):
        node = helper.make_node("Leaky", ["x"], ["y"], domain="own", **kept)
        name = next(iter(kept), "nothing")
        yield f"function-{name}", _onnx_model([node], functions=[function])
    again = helper.make_function(
        "own", "Leaky", ["a"], ["b"], [helper.make_node("Leaky", ["a"], ["b"], domain="own")],
        [helper.make_opsetid("own", 1)],
    )  # fmt: skip
    node = helper.make_node("Leaky", ["x"], ["y"], domain="own")
    yield "function-itself", _onnx_model([node], functions=[again])


def _onnx_tensors() -> Iterator[tuple[str, Any]]:
    """Constants of every element type, in segments, of texts, and long ones in nodes."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    add = helper.make_node("Add", ["x", "c"], ["y"])
    cast = helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT)
    tail = [cast, helper.make_node("Add", ["x", "d"], ["y"])]
    for code in TensorProto.DataType.values():
        with_data = TensorProto(name="c", data_type=code, dims=[3], raw_data=bytes(12))
        yield f"type-{code}", _onnx_model(tail, initializer=[with_data])
        count = {21: 2, 22: 2, 23: 2}.get(code, 3)
        typed = TensorProto(name="c", data_type=code, dims=[3], int32_data=[1] * count)
        yield f"typed-{code}", _onnx_model(tail, initializer=[typed])
        constant = helper.make_node("Constant", [], ["c"])
        constant.attribute.add(name="value", type=4).t.CopyFrom(typed)
        yield f"constant-{code}", _onnx_model([constant, *tail])
    text = TensorProto(name="c", data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"b"])
    constant = helper.make_node("Constant", [], ["c"], value=text)
    yield "texts", _onnx_model([constant, add])
    parted = numpy_helper.from_array(np.ones(3, np.float32), "c")
    parted.segment.begin = 1
    yield "segment", _onnx_model([add], initializer=[parted])
    long = numpy_helper.from_array(np.ones((400, 3), np.float32), "c")
    yield "long", _onnx_model([helper.make_node("Constant", [], ["c"], value=long), add])
    long.segment.begin = 1
    yield "long-segment", _onnx_model([add], initializer=[long])
    named = numpy_helper.from_array(np.ones(3, np.float32), "c" * 70_000)
    yield "long-name", _onnx_model([add], initializer=[named])


def _onnx_sparse() -> Iterator[tuple[str, Any]]:
    """Sparse weights with indices of one number and of one for each axis, in order and not."""
    import numpy as np
    from onnx import helper, numpy_helper

    values = numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "c")
    none = numpy_helper.from_array(np.zeros(0, np.float32), "c")
    found: Mapping[str, tuple[Any, Any, list[int]]] = {
        "flat": (values, np.array([1, 5]), [3, 4]),
        "falling": (values, np.array([5, 1]), [3, 4]),
        "beyond": (values, np.array([5, 12]), [3, 4]),
        "axes": (values, np.array([[0, 1], [2, 3]]), [3, 4]),
        "axes-beyond": (values, np.array([[0, 1], [2, 4]]), [3, 4]),
        "axes-falling": (values, np.array([[2, 1], [0, 3]]), [3, 4]),
        "short": (values, np.array([1]), [3, 4]),
        "none": (none, np.zeros((0, 2), np.int64), [3, 4]),
        "negative": (values, np.array([1, 5]), [3, -4]),
        "large": (values, np.array([1, 5]), [2**20, 2**20]),
        "zeros": (values, np.array([1, 5]), [2**11, 2**11]),
    }
    for name, (stored, places, dims) in found.items():
        indices = numpy_helper.from_array(np.asarray(places, np.int64))
        sparse = helper.make_sparse_tensor(stored, indices, dims)
        add = helper.make_node("MatMul", ["x", "c"], ["y"])
        yield f"sparse-{name}", _onnx_model([add], sparse_initializer=[sparse])
        constant = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
        yield f"sparse-value-{name}", _onnx_model([constant, add])
