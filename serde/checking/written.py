"""A model that was converted: what runs its source, and what its target must compute."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any as AnyValue

from serde.bridge import AnyBridge
from serde.checking.checks import locate_difference
from serde.checking.engines import engine_for_path, renamed_engine
from serde.checking.tolerance import CheckOptions
from serde.checking.verdict import compare, raise_if_differs
from serde.conversion.prepare import PrepareOptions
from serde.engine.base import Engine
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import RelayModel
from serde.report import Report

__all__ = ["WrittenModel"]


@dataclass(frozen=True)
class WrittenModel:
    """A model between its source and its target.

    Attributes:
        reader: The source's format.
        loaded: The source as it was loaded.
        model: The source as Relay.
        part: The part of it that was wanted, under the names that were.
        is_whole: Whether the part is all of it.
        writer: The target's format.
        native: The target.
        options: Options of the target's format.
        passes: Options of the passes between.
    """

    reader: AnyBridge
    loaded: AnyValue
    model: RelayModel
    part: RelayModel
    is_whole: bool
    writer: AnyBridge
    native: AnyValue
    options: AnyValue
    passes: PrepareOptions

    @cached_property
    def expected(self) -> RelayModel:
        """What the target must compute, under the names that it uses."""
        return self.writer.expected(self.part, self.native, self.options)

    def open_source(self) -> Engine:
        """Return what runs the source: its own engine, or the interpreter where it is changed."""
        if self.expected.mod is not self.part.mod or not self.is_whole:
            return RelayEngine(self.expected)
        own_names = self.reader.engine(self.loaded, self.model)
        return renamed_engine(own_names, self.passes.rename_inputs, self.passes.rename_outputs)

    @cached_property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs in the target, in the source's order."""
        return self.writer.names(self.native).outputs

    @property
    def computes_float16(self) -> bool:
        """Whether the target was asked to compute in float16."""
        return bool(self.passes.float16 or self.options.computes_float16)

    def check(self, path: Path, wanted: CheckOptions, *, report: Report, target: object) -> None:
        """Compare what a file computes with the source, if that is wanted.

        Args:
            path: The target's file, which need not be in place.
            wanted: How.
            report: Gets the verdicts.
            target: What errors call it.

        Raises:
            CheckError: It differs, or could not be compared.
        """
        if not wanted.is_asked:
            return
        with report.stage("check"), ExitStack() as running:
            compare(
                running.enter_context(closing(self.open_source())),
                running.enter_context(closing(engine_for_path(self.writer, path))),
                self.expected,
                runs=wanted.runs,
                tolerance=wanted.tolerance,
                dims=wanted.dims,
                data=wanted.data,
                float16=self.computes_float16,
                yardstick=wanted.yardstick,
                recorded=self.outputs,
                report=report,
            )
        if wanted.yardstick:
            locate_difference(
                report, self.expected, self.writer, path, wanted.dims, wanted.data, self.outputs
            )
        raise_if_differs(report, target, "the source")
