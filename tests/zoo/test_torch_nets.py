"""Whole nets of transformers, torchvision and PyTorch, read by each road and run twice.

Traced, scripted where PyTorch can, and exported; by the interpreter, and by ONNX Runtime as ONNX.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from support.runtime import open_session  # noqa: E402
from support.torch_programs import PROGRAMS, Plain, Program, build, declare_torchvision  # noqa: E402

import serde  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402

declare_torchvision()
pytest.importorskip("torchvision", reason="torchvision is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.slow

LARGEST_ERROR = 1e-4
"""Of an element, in deviations of its output."""

QUANTISED = tuple(name for name in PROGRAMS if name.startswith("quantised"))
"""Nets with packed parameters, which ``torch.export`` does not take."""

ROADS = ("traced", "scripted", "exported")
CASES = [(name, road) for name in PROGRAMS for road in ROADS]
GAPS: dict[tuple[str, str], str] = {}
"""Nets that are not read, with the reason."""


@functools.lru_cache(maxsize=1)
def net(name: str) -> tuple[Program, list[np.ndarray]]:
    """A net, and what it gives."""
    logging.disable(logging.WARNING)
    program = build(name)
    with torch.no_grad():
        found = program.module(*program.inputs)
    return program, [each.numpy() for each in (found if isinstance(found, tuple) else [found])]


def source(program: Program, road: str) -> tuple[Any, dict[str, Any]]:
    """The net as PyTorch's program, and options to read it."""
    module, inputs = program.module, program.inputs
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if road == "exported":
            return torch.export.export(module, inputs), {}
        if road == "traced":
            return torch.jit.trace(module, inputs, strict=False, check_trace=False), {}
        found = torch.jit.script(module)
    names = [each.name for each in found.forward.schema.arguments[1:]]
    given = dict(zip(names, inputs, strict=False))
    return found, {
        "input_shapes": {key: tuple(each.shape) for key, each in given.items()},
        "input_dtypes": {key: str(each.dtype)[len("torch.") :] for key, each in given.items()},
    }


def compare(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    assert [each.shape for each in found] == [each.shape for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        deviation = float(other.std())
        assert deviation > 1e-2
        assert np.abs(one.astype(np.float64) - other).max() <= LARGEST_ERROR * deviation


@pytest.mark.parametrize(("name", "road"), CASES)
def test_nets(name: str, road: str, request: pytest.FixtureRequest) -> None:
    program, wanted = net(name)
    if road == "scripted" and isinstance(program.module, Plain):
        pytest.skip("PyTorch does not script nets of transformers")
    if road == "exported" and name in QUANTISED:
        pytest.skip("PyTorch does not export packed parameters")
    if (name, road) in GAPS:
        request.applymarker(pytest.mark.xfail(reason=GAPS[name, road], strict=True))
    given, options = source(program, road)
    model = serde.to_relay(given, **options)
    inputs = dict(zip(model.meta.inputs, (x.numpy() for x in program.inputs), strict=True))
    compare(RelayEngine(model).run(inputs), wanted)
    session = open_session(serde.from_relay(model, format="onnx").SerializeToString())
    known = {each.name for each in session.get_inputs()}
    fed = {key: value for key, value in inputs.items() if key in known}
    compare(session.run(None, fed), wanted)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "embedding_bag"])
def test_traced_nets_take_any_batch(name: str) -> None:
    program, _ = net(name)
    given, _ = source(program, "traced")
    names = serde.to_relay(given).meta.inputs
    shapes = {key: ("n", *x.shape[1:]) for key, x in zip(names, program.inputs, strict=True)}
    model = serde.to_relay(given, input_shapes=shapes, allow=["other-lengths"])
    longer = [torch.cat([x, x[:1]]) for x in program.inputs]
    with torch.no_grad():
        found = given(*longer)
    wanted = [each.numpy() for each in (found if isinstance(found, tuple) else [found])]
    inputs = dict(zip(names, (x.numpy() for x in longer), strict=True))
    compare(RelayEngine(model).run(inputs), wanted)
    session = open_session(serde.from_relay(model, format="onnx").SerializeToString())
    known = {each.name for each in session.get_inputs()}
    fed = {key: value for key, value in inputs.items() if key in known}
    compare(session.run(None, fed), wanted)
