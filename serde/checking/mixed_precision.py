"""Which nodes stay in float32, so that the rest in float16 is as near to the source as is asked.

By Relay, which rounds after each operator, and by the target's runtime, which may not in between.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from serde.checking.accuracy import measure_accuracy
from serde.checking.distance import cosine
from serde.checking.inputs import InputSets
from serde.checking.sensitivity import fewest, rank
from serde.checking.tolerance import CheckOptions
from serde.checking.written import WrittenModel
from serde.checking.yardstick import Yardstick
from serde.conversion.prepare import PrepareOptions
from serde.conversion.steps import Conversion, prepare_for
from serde.core import Report, replace
from serde.core.limits import budget
from serde.core.report import OutputAccuracy
from serde.errors import CheckError, UnsupportedModelError
from serde.relay.run.arithmetic import Rounded
from serde.relay.transform import saturate_masks

__all__ = ["find_wide_names"]


def find_wide_names(
    made: Conversion, *, least: float, check: CheckOptions, report: Report
) -> PrepareOptions:
    """Return the options of the passes with the nodes that stay in float32.

    Args:
        made: The source as it was read, and what is wanted of it.
        least: Cosine of every output and sample.
        check: The samples.
        report: Gets the nodes as ``op_block_list``, the cosine and the number of runs.

    Raises:
        CheckError: With all nodes in float32 the target is not near enough, or it cannot run.
    """
    keep, plain = made.passes.op_block_list, replace(made.passes, float16=False)
    tried: dict[frozenset[str], list[OutputAccuracy]] = {}

    def passes(names: frozenset[str]) -> PrepareOptions:
        return replace(made.passes, float16=True, op_block_list=keep | names)

    with report.stage("float16"), ExitStack() as running:
        with budget().lent():
            wide = replace(made.written(plain, Report()), passes=passes(frozenset()))
            model = prepare_for(made.writer, made.part, plain, made.options, Report())
            model, _ = saturate_masks(model, keep)
        written = WrittenModel(wide)
        source = running.enter_context(closing(written.open_source()))
        samples = written.samples(source, source, check)
        first = written.given(model, next(iter(samples)))
        rounding, ranking = Yardstick(model).at(first), rank(model, first)

        def rounded(names: frozenset[str]) -> list[float]:
            return [*map(cosine, rounding.exact, rounding.run(Rounded(keep | names)))]

        limits = [min(least, each) for each in rounded(ranking[-1])]  # Loops are rounded always.

        @cache
        def enough(names: frozenset[str]) -> bool:
            if any(found < limit for found, limit in zip(rounded(names), limits, strict=True)):
                return False
            with suppress(UnsupportedModelError):  # What is beyond float16 is refused.
                tried[names] = _measure(made, passes(names), samples)
            return names in tried and all(each.after.worst_cosine >= least for each in tried[names])

        found = fewest(ranking, enough)
    if found is None:
        rows = tried.get(ranking[-1]) or _measure(made, passes(ranking[-1]), samples)
        report.accuracy = [replace(x, passed=x.after.worst_cosine >= least) for x in rows]
        most = min(each.after.worst_cosine for each in rows)
        told = f"float16: cosine {most:.9g} with all nodes in float32, expected {least:g}"
        raise CheckError(told, report)
    names, runs = ",".join(sorted(keep | found)), len(tried)
    reached = round(min(each.after.worst_cosine for each in tried[found]), 9)
    report.facts |= {"op_block_list": names, "float16_cosine": reached, "float16_runs": runs}
    stay = f"--op-block-list {names}" if names else "nothing has to stay float32"
    report.notes.append(f"float16: {stay}; least cosine {reached}, target runs: {runs}")
    return passes(found)


def _measure(plan: Conversion, passes: PrepareOptions, samples: InputSets) -> list[OutputAccuracy]:
    """Return how near the target comes by other options of the passes; it is written and run."""
    with budget().lent(), TemporaryDirectory() as folder:
        made, source = plan.written(passes, Report()), samples.reference
        path = Path(folder) / f"model{made.writer.suffixes[0]}"
        made.writer.save(made.native, path, made.options)
        tried = WrittenModel(made)
        with closing(tried.open_target(path)) as engine:
            return measure_accuracy(source, source, engine, samples, tried.outputs)[0]
