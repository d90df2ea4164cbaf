"""Writes ``serde/onnx/profiles/onnxruntime.toml`` from the kernels of the ONNX Runtime at hand.

The other profiles are kept by hand, from the tables that each names as its source. Run as
``python tools/profiles.py``; it needs a build of ONNX Runtime that lists its kernels.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from serde.onnx.elements import ELEMENTS
from serde.onnx.versions import CHANGES, Change

TARGET = Path(__file__).parents[1] / "serde/onnx/profiles/onnxruntime.toml"

Types = dict[str, set[str]]

_DTYPES = {
    f"tensor({onnx.TensorProto.DataType.Name(code).lower()})": element.dtype
    for code, element in ELEMENTS.items()
} | {"tensor(string)": "string"}


def main() -> int:
    """Write the profile."""
    kernels: dict[str, list[Any]] = defaultdict(list)
    for each in state.get_all_opkernel_def():
        if each.domain == "" and each.provider == "CPUExecutionProvider":
            kernels[each.op_name].append(each)
    lines = [
        "# Kernels of the CPU, and operators that ONNX itself spells out in others.",
        'name = "ONNX Runtime on the CPU"',
        f'source = "get_all_opkernel_def() of onnxruntime {onnxruntime.__version__}"',
        f'date = "{dt.date.today():%Y-%m-%d}"',
        'domains = ["com.microsoft"]',
        "",
        "[operators]",
    ]
    for op, changes in sorted(CHANGES.items()):
        known = [version for version, how in changes.items() if how is not Change.REMOVED]
        known = [each for each in known if each <= onnx.defs.onnx_opset_version()]
        schemas = [onnx.defs.get_schema(op, each, "") for each in known]
        found, dtypes = _written(schemas, kernels[op])
        if not found:
            continue
        versions = "" if found == known else f"versions = {found}"
        types = ", ".join(f"{name} = {sorted(each)}" for name, each in sorted(dtypes.items()))
        inner = ", ".join(filter(None, [versions, types and f"dtypes = {{ {types} }}"]))
        lines.append(f"{op} = {{ {inner} }}" if inner else f"{op} = true")
    TARGET.write_text("\n".join(lines).replace("'", '"') + "\n")
    return 0


def _written(schemas: list[Any], kernels: list[Any]) -> tuple[list[int], Types]:
    """Return the versions that run, and the dtypes of what the newest leaves open."""
    found: list[int] = []
    dtypes: Types = {}
    for schema in schemas:
        version = schema.since_version
        own = [k for k in kernels if k.version_range[0] <= version <= k.version_range[1]]
        is_function = schema.has_function or schema.has_context_dependent_function
        if not own and not is_function and schema.name != "Constant":
            continue
        found.append(version)
        dtypes = {} if is_function else dict(_dtypes(schema, own))
    return found, dtypes


def _dtypes(schema: Any, kernels: list[Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield the dtypes that kernels take less than the operator allows; float16 goes by float32."""
    for each in schema.type_constraints:
        texts = {text for k in kernels for text in k.type_constraints.get(each.type_param_str, ())}
        takes = {_DTYPES[text] for text in texts if text in _DTYPES}
        allowed = {_DTYPES[text] for text in each.allowed_type_strs if text in _DTYPES}
        takes |= {"float16"} & allowed if "float32" in takes else set()
        if takes and takes < allowed:
            yield each.type_param_str, takes


if __name__ == "__main__":
    sys.exit(main())
