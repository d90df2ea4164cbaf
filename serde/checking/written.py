"""A model that was converted: what runs its source, and what its target must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path

from serde.checking.checks import locate_difference, wide_flag
from serde.checking.engines import engine_for_path, renamed_engine, source_engine
from serde.checking.generating import OverFixedCaches, Prompts, compare_as_used, generates
from serde.checking.inputs import InputSets, random_inputs
from serde.checking.sizes import resolve_dims
from serde.checking.tolerance import CheckOptions
from serde.checking.verdict import raise_if_differs
from serde.conversion.steps import Conversion
from serde.core import Array, Report, dataclass
from serde.engine.base import Engine
from serde.engine.fitting import match_names
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
        model = with_batch(made.chosen, made.passes.cache_batch or 1)
        return rename(model, inputs, made.passes.rename_outputs)

    @property
    def compared(self) -> RelayModel:
        """The model for whose inputs source and target are run."""
        return self.growing or self.expected

    def open_target(self, path: Path) -> Engine:
        """Return what runs the target at a path, caches that are given as long as the source's."""
        engine = engine_for_path(self.conversion.writer, path)
        if self.growing is None:
            return engine
        return OverFixedCaches(engine, self.conversion.part, self.growing)

    def open_source(self) -> Engine:
        """Return what runs the source: its own engine, or the interpreter where it is changed."""
        made = self.conversion
        changed = self.growing is None and self.expected.mod is not made.part.mod
        if changed or not made.is_whole:
            return RelayEngine(self.compared)
        own_names = source_engine(made.reader, made.loaded, made.model)
        return renamed_engine(own_names, made.passes.rename_inputs, made.passes.rename_outputs)

    @cached_property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs in the target, in the source's order."""
        if self.growing is not None:
            return self.growing.meta.outputs
        return self.conversion.writer.names(self.conversion.native).outputs

    def given(self, model: RelayModel, sample: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return a sample by other names of inputs; a drawn one where caches have other lengths."""
        if self.growing is not None:
            return random_inputs(model, seed=0, lengths=resolve_dims(model))
        names = match_names([each.name_hint for each in model.inputs()], list(sample))
        return {name: sample[other] for name, other in names.items()}

    def samples(self, source: Engine, target: Engine, check: CheckOptions) -> InputSets:
        """Return inputs on which they are compared; without data prompts of what generates."""
        data, model = check.data, self.compared
        if data is None and generates(model):
            data = Prompts(model, check.dims).samples(source, padded=False)
        return InputSets(
            model, source, target, report=Report(), runs=max(1, check.runs), data=data,
            dims=check.dims, float16=self.computes_float16,
        )  # fmt: skip

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
        with report.stage("check"), ExitStack() as running:
            failing = compare_as_used(
                running.enter_context(closing(self.open_source())),
                running.enter_context(closing(self.open_target(path))), self.compared,
                runs=wanted.runs, tolerance=wanted.tolerance, dims=wanted.dims, data=wanted.data,
                float16=self.computes_float16, yardstick=wanted.yardstick, recorded=self.outputs,
                wide_flag=wide_flag(None if made.passes.float16 else made.options), report=report,
            )  # fmt: skip
        if wanted.yardstick and failing is not None and self.growing is None:
            locate_difference(report, self.expected, writer, path, failing, self.outputs)
        raise_if_differs(report, target, "the source")
