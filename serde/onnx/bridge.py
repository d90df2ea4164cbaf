"""ONNX's side of the bridge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any as AnyValue
from typing import Literal

from serde.bridge import Bridge, ExportOptions
from serde.relay.model import RelayModel
from serde.report import Report

__all__ = ["OnnxBridge", "OnnxExportOptions"]


@dataclass(frozen=True, kw_only=True)
class OnnxExportOptions(ExportOptions):
    """Options of writing ONNX models.

    Attributes:
        opset: Version of the default operator set, from 11 on.
        intermediate_shapes: Note the types of all intermediate values.
        quantized: Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), which rounds halves to even and is to be
            allowed as ``quantised-as-qdq``.
        save_as_external_data: Write weights to ``<name>.onnx.data`` whatever their size.
        external_data_threshold: Write weights there once they exceed this many bytes together;
            the limit of protobuf if left out.
        local_functions: Write global, composite and fused functions as local functions, from
            opset 15 on; otherwise their nodes go where they are called.
    """

    opset: int = field(default=17, metadata={"help": "Version of the default operator set."})
    intermediate_shapes: bool = field(
        default=False, metadata={"help": "Note the types of all intermediate values."}
    )
    quantized: Literal["exact", "qdq"] = field(
        default="exact", metadata={"help": "How quantised operators are written."}
    )
    save_as_external_data: bool = field(
        default=False, metadata={"help": "Write weights to a file of their own."}
    )
    external_data_threshold: int | None = field(
        default=None,
        metadata={"help": "Write weights to a file of their own beyond this many bytes."},
    )
    local_functions: bool = field(
        default=False,
        metadata={"help": "Write functions as local functions, from opset 15 on."},
    )

    @property
    def keeps_functions(self) -> bool:
        """Whether global functions are to stay whole until the bridge sees them."""
        return self.local_functions


class OnnxBridge(Bridge):
    """Writes ONNX models."""

    name = "onnx"
    title = "ONNX"
    suffixes = (".onnx",)
    export_options = OnnxExportOptions

    def detect(self, path: Path) -> bool:
        """Whether `path` holds an ONNX model."""
        from serde.onnx import codec

        return codec.detect(path)

    def from_relay(self, model: RelayModel, options: ExportOptions, *, report: Report) -> AnyValue:
        """Return the model as ONNX."""
        from serde.onnx.lower import from_relay

        own = options if isinstance(options, OnnxExportOptions) else OnnxExportOptions()
        return from_relay(
            model,
            own.opset,
            own.intermediate_shapes,
            report,
            quantized=own.quantized,
            allow=own.allow,
            local_functions=own.local_functions,
        )

    def save(
        self,
        model: AnyValue,
        path: Path,
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model, its weights streamed from where they are."""
        from serde.onnx import codec

        own = options if isinstance(options, OnnxExportOptions) else OnnxExportOptions()
        return codec.save(
            model,
            path,
            force_external=own.save_as_external_data,
            external_threshold=own.external_data_threshold,
            sources=sources,
            before_commit=before_commit,
        )

    def complete(self, model: AnyValue) -> AnyValue:
        """Return the ``onnx.ModelProto`` with its weights."""
        return model.complete()

    def coverage(self) -> list[tuple[str, str]]:
        """Return the Relay operators that are written, each with the lowest version for it."""
        from serde.onnx.ops import TABLE
        from serde.onnx.versions import LOWEST_TARGET
        from serde.relay.registry import all_ops

        lowest = {
            name: LOWEST_TARGET
            for name, definition in all_ops().items()
            if definition.decompose is not None
        }
        lowest |= {
            name: LOWEST_TARGET if name in lowest else max(since, LOWEST_TARGET)
            for name, since in TABLE.exported().items()
        }
        return [(name, f"from version {since}") for name, since in sorted(lowest.items())]

    def operators(self, model: AnyValue) -> list[str]:
        """Return the operator of every node of the graph, its subgraphs and functions."""
        from serde.onnx.builder import walk_nodes

        graphs = (model.proto.graph, *model.proto.functions)
        return [node.op_type for graph in graphs for node in walk_nodes(graph.node)]
