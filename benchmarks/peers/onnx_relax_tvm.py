# /// script
# requires-python = "3.11"
# dependencies = ["apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1", "onnx==1.23.2"]
# ///
"""TVM's importer of ONNX, and its module as JSON beside the weights."""

import sys
from pathlib import Path

import onnx
import tvm
from tvm.relax.frontend.onnx import from_onnx

module = from_onnx(onnx.load(sys.argv[1]))
target = Path(sys.argv[2])
target.mkdir()
(target / "module.json").write_text(tvm.ir.save_json(module))
