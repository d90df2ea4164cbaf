"""Models of Core ML with inputs, weights, constants and pipelines that are odd."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fuzz.case import Case

__all__ = ["make_cases"]


def make_cases() -> Iterator[Case]:
    for name, spec, options in itertools.chain(
        _inputs(), _weights(), _programs(), _pipelines()
    ):  # fmt: skip
        data = {"m.mlmodel": spec.SerializeToString()}
        yield Case.of("coreml", f"odd-{name}", data, **options)
        yield Case.of("coreml", f"odd-{name}-bytes", data, handed="bytes", **options)
    yield from _files()


Made = tuple[str, Any, Mapping[str, Any]]


def _network(shape: tuple[int, ...] = (3, 8, 8), version: int = 4) -> Any:
    """Return a model of one layer."""
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=version)
    spec.description.input.add(name="x").type.multiArrayType.CopyFrom(_array(shape))
    spec.description.output.add(name="y").type.multiArrayType.CopyFrom(_array(()))
    layer = spec.neuralNetwork.layers.add(name="relu", input=["x"], output=["y"])
    layer.activation.ReLU.SetInParent()
    return spec


def _array(shape: tuple[int, ...], dtype: int = 65568) -> Any:
    from coremltools.proto import FeatureTypes_pb2

    return FeatureTypes_pb2.ArrayFeatureType(shape=shape, dataType=dtype)


def _inputs() -> Iterator[Made]:
    """Arrays and images of open and enumerated sizes, prepared in each way."""
    ranges: Mapping[str, Callable[[Any], Any]] = {
        "range": lambda array: [
            array.shapeRange.sizeRanges.add(lowerBound=low, upperBound=high)
            for low, high in ((3, 3), (1, 9), (8, -1))
        ],
        "shapes": lambda array: [
            array.enumeratedShapes.shapes.add(shape=shape) for shape in ((3, 8, 8), (3, 4, 8))
        ],
        "ranks": lambda array: [
            array.enumeratedShapes.shapes.add(shape=shape) for shape in ((3, 8, 8), (4, 8))
        ],
        "no-shapes": lambda array: array.enumeratedShapes.SetInParent(),
        "type": lambda array: setattr(array, "dataType", 7),
        "default": lambda array: setattr(array, "intDefaultValue", 3),
    }
    for name, change in ranges.items():
        for shape in ((3, 8, 8), (), (8,), (1, 1, 3, 8, 8), (2, 3, 8, 8), (-1, 2)):
            spec = _network(shape)
            change(spec.description.input[0].type.multiArrayType)
            yield f"array-{name}{len(shape)}", spec, {}
        yield f"array-{name}-given", spec, {"input_shapes": {"x": [3, 8, 8]}}
        yield f"array-{name}-batch", spec, {"input_shapes": {"x": [1, 2, 3, 8, 8]}}
    for color, kind in itertools.product((0, 10, 20, 30, 40, 77), ("", "range", "sizes", "mixed")):
        spec = _network()
        image = spec.description.input[0].type.imageType
        image.width, image.height, image.colorSpace = 8, 6, color
        if kind in ("range", "mixed"):
            image.imageSizeRange.widthRange.lowerBound = 1
            image.imageSizeRange.widthRange.upperBound = -1 if kind == "range" else 8
            image.imageSizeRange.heightRange.lowerBound = 6
            image.imageSizeRange.heightRange.upperBound = 6
        if kind == "sizes":
            for width, height in ((8, 6), (16, 6)):
                image.enumeratedSizes.sizes.add(width=width, height=height)
        step = spec.neuralNetwork.preprocessing.add(featureName="x")
        if color in (10, 20):
            step.scaler.channelScale = 0.5
            step.scaler.redBias = step.scaler.grayBias = 1.0
        elif color:
            count = {30: 144, 40: 48}.get(color, 5)
            step.meanImage.meanImage.extend([0.5] * count)
        yield f"image{color}{kind}", spec, {}
    spec = _network()
    spec.neuralNetwork.preprocessing.add(featureName="x").scaler.channelScale = 2.0
    yield "array-scaled", spec, {}
    for kind in ("int64Type", "stringType", "dictionaryType", "sequenceType", "doubleType"):
        spec = _network()
        getattr(spec.description.input[0].type, kind).SetInParent()
        yield f"input-{kind}", spec, {}


def _weights() -> Iterator[Made]:
    """Layers with weights in each form that there is, right and wrong."""
    import numpy as np

    values = np.linspace(-1, 1, 12).astype(np.float32)
    forms: Mapping[str, Callable[[Any], Any]] = {
        "float": lambda w: w.floatValue.extend(values),
        "short": lambda w: w.floatValue.extend(values[:5]),
        "none": lambda w: None,
        "half": lambda w: setattr(w, "float16Value", values.astype("<f2").tobytes()),
        "half-odd": lambda w: setattr(w, "float16Value", b"abc"),
        "raw": lambda w: setattr(w, "rawValue", values.tobytes()),
        "int8": lambda w: setattr(w, "int8RawValue", bytes(range(12))),
    }
    quantized: Mapping[str, Callable[[Any], Any]] = {
        "linear": lambda q: (
            q.linearQuantization.scale.append(0.5), q.linearQuantization.bias.append(1.0),
        ),
        "channels": lambda q: (
            q.linearQuantization.scale.extend([0.5] * 4),
            q.linearQuantization.bias.extend([1.0] * 4),
        ),
        "many": lambda q: q.linearQuantization.scale.extend([0.5] * 5),
        "table": lambda q: q.lookupTableQuantization.floatValue.extend(
            range(2**q.numberOfBits % 257)
        ),
        "table-short": lambda q: q.lookupTableQuantization.floatValue.extend([1.0, 2.0, 3.0]),
    }  # fmt: skip
    for (form, fill), layer in itertools.product(forms.items(), ("inner", "conv", "table", "load")):
        spec = _network((3,) if layer == "inner" else (3, 8, 8))
        fill(_weight_of(spec, layer))
        yield f"weight-{form}-{layer}", spec, {}
    for (form, fill), bits in itertools.product(quantized.items(), (1, 2, 3, 4, 6, 7, 8, 0, 9, 64)):
        for layer in ("inner", "conv"):
            spec = _network((3,) if layer == "inner" else (3, 8, 8))
            weight = _weight_of(spec, layer)
            weight.quantization.numberOfBits = bits
            weight.rawValue = bytes(range(-(-12 * min(bits, 8) // 8)))
            fill(weight.quantization)
            yield f"quantized-{form}{bits}-{layer}", spec, {}


def _weight_of(spec: Any, kind: str) -> Any:
    """Return the weight of another layer, which takes the place of the one that is there."""
    layer = spec.neuralNetwork.layers[0]
    if kind == "inner":
        inner = layer.innerProduct
        inner.inputChannels, inner.outputChannels = 3, 4
        return inner.weights
    if kind == "conv":
        conv = layer.convolution
        conv.outputChannels, conv.kernelChannels, conv.nGroups = 4, 3, 1
        conv.kernelSize.extend([1, 1])
        conv.valid.SetInParent()
        return conv.weights
    if kind == "table":
        layer.embedding.inputDim, layer.embedding.outputChannels = 3, 4
        return layer.embedding.weights
    layer.loadConstant.shape.extend([3, 2, 2])
    return layer.loadConstant.data


def _programs() -> Iterator[Made]:
    """Programs with a constant of each element type, in each form."""
    from coremltools.proto import MIL_pb2

    names = MIL_pb2.DataType.items()
    for (name, code), field in itertools.product(
        names, ("floats", "ints", "bytes", "none", "more")
    ):
        yield f"constant-{name}-{field}", _program(code, field), {}
    for field in ("strings", "bools", "longInts", "doubles", "tuple", "list", "blob", "dictionary"):
        yield f"constant-{field}", _program(11, field), {}
    for dims in ((2**40, 2**40), (-1,), (0, 3), (1,) * 40, ()):
        yield f"constant-shape{len(dims)}-{sum(dims)}", _program(11, "floats", dims), {}


_COUNT: Final = 4


def _program(code: int, field: str, dims: tuple[int, ...] = (_COUNT,)) -> Any:
    """Return a program that adds a constant to its input."""
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=9)
    spec.description.input.add(name="x").type.multiArrayType.CopyFrom(_array((_COUNT,)))
    spec.description.output.add(name="y").type.multiArrayType.CopyFrom(_array(()))
    function = spec.mlProgram.functions["main"]
    spec.mlProgram.version = 1
    function.opset = "CoreML8"
    x = function.inputs.add(name="x")
    _tensor(x.type, 11, (_COUNT,))
    block = function.block_specializations["CoreML8"]
    block.outputs.append("y")
    constant = block.operations.add(type="const")
    _tensor(constant.outputs.add(name="c").type, code, dims)
    value = constant.attributes["val"]
    _tensor(value.type, code, dims)
    tensor = value.immediateValue.tensor
    if field == "floats":
        tensor.floats.values.extend([1.5] * _COUNT)
    elif field in ("ints", "longInts", "doubles", "bools"):
        getattr(tensor, field).values.extend([1] * _COUNT)
    elif field == "strings":
        tensor.strings.values.extend(["a"] * _COUNT)
    elif field in ("bytes", "more"):
        tensor.bytes.values = bytes(range(_COUNT * 2 if field == "bytes" else 77))
    elif field == "tuple":
        inner = value.immediateValue.tuple.values.add()
        _tensor(inner.type, 11, ())
        inner.immediateValue.tensor.floats.values.append(1.0)
    elif field == "list":
        value.immediateValue.list.values.add().immediateValue.tensor.ints.values.append(3)
    elif field == "dictionary":
        value.immediateValue.dictionary.values.add()
    elif field == "blob":
        value.blobFileValue.fileName = "elsewhere.bin"
        value.blobFileValue.offset = 64
    add = block.operations.add(type="add")
    add.inputs["x"].arguments.add(name="x")
    add.inputs["y"].arguments.add(name="c")
    _tensor(add.outputs.add(name="y").type, 11, (_COUNT,))
    return spec


def _tensor(type_: Any, code: int, dims: tuple[int, ...]) -> None:
    found = type_.tensorType
    found.dataType, found.rank = code, len(dims)
    for each in dims:
        found.dimensions.add().constant.size = each % 2**64


def _pipelines() -> Iterator[Made]:
    """Two models one after the other that fit, and that do not; one of them read alone."""
    from coremltools.proto import Model_pb2

    def pipeline(one: Any, other: Any, *, given: str = "m", taken: str = "m") -> Any:
        one.description.output[0].name = given
        one.neuralNetwork.layers[0].output[0] = given
        other.description.input[0].name = taken
        if other.WhichOneof("Type") == "neuralNetwork":
            other.neuralNetwork.layers[0].input[0] = taken
        spec = Model_pb2.Model(specificationVersion=4)
        spec.description.input.add().CopyFrom(one.description.input[0])
        spec.description.output.add().CopyFrom(other.description.output[0])
        spec.pipeline.models.extend([one, other])
        spec.pipeline.names.extend(["first", "second"])
        return spec

    fitting = pipeline(_network(), _network())
    yield "pipeline", fitting, {}
    for wanted in ("0", "1", "first", "second", "2", "nowhere"):
        yield f"pipeline-{wanted}", fitting, {"pipeline_model": wanted}
    yield "pipeline-function", fitting, {"function": "main"}
    yield "network-function", _network(), {"function": "main"}
    yield "network-pipeline", _network(), {"pipeline_model": "0"}
    yield "pipeline-shape", pipeline(_network(), _network((3, 4, 4))), {}
    yield "pipeline-rank", pipeline(_network(), _network((3,))), {}
    yield "pipeline-names", pipeline(_network(), _network(), taken="elsewhere"), {}
    yield "pipeline-same", pipeline(_network(), _network(), given="x", taken="x"), {}
    twice = pipeline(_network(), _network())
    twice.pipeline.models.append(twice.pipeline.models[1])
    yield "pipeline-twice", twice, {}
    typed = _network()
    typed.description.input[0].type.multiArrayType.dataType = 65552
    yield "pipeline-dtype", pipeline(_network(), typed), {}
    other = Model_pb2.Model(specificationVersion=4)
    other.description.input.add(name="m").type.multiArrayType.CopyFrom(_array((3,)))
    other.description.output.add(name="y").type.multiArrayType.CopyFrom(_array((3,)))
    for kind in ("glmRegressor", "nonMaximumSuppression", "identity", "scaler"):
        member = Model_pb2.Model()
        member.CopyFrom(other)
        getattr(member, kind).SetInParent()
        made = pipeline(_network(), member)
        yield f"pipeline-{kind}", made, {}
        yield f"pipeline-{kind}-alone", made, {"pipeline_model": "1"}
        yield f"pipeline-{kind}-defaults", made, {"optional_inputs": "defaults"}
        yield kind, member, {}


def _files() -> Iterator[Case]:
    """Packages whose manifest or file of weights is odd, and files that are no model."""
    spec = _program(11, "blob")
    value = spec.mlProgram.functions["main"].block_specializations["CoreML8"].operations[0]
    folder = "m.mlpackage/Data/com.apple.CoreML"
    manifest = (
        b'{"itemInfoEntries": {"a": {"path": "com.apple.CoreML/m"}}, "rootModelIdentifier": "a"}'
    )
    record = struct.pack("<IIQQQ", 0xDEADBEEF, 1, 16, 128, 0) + bytes(32)
    whole = struct.pack("<II", 1, 2) + bytes(56) + record + struct.pack("<4f", 1, 2, 3, 4)
    blobs = {
        "right": whole,
        "short": whole[:100],
        "empty": b"",
        "version": b"\2" + whole[1:4] + b"\7" + whole[5:],
        "magic": whole[:64] + bytes(4) + whole[68:],
        "type": whole[:68] + b"\3" + whole[69:],
        "bytes": whole[:72] + b"\x0f" + whole[73:],
        "place": whole[:80] + b"\x81" + whole[81:],
        "inside": whole[:80] + b"\x40" + whole[81:],
        "padding": whole[:88] + b"\5" + whole[89:],
    }
    for (name, blob), place in itertools.product(
        blobs.items(),
        ("@model_path/w.bin", "w.bin", "@model_path/../w.bin", "@model_path/none.bin"),
    ):
        value.attributes["val"].blobFileValue.fileName = place
        files = {
            "m.mlpackage/Manifest.json": manifest,
            f"{folder}/m": spec.SerializeToString(),
            f"{folder}/w.bin": blob,
        }
        yield Case.of("coreml", f"odd-blob-{name}-{place[-9:-4]}", files)
    for number, text in enumerate(
        (b"", b"[]", b"{", b"[" * 5000, b" " * 70_000, manifest.replace(b'"a"', b'"b"', 1),
         manifest.replace(b'"com.apple.CoreML/m"', b"3"), manifest.replace(b"apple", b"\xff"),
         manifest.replace(b"com.apple.CoreML/m", b"../../x"), manifest.replace(b"/m", b"/n"))
    ):  # fmt: skip
        files = {"m.mlpackage/Manifest.json": text, f"{folder}/m": spec.SerializeToString()}
        yield Case.of("coreml", f"odd-manifest{number}", files)
    for number, data in enumerate(
        (b"\x08\x04", b"\x08\x04\x12\x00", b"\x0b\x0c", b"\x08" + b"\xff" * 12)
    ):
        yield Case.of("coreml", f"odd-bytes{number}", {"m.mlmodel": data})
        yield Case.of("coreml", f"odd-named{number}", {"m": data})
    yield Case.of("coreml", "odd-named", {"m": _network().SerializeToString()})
