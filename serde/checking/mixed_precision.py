"""Which nodes stay in float32, so that the rest in float16 is as near to the source as is asked.

An exact run of the model ranks its nodes. How many of them stay, and which of these need not, is
decided by two: Relay, rounding what each operator reads and yields, as an accelerator does, and
what runs the target. The runtime of a processor may widen float16 and round nothing in between.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from serde.checking.distance import cosine
from serde.checking.sensitivity import fewest, rank_for_float16
from serde.checking.tolerance import CheckOptions
from serde.checking.written import WrittenModel
from serde.checking.yardstick import Yardstick
from serde.conversion.prepare import PrepareOptions
from serde.conversion.steps import Conversion, prepare_for
from serde.core import Report, replace
from serde.core.limits import budget, spending
from serde.engine.base import Engine
from serde.errors import CheckError, UnsupportedModelError
from serde.relay.ir import RelayModel
from serde.relay.run.arithmetic import Rounded
from serde.relay.transform import saturate_masks

__all__ = ["find_wide_names"]

_LEAST = 0.999
"""Cosine that is asked for if nobody says it."""


def find_wide_names(made: Conversion, *, report: Report, check: CheckOptions) -> PrepareOptions:
    """Return the options of the passes with the nodes that stay in float32.

    Args:
        made: The source as it was read, and what is wanted of it.
        report: Gets the nodes as ``op_block_list``, the cosine reached and the number of runs.
        check: The samples.

    Raises:
        CheckError: With all nodes in float32 the target is not near enough, or it cannot run.
        UnsupportedModelError: The target cannot be written, with all nodes in float32 neither.
    """
    passes = made.passes
    least = _LEAST if passes.min_cosine is None else passes.min_cosine
    wide = replace(passes, float16=False, op_block_list=frozenset(), min_cosine=None)
    with report.stage("float16"), spending(), ExitStack() as running:
        with budget().lent():
            written = WrittenModel(made.written(wide, Report()))
        source = running.enter_context(closing(written.open_source()))
        trials = _Trials(made, source, written, check, least)
        found = fewest(trials.ranking, trials.enough)
        if found is None:
            raise trials.refusal(report)
    names = ",".join(sorted(found | trials.kept))
    reached, runs = round(trials.reached[found], 9), len(trials.reached)
    report.facts |= {
        "op_block_list": names, "float16_cosine": reached, "float16_runs": runs,
    }  # fmt: skip
    stay = f"--op-block-list {names}" if names else "nothing has to stay float32"
    ran = f"{runs} run{'s' if runs > 1 else ''} of the target"
    report.notes.append(f"float16: {stay}; least cosine {reached:.9g} in {ran}")
    return trials.passes(found)


class _Trials:
    """Targets that were written and run, each with some nodes in float32.

    Args:
        made: The conversion.
        source: Runs the source.
        written: The target in float32.
        check: The samples.
        least: Cosine that is asked for.

    Attributes:
        kept: Names that stay float32 in any case.
        ranking: The order in which nodes suffer.
        reached: The least cosine by the names of other nodes that were kept; the run of one that
            is not near enough ends at the sample that shows it.
    """

    def __init__(
        self, made: Conversion, source: Engine, written: WrittenModel, check: CheckOptions,
        least: float,
    ) -> None:  # fmt: skip
        self._made, self._least = made, least
        self.kept = made.passes.op_block_list
        as_float16 = WrittenModel(replace(written.conversion, passes=self.passes(frozenset())))
        self._samples = as_float16.kept_samples(source, check)
        with budget().lent():
            model = self._prepared(written.conversion.passes)
            first = written.given(model, self._samples.first())
            self.ranking = rank_for_float16(model, first)
            self._rounding = Yardstick(model).at(first)
        self.reached: dict[frozenset[str], float] = {}
        self._refused: UnsupportedModelError | None = None

    def passes(self, names: frozenset[str]) -> PrepareOptions:
        """Return the options with which some nodes stay float32."""
        keep = self.kept | names
        return replace(self._made.passes, float16=True, op_block_list=keep, min_cosine=None)

    def _prepared(self, passes: PrepareOptions) -> RelayModel:
        """Return the model in float32 that becomes float16."""
        made = self._made
        model = prepare_for(made.writer, made.part, passes, made.options, Report())
        return saturate_masks(model, self.kept)

    def enough(self, names: frozenset[str]) -> bool:
        """Whether the target is near enough to the source with some nodes in float32."""
        rounded = self._rounding.run(Rounded(self.kept | names))
        if any(
            cosine(*pair) < self._least for pair in zip(self._rounding.exact, rounded, strict=True)
        ):
            return False
        if names not in self.reached:
            try:
                self.reached[names] = self._measure(names)
            except UnsupportedModelError as error:
                self._refused, self.reached[names] = error, -1.0
        return self.reached[names] >= self._least

    def refusal(self, report: Report) -> Exception:
        """Return why nothing is enough."""
        if self._refused is not None and self.reached[[*self.reached][-1]] == -1.0:
            return self._refused
        best = max(self.reached.values(), default=-1.0)
        return CheckError(
            f"float16: least cosine {best:.9g} with all nodes in float32, expected {self._least:g}",
            report, differs=True,
        )  # fmt: skip

    def _measure(self, names: frozenset[str]) -> float:
        bridge = self._made.writer
        with budget().lent(), TemporaryDirectory() as folder, ExitStack() as running:
            tried = WrittenModel(self._made.written(self.passes(names), Report()))
            path = Path(folder) / f"model{bridge.suffixes[0]}"
            bridge.save(tried.conversion.native, path, self._made.options)
            engine = running.enter_context(closing(tried.open_target(path)))
            for found in self._samples.compare(engine, tried.outputs):
                if found.worst < self._least:
                    break
        return found.worst
