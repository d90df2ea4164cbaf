"""The numeric verdict of a conversion: two engines, the same inputs, one line an output.

An output *agrees*, or *differs*, or *says nothing*: one that is all equal, all NaN or below its
own rounding is the same whether the target is right or not. What agrees at once by the quick
rule is done; the rest is measured by the exact result (:mod:`serde.checking.judgement`,
:mod:`serde.checking.yardstick`), where sorting and suppression decide as rows
(:mod:`serde.checking.rows`).

The exact result is made of the Relay that the source was read as, so an error of reading would
be in it, too. The source's own engine tells: where its distance is more than rounding explains,
the verdict is that the output differs, whatever the target says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from serde.checking.data import CheckData
from serde.checking.distance import Distance, deviation, distance, ratio, same
from serde.checking.exercise import TriedInputs
from serde.checking.inputs import InputSets
from serde.checking.judgement import (
    DEFAULT_TOLERANCES,
    OTHER_SHAPE,
    RANDOM,
    USELESS,
    Rule,
    Tolerance,
    floor_of,
    judge_output,
    last_rounding,
    resolve_tolerance,
    silence,
    within,
)
from serde.checking.outputs import match_outputs, other_shape
from serde.checking.rows import explain_rows
from serde.checking.sensitivity import find_wide_nodes
from serde.checking.yardstick import Measured, Yardstick
from serde.core import Array, OutputVerdict, Report, dtype_name
from serde.engine.base import Engine, run_engine
from serde.errors import CheckError
from serde.relay.ir import Any, Call, Expr, RelayModel, Tuple, TypeOnly, trait_of, value_types
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, post_order
from serde.relay.transform.purity import is_random

__all__ = ["DEFAULT_TOLERANCES", "Rule", "Tolerance", "compare", "judge_output", "raise_if_differs"]

_LOG = logging.getLogger(__name__)

_SUSPECT = 1e-4
"""Distance of a source, in deviations, that is not taken for rounding without another look."""

_EXPLAINED = 20.0
"""How many times as far as the interpreter an engine may be: MXNet was up to 8 times (ICNet)."""

_NEAR = 1e-3
_NEAR_FLOAT16 = 5e-2
"""Part of a column's deviation within which two rows are taken for one; then they are measured."""


def compare(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    *,
    report: Report,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    data: CheckData | None = None,
    float16: bool = False,
    yardstick: bool = True,
    recorded: Sequence[str] | None = None,
    seed: int = 0,
    wide_flag: str = "--op-block-list",
) -> Mapping[str, Array] | None:
    """Run two engines on the same inputs and add a verdict for each output to the report.

    The verdict of an output is that of its worst run.

    Args:
        reference: Runs the source.
        candidate: Runs the target.
        model: The source as Relay: names, types and what limits the inputs.
        report: Gets ``verdicts``, ``engines`` and notes.
        runs: Number of sets of inputs.
        tolerance: What is accepted; it decides alone where it is given.
        dims: Lengths of dynamic dimensions; see :func:`serde.checking.sizes.resolve_dims`.
        data: Inputs of a user, instead of drawn ones.
        float16: The target was asked to compute in float16: inputs are values that float16
            holds, a float32 output may come as float16, and its rounding is float16's.
        yardstick: Whether what does not agree at once is measured by the exact result.
        recorded: Names of the outputs in the target, in the source's order, where a
            conversion has recorded them.
        seed: Seed of the inputs.
        wide_flag: What a conversion calls the option that leaves nodes in float32.

    Returns:
        The first inputs for which an output that the target has differs; None where none does.

    Raises:
        CheckError: An engine failed, or the source has no outputs.
        OptionError: `dims` names a dimension that does not exist, or `data` does not fit.
    """
    report.engines = (reference.name, candidate.name)
    _LOG.debug("engines: %s runs the source, %s the target", *report.engines)
    if not reference.outputs:
        raise CheckError(f"{reference.name}: the source has no outputs to compare")
    sets = InputSets(
        model, reference, candidate, report=report, runs=runs, dims=dims, data=data,
        float16=float16, seed=seed,
    )  # fmt: skip
    chosen = Tolerance() if tolerance is None else tolerance
    codes = candidate.computes_on_codes
    if codes:
        report.notes.append("the target computes on codes, each a step off or none; judged as such")
    measure = Yardstick(model, float16=float16, codes=codes) if yardstick else None
    exact = None if chosen.given else measure
    rule = Rule(chosen, float16, exact is not None, wide_flag)
    comparison = _Comparison(sets.reference, candidate, model, rule, exact, report)
    comparison.match(recorded)
    tried = TriedInputs(comparison.run, measure, report)
    for inputs in sets:
        tried.run(inputs)
    tried.draw_otherwise(sets, float16=float16)
    report.verdicts += tried.verdicts
    return tried.failing


