"""ML Programs that serde wrote, in coremltools: its type check, and the values it infers."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.mil_kernels import installed
from support.mil_layers import KERNELS as _LAYERS  # noqa: F401  its kernels are registered

from serde.coreml.model import CoremlModel

_CODES = {"bool": 1, "float16": 10, "float32": 11, "int8": 21, "int32": 23, "uint8": 31}
_CODES |= {"int16": 22, "uint16": 32}


@dataclass(frozen=True)
class Inferred:
    """What coremltools infers a program to give.

    Attributes:
        values: Each output, or None where it infers none.
        silent: Operators of the program of which it inferred no value from known inputs.
    """

    values: list[np.ndarray | None]
    silent: frozenset[str]


def check_types(model: CoremlModel) -> None:
    """Load a program as coremltools does, which infers and compares the type of all values.

    Raises:
        Exception: It refuses the program.
    """
    with installed():
        # A constant is inferred as well, by what coremltools has wrong otherwise.
        _load(_message(model), model)


def check_package(path: Path) -> None:
    """Load a package as coremltools does; see :func:`check_types`."""
    ct = tools()
    from coremltools.converters.mil.frontend.milproto.load import load

    spec = ct.utils.load_spec(str(path))
    with installed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = path / "Data" / "com.apple.CoreML" / "weights"
        load(spec, spec.specificationVersion, str(weights))


def infer(model: CoremlModel, given: Mapping[str, np.ndarray]) -> Inferred:
    """Return what coremltools itself infers a program to give when its inputs are constant.

    Args:
        model: The program.
        given: A value for each input.
    """
    spec = _message(model)
    function = spec.mlProgram.functions["main"]
    block = function.block_specializations[function.opset]
    operations = list(block.operations)
    del block.operations[:]
    for each in function.inputs:
        # Lengths that are flexible are those of what is given.
        dims = each.type.tensorType.dimensions
        for dim, length in zip(dims, given[each.name].shape, strict=True):
            dim.constant.size = length
        op = block.operations.add(type="const")
        op.outputs.add(name=each.name).type.CopyFrom(each.type)
        value = op.attributes["val"]
        value.type.CopyFrom(each.type)
        _fill(value.immediateValue.tensor, given[each.name], each.type.tensorType.dataType)
        name = op.attributes["name"]
        name.type.tensorType.dataType = 2
        name.immediateValue.tensor.strings.values.append(each.name)
    del function.inputs[:]
    block.operations.extend(operations)
    with installed():
        loaded = _load(spec, model).functions["main"]
    silent = {
        op.op_type
        for op in loaded.operations
        if any(out.val is None for out in op.outputs) and all(map(_known, op.inputs.values()))
    }
    return Inferred([_value(out) for out in loaded.outputs], frozenset(silent))


def _value(out: Any) -> np.ndarray | None:
    """Return what is inferred, in the dtype that the program declares."""
    from coremltools.converters.mil.mil import types

    if out.val is None:
        return None
    return np.asarray(out.val).astype(types.nptype_from_builtin(out.dtype))


def _known(given: Any) -> bool:
    each = given if isinstance(given, (tuple, list)) else [given]
    return all(var is None or var.val is not None for var in each)


def _fill(tensor: Any, data: np.ndarray, code: int) -> None:
    names = {number: name for name, number in _CODES.items()}
    data = data.astype(names[code])
    kind = {"float32": "floats", "int32": "ints", "bool": "bools", "int16": "ints"}
    kind["uint16"] = "ints"
    field = kind.get(data.dtype.name)
    if field is None:
        tensor.bytes.values = data.tobytes()
    else:
        # A field that is empty must be there all the same.
        getattr(tensor, field).SetInParent()
        getattr(tensor, field).values.extend(data.reshape(-1).tolist())


def _message(model: CoremlModel) -> Any:
    spec = tools().proto.Model_pb2.Model()
    spec.ParseFromString(model.spec.SerializeToString())
    return spec


def _load(spec: Any, model: CoremlModel) -> Any:
    tools()
    from coremltools.converters.mil.frontend.milproto.load import load

    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        # coremltools takes NumPy's truth values for numbers, and functions out of their range.
        warnings.simplefilter("ignore")
        if model.layout is not None:
            model.layout.write(Path(directory) / "weight.bin")
        return load(spec, spec.specificationVersion, directory)
