"""Writing for a runtime: in what its profile takes, and what of a model that does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.onnx.alternatives import expansion_of
from serde.onnx.builder import walk_nodes
from serde.onnx.judge import Gap, Judge
from serde.onnx.lowering import Takes, lower
from serde.onnx.model import OnnxModel
from serde.onnx.profile import SupportedOperators
from serde.onnx.schemas import newest_opset
from serde.onnx.versions import DEFAULT_TARGET
from serde.relay.ir import RelayModel
from serde.relay.transform import narrow_integers

__all__ = ["write_for"]

Write = Callable[..., OnnxModel]


def write_for(
    profile: SupportedOperators,
    model: RelayModel,
    opset: int | Literal["auto"],
    report: Report,
    write: Write,
) -> OnnxModel:
    """Return a model as ONNX in operators that a runtime takes, as far as they say it.

    The report lists the nodes that it does not take, which it leaves to the host or refuses.

    Args:
        profile: What the runtime takes.
        model: The model.
        opset: Version of the operator set; "auto" is the one with the fewest nodes left, the
            lowest of those.
        report: Filled with gaps and facts.
        write: Writes a model at a version, lowered by what it is given as `lowered`.

    Raises:
        OptionError: The runtime does not read that version.
        UnsupportedModelError: ONNX cannot say some of the model at that version.
    """
    if not profile.int64:
        model = narrow_integers(model, report)
    last = min(newest_opset(), profile.max_opset or newest_opset())
    versions = range(min(DEFAULT_TARGET, last), last + 1) if opset == "auto" else [opset]
    profile.require_opset(versions[0])
    native, gaps = _write_best(profile, model, versions, report, write)
    count = sum(1 for _ in walk_nodes(native.proto.graph.node))
    outside = Counter(gap.op for gap in gaps)
    why = {gap.op: gap.reason for gap in reversed(gaps)}
    report.facts["profile"] = profile.name
    report.facts["outside"] = dict(sorted(outside.items()))
    left = "; ".join(f"{op} {n} ({why[op]})" for op, n in outside.most_common())
    of = f"{count - len(gaps)} of {count} nodes are what {profile.name or 'the runtime'} takes"
    report.notes.append(f"{of}; left are {left}" if left else of)
    return native


def _write_best(
    profile: SupportedOperators,
    model: RelayModel,
    versions: Sequence[int],
    report: Report,
    write: Write,
) -> tuple[OnnxModel, list[Gap]]:
    """Return the model at the version with the fewest gaps, the lowest of those, and these."""
    best: tuple[OnnxModel, list[Gap]] | None = None
    found = report
    for version in versions:
        trial = report.trial()
        with suppress(UnsupportedModelError):
            made = _write(profile, model, version, trial, write)
            if best is None or len(made[1]) < len(best[1]):
                best, found = made, trial
            if not made[1]:
                break
    if best is None:  # Its refusal is to be told.
        return _write(profile, model, versions[0], report, write)
    report.adopt(found)
    return best


def _write(
    profile: SupportedOperators, model: RelayModel, opset: int, report: Report, write: Write
) -> tuple[OnnxModel, list[Gap]]:
    def judged(part: RelayModel) -> Takes:
        return Judge(profile, opset, part.params).leaves_whole

    lowered = partial(lower, judged=judged, expansion=expansion_of)
    native = write(model, opset, report=report, lowered=lowered)
    return native, [gap for _, gap in Judge(profile, opset, {}).find_gaps(native)]