def raise_if_differs(report: Report, target: object, source: object) -> None:
    """Raise where the verdict is not that the target is right.

    Raises:
        CheckError: An output differs, or none of them can tell.
    """
    if report.passed:
        return
    if report.says_nothing:
        whys = "; ".join(dict.fromkeys(v.remark for v in report.verdicts))
        raise CheckError(
            f"{target}: the outputs say nothing about it: {whys} "
            "(inputs for which they do can be given by check_data)",
            report,
        )
    raise CheckError(f"{target}: the numbers differ from those of {source}", report)


class _Comparison:
    """Two engines, and what their outputs are judged by."""

    def __init__(
        self,
        reference: Engine,
        candidate: Engine,
        model: RelayModel,
        rule: Rule,
        yardstick: Yardstick | None,
        report: Report,
    ) -> None:
        self._reference = reference
        self._candidate = candidate
        self._rule = rule
        self._model = model
        self._yardstick = yardstick
        self._report = report
        count, inputs = len(reference.outputs), set[Expr](model.inputs())
        self._changing = _depending(model, count, inputs.__contains__, unknown=True)
        self._drawn = _depending(model, count, _is_draw, unknown=False)
        self._places: list[int | None] = []

    def match(self, recorded: Sequence[str] | None) -> None:
        """Decide which output of the target belongs to which of the source."""
        names, others = self._reference.outputs, self._candidate.outputs
        self._places = match_outputs(names, others, recorded)
        found = [place for place in self._places if place is not None]
        if found != sorted(found):
            self._report.notes.append("the target's outputs come in another order")
        left = [others[place] for place in range(len(others)) if place not in found]
        if left:
            self._report.notes.append(f"the target has further outputs: {', '.join(left)}")

    def run(self, inputs: Mapping[str, Array]) -> list[OutputVerdict]:
        """Return a verdict for each output of the source."""
        expected = run_engine(self._reference, inputs)
        results = run_engine(self._candidate, inputs)
        found = self.match_outputs(results)
        verdicts = [self.judge(at, expected[at], found[at]) for at in range(len(expected))]
        open_ = [
            at
            for at, (verdict, value) in enumerate(zip(verdicts, found, strict=True))
            if verdict.failed and value is not None
        ]
        if self._yardstick is None or not open_:
            return verdicts
        with self._report.stage("yardstick"):
            measured = self._yardstick.at(inputs)
            return _Measuring(self, measured, expected, found, inputs).judge(verdicts, open_)

    def match_outputs(self, results: Sequence[Array]) -> list[Array | None]:
        """Return the target's results in the order of the source's outputs."""
        return [None if place is None else results[place] for place in self._places]

    def is_open(self, at: int) -> bool:
        """Whether the values of inputs may decide how long an output is."""
        types = value_types(self._model.main.body.type)
        type_ = types[at] if at < len(types) else None
        return not isinstance(type_, TensorType) or any(isinstance(d, Any) for d in type_.shape)

    def judge(self, at: int, expected: Array, found: Array | None) -> OutputVerdict:
        """Return the verdict of an output by the quick rule."""
        name, place = self._reference.outputs[at], self._places[at]
        target = None if place is None else self._candidate.outputs[place]
        verdict = judge_output(name, expected, found, self._rule, target)
        if not _is_finite(expected):
            note = f"output {name} of the source is not finite everywhere"
            if note not in self._report.notes:
                self._report.notes.append(note)
        if found is None or found.shape != expected.shape:
            return verdict
        if self._drawn[at]:
            return replace(verdict, passed=False, informative=False, remark=RANDOM)
        if not self._changing[at]:
            return verdict
        why = silence(expected, self._rule.computed_dtype(*verdict.dtypes))
        if why and (verdict.passed or _is_alike(expected, found, verdict)):
            return replace(verdict, passed=False, informative=False, remark=why)
        return verdict


