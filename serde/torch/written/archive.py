"""Archives of the live module: of ``torch.export`` and of TorchScript."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import budget, require
from serde.errors import LimitError, OptionError, Unsupported
from serde.io.atomic import atomic_write
from serde.relay.ir.dims import SymDim
from serde.torch.model import NAMES, TorchModel
from serde.torch.names import Names, identifier
from serde.torch.program import Assign, If, Literal, Loop, Statement, TorchProgram, statements_of
from serde.torch.releases import without_deprecations
from serde.torch.written.module import to_module

__all__ = ["example_inputs", "export_program", "read_back", "save_archive"]

_LEAST_EXAMPLE: Final = 2
"""Length of an axis in an example where any is allowed; 0 and 1 are special to ``torch.export``."""


def save_archive(
    program: TorchProgram,
    path: Path,
    sources: Sequence[Path],
    before_commit: Callable[[Path], None] | None,
) -> Path:
    """Write the module as ``torch.export`` or, for ``.pt``, ``torch.jit`` saves it.

    Raises:
        Unsupported: PyTorch does not take the module.
    """
    data = _ask_pytorch(_script if path.suffix == ".pt" else _export, program, path.name)
    with atomic_write(path, sources=sources, before_commit=before_commit) as file:
        file.write(data)
    return path


def export_program(program: TorchProgram) -> AnyValue:
    """Return the ``ExportedProgram`` of the live module.

    Raises:
        Unsupported: PyTorch does not take the module.
    """
    return _ask_pytorch(_export_module, program, "module")


def read_back(program: TorchProgram) -> TorchModel:
    """Return a written module as a program that can be read, under the names that it has.

    Raises:
        Unsupported: PyTorch does not take the module.
    """
    from serde.torch.live.exported import from_exported_program

    found = from_exported_program(export_program(program))
    pairs = zip(found.inputs, program.inputs, strict=True)
    inputs = [replace(each, name=own.name) for each, own in pairs]
    return replace(found, inputs=inputs, outputs=program.outputs)


def _ask_pytorch(make: Callable[..., AnyValue], program: TorchProgram, name: str) -> AnyValue:
    """Return what PyTorch makes of the live module."""
    torch = require("torch")
    model = to_module(program)
    try:
        return make(torch, model, program)
    except (LimitError, OptionError):
        raise
    except Exception as error:  # PyTorch raises what it likes
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        what = f"{name}: PyTorch does not take it: {reason}"
        branches = any(not isinstance(each, Assign) for each in program.body)
        if branches and not program.hop and make is not _script:
            what = f"{what}; control_flow='hop' writes what torch.export takes"
        if reason.startswith("Constraints violated"):
            what = f"{what}; it takes some layers at one length alone, which input_shapes= fixes"
        raise Unsupported(what) from error


def _script(torch: AnyValue, model: AnyValue, program: TorchProgram) -> bytes:
    buffer = io.BytesIO()
    with without_deprecations():
        owned = program.facts.get("metadata")
        extra = {NAMES: json.dumps({"metadata": owned})} if owned else {}
        torch.jit.save(torch.jit.script(model), buffer, _extra_files=extra)
    return buffer.getvalue()


def _export(torch: AnyValue, model: AnyValue, program: TorchProgram) -> bytes:
    names: dict[str, AnyValue] = {
        "inputs": [each.name for each in program.inputs], "outputs": [*program.outputs]
    }  # fmt: skip
    if program.facts.get("metadata"):
        names["metadata"] = program.facts["metadata"]
    buffer = io.BytesIO()
    exported = _export_module(torch, model, program)
    torch.export.save(exported, buffer, extra_files={NAMES: json.dumps(names)})
    return buffer.getvalue()


def _draw_iterations(body: Sequence[Statement], times: int = 1) -> None:
    """Take what PyTorch makes of loops, which it traces iteration by iteration."""
    for each in body:
        if isinstance(each, If):
            _draw_iterations(each.then, times)
            _draw_iterations(each.other, times)
        elif isinstance(each, Loop) and isinstance(each.limit, Literal):
            turns = max(int(each.limit.value), 0)
            what = f"{each.source or 'a loop'}, which PyTorch traces iteration by iteration,"
            budget().check("turns", turns, what)
            inner = sum(1 for _ in statements_of(each.body))
            budget().draw("nodes", times * turns * inner, what)
            _draw_iterations(each.body, times * turns)


def _export_module(torch: AnyValue, model: AnyValue, program: TorchProgram) -> AnyValue:
    if not program.hop:
        _draw_iterations(program.body)
    inputs = example_inputs(torch, program)
    shapes = _dynamic_shapes(torch, program)
    with warnings.catch_warnings():
        # Of the list in which recurrent layers hold their own parameters.
        warnings.filterwarnings("ignore", "The tensor attributes? self", UserWarning)
        return torch.export.export(model, inputs, dynamic_shapes=shapes, strict=False)


def example_inputs(torch: AnyValue, program: TorchProgram) -> tuple[AnyValue, ...]:
    """Return tensors of zeros for the inputs; an open length is the same wherever it stands."""
    lengths = {
        name: min(max(_LEAST_EXAMPLE + 1 + 2 * index, least), greatest)
        for index, (name, (least, greatest)) in enumerate(program.facts.get("ranges", {}).items())
    }
    found = []
    for each in program.inputs:
        if each.shape is None or each.dtype is None:
            raise OptionError(f"input {each.name}: a list of tensors cannot be exported")
        shape = [_length(dim, lengths) for dim in each.shape]
        found.append(torch.zeros(shape, dtype=getattr(torch, each.dtype)))
    return tuple(found)


def _length(dim: AnyValue, lengths: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    name = dim.name if isinstance(dim, SymDim) and dim.name else str(dim)
    return lengths.setdefault(name, _LEAST_EXAMPLE + 1 + 2 * len(lengths))


def _dynamic_shapes(torch: AnyValue, program: TorchProgram) -> AnyValue:
    """Return which lengths are open, as ``torch.export`` takes it."""
    dims: dict[str, AnyValue] = {}
    names = Names()
    found: list[dict[int, AnyValue]] = []
    for each in program.inputs:
        own: dict[int, AnyValue] = {}
        for axis, dim in enumerate(each.shape or ()):
            if isinstance(dim, int):
                continue
            own[axis] = torch.export.Dim.DYNAMIC
            if isinstance(dim, SymDim) and dim.name:
                if dim.name not in dims:
                    title = names.reserve(identifier(dim.name) or "length")
                    least, most = program.facts.get("ranges", {}).get(dim.name, (None, None))
                    dims[dim.name] = torch.export.Dim(title, min=least, max=most)
                own[axis] = dims[dim.name]
        found.append(own)
    return tuple(found) if any(found) else None
