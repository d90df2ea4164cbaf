"""Models between files, with options of every format."""

from pathlib import Path

from typing_extensions import assert_type

import serde
from serde.conversion.signature import FormatName

report = serde.Report()
assert_type(serde.convert("net.onnx", Path("net.mlpackage")), serde.Report)
serde.convert(["net-symbol.json", "net-0000.params"], "net.onnx", epoch=3, opset=17, report=report)
serde.convert("net.onnx", "net.mlpackage", input_shapes={"data": (1, 3, "H", None)}, check=2)
serde.convert("net.onnx", "net.onnx", input_shapes=(1, 3, 224, 224), input_dtypes="float16")
serde.convert("net.onnx", "net.onnx", target_format="onnx", opset="auto", allow={"int64-as-int32"})
serde.convert("net.onnx", "net.onnx", float16=True, op_block_list=["nn.softmax"], outputs=["prob"])
serde.convert("net.toy", "net.onnx", source_format=FormatName("toy"), volume=11)
serde.convert(
    "net.onnx",
    "net.mlpackage",
    minimum_deployment_target="iOS17",
    images={"data": {"color_layout": "BGR", "scale": 1 / 127.5}, "mask": "GRAYSCALE"},
    ranges={"H": (64, 1024), "W": (64, 1024, 224)},
    enumerated_shapes={"data": [(1, 3, 64, 64), (1, 3, 128, 128)]},
    class_labels=["cat", "dog"],
)
serde.convert("net.onnx", "net.mlpackage", images=["data"], class_labels=Path("labels.txt"))

if not report.passed:
    print(report.coverage)
assert_type(serde.check("net.onnx", "net.mlpackage", runs=3).passed, bool)
assert_type(serde.check("net", "net.onnx", source_format="mxnet", epoch=3), serde.Report)
assert_type(serde.bisect("net.onnx", "net.mlpackage").sentence, str)
assert_type(serde.diff("left.onnx", "right.onnx", weights=False).equal, bool)
net = serde.compile("net.onnx", input_shapes={"data": ("N", 3, 224, 224)}, freeze_vars=True)
assert_type(net, serde.Runnable)
assert_type(net.save("net.so"), Path)
assert_type(serde.Runnable.load("net.so").inputs, tuple[str, ...])
serde.compile("net-symbol.json", target={"kind": "llvm", "mcpu": "skylake"}, epoch=3)


def convert_as(target_format: str) -> serde.Report:
    """A name that is known when it runs."""
    return serde.convert("net.onnx", "net", target_format=target_format, simplify=False)
