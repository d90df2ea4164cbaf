"""Regions as modules of their own: ONNX models."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

import onnx

from serde.errors import OptionError
from serde.onnx import codec
from serde.onnx.model import OnnxModel
from serde.target.program import Port
from serde.target.runners import open_runner

__all__ = ["TYPE_KEY", "RegionModule"]

TYPE_KEY: Final = "onnx"


class RegionModule:
    """One region, a module as TVM's runtime has them.

    Attributes:
        name: Name of its function.
        native: The ONNX model; its weights stay where they are.
        inputs: What it takes, in order.
        outputs: What it gives, in order.
        path: The file that it is in; None where it is in memory alone.
        type_key: ``"onnx"``.
        imported_modules: None: a region imports nothing.
    """

    type_key = TYPE_KEY

    def __init__(
        self,
        name: str,
        native: OnnxModel,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        path: Path | None = None,
    ) -> None:
        self.name = name
        self.native = native
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.path = path
        self.imported_modules: tuple[RegionModule, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Operators of the nodes, in order."""
        return tuple(node.op_type for node in self.native.proto.graph.node)

    def proto(self) -> onnx.ModelProto:
        """Return the model with its weights.

        Raises:
            OptionError: It exceeds what protobuf can hold; save it instead.
        """
        return self.native.complete()

    def get_source(self, fmt: str = "") -> str:
        """Return the model as text, without its weights.

        Raises:
            OptionError: `fmt` is neither ``""``, ``"text"`` nor ``"onnx"``.
        """
        if fmt not in ("", "text", "onnx"):
            raise OptionError(f"region {self.name}: expected format text, found {fmt!r}")
        return str(onnx.printer.to_text(self.native.proto))

    def get_function(self, name: str) -> Callable[..., AnyValue]:
        """Return what runs the region on arrays by position, by ONNX Runtime.

        Raises:
            OptionError: Its function has another name.
        """
        if name != self.name:
            raise OptionError(f"no function is called {name} (there is: {self.name})")
        run = open_runner("onnxruntime", self)

        def call(*args: AnyValue) -> AnyValue:
            results = run(args)
            return results[0] if len(results) == 1 else tuple(results)

        return call

    def save(self, path: str | os.PathLike[str], fmt: str = "onnx") -> Path:
        """Write the model, for which ``"onnx"`` is the only format.

        Raises:
            OptionError: There is no such format, or the path cannot be written.
        """
        if fmt != "onnx":
            raise OptionError(f"region {self.name}: expected format onnx, found {fmt!r}")
        return codec.save(self.native, path)

    save_to_file = save

    def __repr__(self) -> str:
        return f"RegionModule({self.name}, {len(self.nodes)} nodes)"
