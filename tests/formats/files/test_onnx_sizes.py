"""Large ONNX files: beyond two gigabytes, many nodes, and little memory."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import model_of, tensor

from serde.onnx import codec


def test_a_file_beyond_two_gigabytes_is_read(tmp_path: Path) -> None:
    count = 600 * 2**20
    header = TensorProto(name="w", data_type=1, dims=[count]).SerializeToString()

    def varint(value: int) -> bytes:
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    raw = b"\x4a" + varint(4 * count)
    inner = header + raw
    entry = b"\x2a" + varint(len(inner) + 4 * count)
    rest = model_of(tensor("v", np.arange(500, dtype=np.float32)))
    graph = rest.graph.SerializeToString()
    head = (
        b"\x08\x08\x3a" + varint(len(entry) + len(inner) + 4 * count + len(graph)) + entry + inner
    )
    opset = b"\x42\x04\x0a\x00\x10\x11"
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 4 * count)
        file.seek(0, os.SEEK_END)
        file.write(graph + opset)
    model = codec.load(path)
    assert codec.detect(path)
    assert list(model.weights) == ["w", "v"]
    assert model.weights["w"].shape == (count,)
    assert model.weights["w"].rows(count - 3, count).tolist() == [0, 0, 0]
    assert model.weights["v"].array().tolist() == list(range(500))


@pytest.mark.wide
def test_a_large_graph_keeps_its_bytes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(20_000)
    ]
    model = model_of(*(tensor(f"w{i}", np.arange(300)) for i in range(2000)), nodes=nodes)
    onnx.save(model, tmp_path / "a.onnx")
    loaded = codec.load(tmp_path / "a.onnx")
    codec.save(loaded, tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "a.onnx").read_bytes()


MEMORY = """
    import os, resource, sys
    import numpy as np
    import onnx
    from onnx import helper
    from serde.onnx import codec
    from serde.onnx.model import OnnxModel
    from serde.core.weights import FileWeight, OpenFile, Weight

    class Computed(Weight):
        shape, dtype = (256, 2**18), "float32"

        def rows(self, start, stop):
            return np.full((stop - start, 2**18), 1.5, np.float32)

    def peak():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

    directory = sys.argv[1]
    source = os.path.join(directory, "source")
    with open(source, "wb") as file:
        file.truncate(2**28)
    with OpenFile.open(source) as opened:
        weights = {"a": FileWeight(opened.range(0, 2**28), (2**26,), "float32"), "b": Computed()}
    graph = helper.make_graph([helper.make_node("Identity", ["a"], ["y"])], "g", [], [])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    before = peak()
    path = codec.save(
        OnnxModel(proto, weights),
        os.path.join(directory, "m.onnx"),
        force_external=sys.argv[2] == "external",
    )
    loaded = codec.load(path)
    assert [each.nbytes for each in loaded.weights.values()] == [2**28, 2**28]
    assert (loaded.weights["b"].rows(255, 256) == 1.5).all()
    print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs VmHWM of Linux")
@pytest.mark.parametrize("kind", ["embedded", "external"])
def test_writing_512_megabytes_takes_little_memory(tmp_path: Path, kind: str) -> None:
    program = textwrap.dedent(MEMORY)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), kind],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150, done.stdout