class _Measuring:
    """One run's outputs that did not agree at once, beside the exact ones."""

    def __init__(
        self,
        comparison: _Comparison,
        measured: Measured,
        expected: Sequence[Array],
        found: Sequence[Array | None],
        inputs: Mapping[str, Array],
    ) -> None:
        self._comparison = comparison
        self._rule = comparison._rule
        self._measured = measured
        self._expected = list(expected)
        self._found = list(found)
        self._inputs = inputs
        self._faulty = False
        self._faults: dict[int, str] = {}

    def judge(self, verdicts: Sequence[OutputVerdict], open_: Sequence[int]) -> list[OutputVerdict]:
        """Return the verdicts, those of `open_` by the exact result.

        An engine that errs in what it fuses, as MXNet with oneDNN does in some nets, is asked
        again without that: the source's where rounding does not explain what it yields, the
        target's where it is found wrong.
        """
        judged = self._judge(verdicts, open_)
        for engine in (self._comparison._reference, self._comparison._candidate):
            failed = [at for at in open_ if judged[at].failed]
            if not failed or (engine is self._comparison._reference and not self._faulty):
                continue
            if self._run_plainly(engine):
                again = [
                    self._comparison.judge(at, self._expected[at], self._found[at])
                    if at in failed
                    else judged[at]
                    for at in range(len(judged))
                ]
                judged = self._judge(again, [at for at in failed if again[at].failed])
        return judged

    def _judge(
        self, verdicts: Sequence[OutputVerdict], open_: Sequence[int]
    ) -> list[OutputVerdict]:
        judged = list(verdicts)
        for at in open_:
            judged[at] = self._judge_output(at, verdicts[at])
        return self._judge_tables(judged, [at for at in open_ if judged[at].failed])

    def _run_plainly(self, engine: Engine) -> bool:
        """Take an engine's results without its optimisations, if it can leave them off."""
        plain = engine.unoptimized()
        if plain is None:
            return False
        with closing(plain):
            results = run_engine(plain, self._inputs)
        if engine is self._comparison._reference:
            self._expected = results
        else:
            self._found = self._comparison.match_outputs(results)
        note = (
            f"{engine.name} was asked again without {engine.optimizer}, "
            "with which it differs from itself"
        )
        if note not in self._comparison._report.notes:
            self._comparison._report.notes.append(note)
        return True

    def _judge_output(self, at: int, verdict: OutputVerdict) -> OutputVerdict:
        """Judge an output element by element."""
        exact, found = self._measured.exact[at], self._found[at]
        shape, decided = verdict.shapes[0], self._measured.decided[at]
        if exact.shape != shape and verdict.remark == OTHER_SHAPE and not decided:
            engine = self._comparison._reference.name
            what = other_shape(self._comparison._model, engine, shape, exact.shape)
            return replace(verdict, remark=what)
        if found is None or exact.shape != found.shape or exact.shape != shape:
            return verdict
        if verdict.remark:
            return verdict
        dtype = self._rule.computed_dtype(*verdict.dtypes)
        finite = np.isfinite(exact.astype(np.float64)) & _finite(self._expected[at])
        unlike = ~(finite & _finite(found))
        unlike &= ~same(self._expected[at], found) & ~same(exact, found)
        if np.any(unlike):
            return replace(verdict, remark=_unlike(self._expected[at], found, unlike))
        target = distance(found, exact, finite)
        scale = deviation(exact[finite])
        floor = floor_of(exact[finite], dtype)
        source, fault = self._judge_source(at, finite, verdict.dtypes[0])
        own = source.or_more(last_rounding(exact[finite], dtype))
        if _is_narrow(dtype) or not within(target, own, floor, dtype, exact.size):
            own = own.or_more(distance(self._measured.rounded[at], exact, finite))
        passed = within(target, own, floor, dtype, exact.size)
        figures = replace(
            verdict,
            distance=ratio(target.mean, scale),
            own=ratio(own.mean, scale),
            atol=floor.mean,
            rtol=0.0,
        )
        if _is_whole(exact):
            if fault:
                self._faults[at] = fault
            return replace(figures, passed=target.most == 0.0 and source.most == 0.0)
        if self._measured.decided[at]:
            if fault or own.mean > _near(dtype) * scale:
                return figures  # Rows may have changed places; then they are to be compared.
        elif fault:
            return replace(figures, own=ratio(source.mean, scale), remark=fault)
        if passed and source.mean > USELESS * scale:
            return replace(
                figures,
                informative=False,
                remark=f"rounding alone moves the source by {figures.own:.1g} of its deviation",
            )
        if passed and target.mean > USELESS * scale:
            return replace(figures, remark=self._cure(at, dtype, target.mean / scale))
        return replace(figures, passed=passed)

    def _cure(self, at: int, dtype: str, far: float) -> str:
        """Return how far rounding moves an output, and what to leave in float32 against it."""
        told = f"{dtype} moves it by {far:.1g} of its deviation"
        if dtype != "float16" or not self._rule.float16:
            return told
        names, left = find_wide_nodes(self._measured, at, min(USELESS, far) / 2)
        flag = self._rule.wide_flag
        return f"{told}; {flag} {','.join(names)}: by {left:.1g}" if names else told

    def _judge_source(self, at: int, finite: Array, dtype: str) -> tuple[Distance, str]:
        """Return the source's own distance, and what is wrong if rounding does not explain it."""
        exact = self._measured.exact[at]
        own = distance(self._expected[at], exact, finite)
        if own.mean <= _SUSPECT * deviation(exact[finite]):
            return own, ""
        declared = distance(self._measured.declared[at], exact, finite)
        own_rounding = declared.or_more(last_rounding(exact[finite], dtype))
        if _is_rounding(own, own_rounding, floor_of(exact[finite], dtype)):
            return own, ""
        self._faulty = True
        far = ratio(own.mean, deviation(exact[finite]))
        name = self._comparison._reference.name
        return own, f"{name} is {far:.1e} from the exact result, which rounding does not explain"

    def _judge_tables(
        self, verdicts: list[OutputVerdict], failed: Sequence[int]
    ) -> list[OutputVerdict]:
        """Judge what is left as rows, where it depends on order or jumps."""
        decided = self._measured.decided
        pending = [
            at
            for at in failed
            if (decided[at] or _is_whole(self._expected[at]))
            and verdicts[at].remark in ("", OTHER_SHAPE)
        ]
        if not pending:
            return verdicts
        steps = any(not decided[at] for at in pending)
        tables = sorted({tuple(self._table_of(at)) for at in pending})
        explained: dict[int, OutputVerdict] = {}
        noise = 0.0
        for members, noise in self._measured.run_perturbed(steps=steps):
            for table in tables:
                if not all(at in explained for at in table):
                    explained |= self._as_rows(table, members, noise, verdicts)
            if all(at in explained for at in pending):
                break
        if noise > USELESS:
            what = f"rounding, {noise:.1g} of the deviation of what decides, decides the order"
            for at in pending:
                silent = replace(verdicts[at], informative=False, remark=what)
                explained.setdefault(at, silent)
        for at in pending:
            told = replace(verdicts[at], remark=verdicts[at].remark or self._faults.get(at, ""))
            explained.setdefault(at, told)
        return [explained.get(at, verdict) for at, verdict in enumerate(verdicts)]

    def _table_of(self, at: int) -> list[int]:
        """Return the outputs whose rows belong together: those that decisions made as long."""
        decided, exact = self._measured.decided, self._measured.exact
        lead = exact[at].shape[:2]
        return [
            other
            for other, value in enumerate(exact)
            if other == at or (decided[at] and decided[other] and value.shape[:2] == lead)
        ]

    def _as_rows(
        self,
        table: Sequence[int],
        members: Sequence[Sequence[Array]],
        noise: float,
        verdicts: Sequence[OutputVerdict],
    ) -> dict[int, OutputVerdict]:
        """Return verdicts for outputs that rows explain: together, or each by itself.

        Outputs of one length need not belong together: two heads have an order each.
        """
        explained = self._judge_table(table, members, noise, verdicts)
        if explained or len(table) == 1 or noise > USELESS:
            return explained
        each = [self._judge_table((at,), members, noise, verdicts) for at in table]
        return {at: verdict for found in each for at, verdict in found.items()}

    def _judge_table(
        self,
        table: Sequence[int],
        members: Sequence[Sequence[Array]],
        noise: float,
        verdicts: Sequence[OutputVerdict],
    ) -> dict[int, OutputVerdict]:
        """Return verdicts for the outputs of one table; none if rounding does not explain it.

        It does where the runs in `members` explain the rows of source, target and rounded run,
        and each column of the target is as near to its rows as the source's.
        """
        found = [value for at in table if (value := self._found[at]) is not None]
        if len(found) < len(table):
            return {}
        dtypes = [self._rule.computed_dtype(*verdicts[at].dtypes) for at in table]
        dtype = next(filter(_is_narrow, dtypes), "float32")
        near = max(_near(dtype), 2 * min(noise, USELESS))
        exact = [self._measured.exact[at] for at in table]
        pools = [[member[at] for at in table] for member in members]
        stays = not any(
            self._measured.decided[at]
            or verdicts[at].shapes[0] != verdicts[at].shapes[1]
            or self._comparison.is_open(at)
            for at in table
        )
        target = explain_rows(found, exact, pools, near, in_place=stays)
        if target.fault:
            self._faults |= dict.fromkeys(table, target.fault)
            return {}
        sides = [
            [values[at] for at in table] for values in (self._expected, self._measured.rounded)
        ]
        source, rounded = (
            explain_rows(each, exact, pools, near, target.axis, in_place=stays) for each in sides
        )
        if source.fault or rounded.fault:
            return {}
        columns = zip(target.columns, target.apart, source.apart, rounded.apart, strict=True)
        for values, apart, own, other in columns:
            rounding = own.or_more(other).or_more(last_rounding(values, dtype))
            if not within(apart, rounding, floor_of(values, dtype), dtype, values.size):
                return {}
        what = f"{target.moved} of {target.rows} rows swapped within {noise:.1e}"
        return {
            at: replace(verdicts[at], passed=True, remark=what if target.moved else "")
            for at in table
        }


