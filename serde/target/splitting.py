"""A model of any format split for a toolchain: read, partitioned, built, checked and written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any as AnyValue

from serde.bridge.formats import source_bridge
from serde.checking.verdict import compare, raise_if_differs
from serde.conversion.locations import Locations
from serde.conversion.signature import takes_options
from serde.conversion.steps import read_model, source_paths
from serde.core import Array, Report, dataclass, dtype_name
from serde.engine.base import Engine
from serde.engine.fitting import fit_inputs
from serde.onnx.profile import read_supported
from serde.onnx.versions import DEFAULT_TARGET
from serde.target.hybrid import HostEngine, HybridExecutor
from serde.target.module import OnnxModule
from serde.target.onnx import build
from serde.target.partition import Partition, partition_model
from serde.target.storage import check_target

__all__ = ["Split", "split"]


@dataclass(frozen=True, slots=True)
class Split:
    """A model that is split.

    Attributes:
        partition: What went where, and why.
        module: What runs it.
    """

    partition: Partition
    module: OnnxModule


@takes_options(
    reads="format", locations=Locations({"source": "format"}, writes="path", keeps="module")
)
def split(
    source: AnyValue,
    path: str | os.PathLike[str] | None = None,
    *,
    params: AnyValue = None,
    format: str | None = None,
    supported: AnyValue = None,
    opset: int = DEFAULT_TARGET,
    min_nodes: int = 1,
    runs: int = 0,
    runner: str = "onnxruntime",
    host: HostEngine | str | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Split:
    """Return a model of any format in parts for a toolchain and for the host.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework.
        path: Folder or zip archive to write, or its URL; see
            :meth:`serde.target.module.OnnxModule.save`.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        supported: What the toolchain takes: see :mod:`serde.onnx.profile`.
        opset: Version of the operator set that regions are written in.
        min_nodes: Least number of Relay's operators in a region.
        runs: Sets of seeded inputs on which the split model is compared with the source, before
            it is put in place.
        runner: What runs the regions then.
        host: What runs the rest then; see :class:`~serde.target.hybrid.HybridExecutor`.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages and verdicts.
        options: Options of the source, such as ``input_shapes``.

    Raises:
        CheckError: The split model gives something else than the source.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown, missing or cannot be used.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of the source cannot be read.
    """
    report = Report() if report is None else report
    rules = read_supported(supported)
    rules.require_opset(opset)
    if path is not None:
        check_target(path, source_paths(source))
    reader = source_bridge(source, format)
    bound = reader.bind_import(options)
    loaded, model = read_model(reader, source, params, bound, report)
    with report.stage("partition"):
        found = partition_model(
            model, opset=opset, supported=rules, min_nodes=min_nodes, report=report
        )
    with report.stage("build"):
        module = build(found.model, report=report)
    if runs:
        with report.stage("check"):
            own, other = reader.engine(loaded, model), HybridEngine(module, runner, host)
            compare(own, other, model, runs=runs, report=report)
        raise_if_differs(report, "the split model", source_name(source))
    if path is not None:
        with report.stage("save"):
            module.save(path)
    return Split(found, module)


def source_name(source: AnyValue) -> str:
    """Return what messages call a source."""
    paths = source_paths(source)
    return os.fspath(paths[0]) if paths else type(source).__name__


class HybridEngine(Engine):
    """A split model as an engine of checks.

    Args:
        module: The module.
        runner: What runs its regions.
        host: What runs the rest.
    """

    def __init__(
        self, module: OnnxModule, runner: str = "onnxruntime", host: HostEngine | str | None = None
    ) -> None:
        self.name = "hybrid executor"
        self._executor = HybridExecutor(module, runner=runner, host=host)
        self.inputs = {port.name: dtype_name(port.type.dtype) for port in module.program.inputs}
        self.outputs = list(self._executor.outputs)

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run all parts."""
        return self._executor.run(fit_inputs(self.name, self.inputs, inputs))
