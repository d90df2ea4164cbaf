"""Write, with MXNet's own exporter, the ONNX files beside this script.

    python tests/golden/mx2onnx/make.py

MXNet 1.9.1 asks the package onnx for ``onnx.mapping``, which versions from 1.19 on do not have;
it is put back here. The files say opset 13, in whose form the nodes are.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from serde.compat import import_mxnet

OPSET, IR_VERSION = 13, 8

COMMON = {"overlap_thresh": 0.45, "valid_thresh": 0.1, "force_suppress": True}
SUPPRESSIONS: dict[str, dict[str, Any]] = {
    "corner": {**COMMON, "coord_start": 2, "score_index": 1},
    "corner_few": {**COMMON, "coord_start": 2, "score_index": 1, "topk": 3},
    "center": {
        **COMMON,
        "coord_start": 0,
        "score_index": 5,
        "in_format": "center",
        "out_format": "center",
    },
}
SHAPE = (2, 12, 6)


def main() -> None:
    """Write all files."""
    mx = import_mxnet()
    dtypes = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
    mapping = types.ModuleType("onnx.mapping")
    codes = {np.dtype(each): helper.np_dtype_to_tensor_dtype(np.dtype(each)) for each in dtypes}
    mapping.NP_TYPE_TO_TENSOR_TYPE = codes  # type: ignore[attr-defined]
    mapping.TENSOR_TYPE_TO_NP_TYPE = {code: each for each, code in codes.items()}  # type: ignore[attr-defined]
    onnx.mapping = sys.modules["onnx.mapping"] = mapping
    onnx.defs.onnx_opset_version = lambda: OPSET
    for name, attrs in SUPPRESSIONS.items():
        path = Path(__file__).with_name(f"box_nms_{name}.onnx")
        symbol = mx.sym.contrib.box_nms(mx.sym.var("data"), name="nms", **attrs)
        mx.onnx.export_model(symbol, {}, [SHAPE], np.float32, str(path))
        model = onnx.load(path)
        model.ir_version = IR_VERSION
        model.opset_import[0].version = OPSET
        path.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
