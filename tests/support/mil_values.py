"""ML Programs that serde wrote, loaded by coremltools, which checks the types of all values."""

from __future__ import annotations

import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from support.coreml_models import tools

from serde.coreml.model import CoremlModel


def check_types(model: CoremlModel) -> None:
    """Load a program as coremltools does, which infers and compares the type of all values.

    Raises:
        Exception: It refuses the program.
    """
    with tempfile.TemporaryDirectory() as directory:
        if model.layout is not None:
            model.layout.write(Path(directory) / "weight.bin")
        spec = tools().proto.Model_pb2.Model()
        spec.ParseFromString(model.spec.SerializeToString())
        _load(spec, directory)


def check_package(path: Path) -> None:
    """Load a package; see :func:`check_types`."""
    _load(tools().utils.load_spec(str(path)), str(path / "Data" / "com.apple.CoreML" / "weights"))


def _load(spec: Any, folder: str) -> None:
    tools()
    from coremltools.converters.mil.frontend.milproto.load import load
    from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # coremltools takes NumPy's truth values for numbers, and functions out of their range.
        warnings.simplefilter("ignore")
        # It infers what a constant is reduced to with an axis, or a truth value, that NumPy does
        # not take.
        reductions = [name for name in SSAOpRegistry.core_ops if name.startswith("reduce_")]
        for name in ("cumsum", *reductions):
            for each in set(SSAOpRegistry.core_ops[name].values()):
                stack.enter_context(mock.patch.object(each, "value_inference", return_value=None))
        load(spec, spec.specificationVersion, folder)