def _near(dtype: str) -> float:
    return _NEAR_FLOAT16 if _is_narrow(dtype) else _NEAR


def _is_narrow(dtype: str) -> bool:
    return dtype in ("float16", "bfloat16")


def _is_rounding(own: Distance, declared: Distance, floor: Distance) -> bool:
    """Whether a distance is what rounding to the declared dtypes makes, or a small multiple."""
    limit = declared.scaled(_EXPLAINED)
    return own.mean <= limit.mean + floor.mean and own.most <= limit.most + floor.most


def _depending(
    model: RelayModel, count: int, starts: Callable[[Expr], bool], *, unknown: bool
) -> list[bool]:
    """Return, for each output, whether it is computed from the values of certain nodes.

    Args:
        model: The model.
        count: Number of outputs.
        starts: Whether a node is one of these.
        unknown: What is returned of outputs that are not those of the model.
    """
    depending: set[Expr] = set()
    for node in post_order(model.main.body):
        said = trait_of(node, TypeOnly)
        unread = () if said is None else said.operands
        below = [child for index, child in enumerate(children(node)) if index not in unread]
        if starts(node) or any(c in depending for c in below):
            depending.add(node)
    body = model.main.body
    fields = body.fields if isinstance(body, Tuple) else (body,)
    found = [each in depending for each in fields for _ in value_types(each.type)]
    return found if len(found) == count else [unknown] * count


