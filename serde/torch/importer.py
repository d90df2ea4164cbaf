"""PyTorch programs into Relay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core import Report, pause_garbage_collection
from serde.core.lossy import TRACED_BRANCH
from serde.errors import UnsupportedModelError, raise_if_refused
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.torch.aliases import Values, has_writes
from serde.torch.functional import FunctionalWalk
from serde.torch.import_walk import ImportWalk
from serde.torch.model import TorchModel
from serde.walk.metadata import metadata_facts

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["to_relay"]

_UNBOUNDED = 2**31


def to_relay(model: TorchModel, options: TorchImportOptions, report: Report) -> RelayModel:
    """Return a program as Relay.

    Raises:
        FormatError: The program is not sound.
        OptionError: An option names no input, or an input's shape is missing.
        UnsupportedModelError: Some nodes cannot be converted, or the program is a trace in which
            values of the examples decided, and nobody allows that.
    """
    traced, noted = model.traced, len(report.notes)
    if traced is not None:
        try:
            return _to_relay(model, options, report)
        except UnsupportedModelError:
            if TRACED_BRANCH.name not in options.allow:
                _record_branches(traced, options, report)
                raise
            report.issues.clear()
            del report.notes[noted:]
            model = traced
    _record_branches(model, options, report)
    return _to_relay(model, options, report)


def _record_branches(model: TorchModel, options: TorchImportOptions, report: Report) -> None:
    for line, what in model.branches.items():
        TRACED_BRANCH.record(report, options.allow, op="branch", node=line, reason=what)


@pause_garbage_collection()
def _to_relay(model: TorchModel, options: TorchImportOptions, report: Report) -> RelayModel:
    report.notes += model.notes
    kind = FunctionalWalk if has_writes(model) else ImportWalk
    walk = kind(model, options, report)
    scope = Values(source=None if model.path is None else str(model.path))
    graph = walk.read(model.graph, scope)
    inputs = walk.inputs(
        model.inputs, scope, options.input_shapes, options.input_dtypes, fixed=options.fix_inputs
    )
    outputs = walk.results(model.outputs, walk.run(graph, scope))
    written = {} if report.issues else walk.written(scope)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    names = tuple(each.name_hint for each in inputs)
    given = [*(each for _, each in outputs), *written.values()]
    wanted = (*(name for name, _ in outputs), *written)
    facts = metadata_facts(model.metadata.items(), report)
    for name, (least, most) in model.ranges.items():
        if most is not None and least < most < _UNBOUNDED:
            facts[f"{name}.range"] = f"{least}:{most}:0"  # Found by a trace: asked for by nobody.
    meta = ModelMeta(names, wanted, "torch", model.version, extra=facts, states=model.states)
    return walk.assembly.model(inputs, given, meta, scope.expressions())
