"""A model that was converted: what runs its source, and what its target must compute."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path

from serde.checking.checks import locate_difference, wide_flag
from serde.checking.engines import engine_for_path, renamed_engine, source_engine
from serde.checking.generating import OverFixedCaches, compare_as_used
from serde.checking.tolerance import CheckOptions
from serde.checking.verdict import raise_if_differs
from serde.conversion.steps import Conversion
from serde.core import Report, dataclass
from serde.engine.base import Engine
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import RelayModel
from serde.relay.transform import rename, with_batch

__all__ = ["WrittenModel"]


@dataclass(frozen=True)
class WrittenModel:
    """What is to be known of a converted model to check it.

    Attributes:
        conversion: The model between its source and its target.
    """

    conversion: Conversion

    @cached_property
    def expected(self) -> RelayModel:
        """What the target must compute, under the names that it uses."""
        made = self.conversion
        return made.writer.expected(made.part, made.native, made.options)

    @cached_property
    def growing(self) -> RelayModel | None:
        """What was wanted before its caches got a fixed length; None if they did not."""
        made = self.conversion
        if made.passes.cache_length is None:
            return None
        known = {*made.chosen.meta.inputs}
        inputs = {old: new for old, new in made.passes.rename_inputs.items() if old in known}
        return rename(
            with_batch(made.chosen, made.passes.cache_batch or 1),
            inputs,
            made.passes.rename_outputs,
        )

    def open_source(self) -> Engine:
        """Return what runs the source: its own engine, or the interpreter where it is changed."""
        made, model = self.conversion, self.growing or self.expected
        changed = self.growing is None and model.mod is not made.part.mod
        if changed or not made.is_whole:
            return RelayEngine(model)
        own_names = source_engine(made.reader, made.loaded, made.model)
        return renamed_engine(own_names, made.passes.rename_inputs, made.passes.rename_outputs)

    @cached_property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs in the target, in the source's order."""
        return self.conversion.writer.names(self.conversion.native).outputs

    @property
    def computes_float16(self) -> bool:
        """Whether the target was asked to compute in float16."""
        made = self.conversion
        return bool(made.passes.float16 or made.options.computes_float16)

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
        made, writer = self.conversion, self.conversion.writer
        growing, recorded = self.growing, self.outputs
        with report.stage("check"), ExitStack() as running:
            reference = running.enter_context(closing(self.open_source()))
            candidate = running.enter_context(closing(engine_for_path(writer, path)))
            if growing is not None:
                recorded = growing.meta.outputs
                candidate = OverFixedCaches(candidate, made.part, growing)
            failing = compare_as_used(
                reference, candidate, growing or self.expected,
                runs=wanted.runs, tolerance=wanted.tolerance, dims=wanted.dims, data=wanted.data,
                float16=self.computes_float16, yardstick=wanted.yardstick, recorded=recorded,
                wide_flag=wide_flag(None if made.passes.float16 else made.options), report=report,
            )  # fmt: skip
        if wanted.yardstick and failing is not None and growing is None:
            locate_difference(report, self.expected, writer, path, failing, self.outputs)
        raise_if_differs(report, target, "the source")