def _is_draw(node: Expr) -> bool:
    return isinstance(node, Call) and is_random(node)


def _is_alike(expected: Array, found: Array, verdict: OutputVerdict) -> bool:
    """Whether a target is as silent as its source: the same but for rounding."""
    atol, rtol = resolve_tolerance(Tolerance(), expected, verdict.dtypes[0])
    return judge_output("", expected, found, Rule(Tolerance(atol, rtol))).passed


def _unlike(expected: Array, found: Array, unlike: Array) -> str:
    """Return where an output is not finite and not alike: how often, and the first place."""
    at = tuple(int(each) for each in np.argwhere(unlike)[0])
    place = f" at [{', '.join(map(str, at))}]" if at else ""
    count = int(np.count_nonzero(unlike))
    many = f"; {count} of {unlike.size} elements are like that" if count > 1 else ""
    return f"it is {found[at]:g}{place}, where the source is {expected[at]:g}{many}"


def _is_whole(value: Array) -> bool:
    return value.dtype.kind in "iub" or "int" in dtype_name(value.dtype)


def _finite(value: Array) -> Array:
    return np.isfinite(np.asarray(value, dtype=np.float64))


def _is_finite(value: Array) -> bool:
    return value.dtype.kind in "iub" or bool(_finite(value).all())
