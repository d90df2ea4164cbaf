"""Samples of operators as written folders, read back, against PyTorch running the folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from support.samples import build  # noqa: E402
from support.torch_runner import flatten, load  # noqa: E402
from support.torch_tensors import from_tensor, to_tensor  # noqa: E402

import serde  # noqa: E402
from serde.core.report import Report  # noqa: E402
from serde.core.weights import ArrayWeight  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.errors import SerdeError  # noqa: E402
from serde.relay.ir.model import ModelMeta, RelayModel  # noqa: E402
from serde.relay.ir.module import IRModule  # noqa: E402
from serde.relay.ir.registry import Sample, all_ops  # noqa: E402
from serde.relay.ir.types import TupleType  # noqa: E402
from serde.torch.exporter import from_relay  # noqa: E402
from serde.torch.options import TorchExportOptions  # noqa: E402
from serde.torch.written import save  # noqa: E402

OTHER = ("serde.bernoulli", "serde.multinomial", "serde.random_", "serde.svd")
"""What is drawn, and vectors of which only the direction up to a sign is known."""

REFUSED = ("a list of tensors is no input", "whose length is only known when the model runs",
           "that is no vector of a known length", "attribute dim: expected int",
           "index 1 is outside a list of 1", "a list without tensors",
           "a range whose step is not known beforehand")  # fmt: skip
"""What the importers of TorchScript cannot say, either."""

FIRST = ("nn.conv2d", "nn.relu", "nn.max_pool2d", "serde.lstm", "serde.loop", "strided_slice")


def cases() -> list[Any]:
    return [
        pytest.param(
            name, given, weighed, id=f"{name}-{place}-{'weights' if weighed else 'inputs'}",
            marks=() if name in FIRST and place == 0 else pytest.mark.wide,
        )
        for name, definition in all_ops().items()
        for place, given in enumerate(definition.samples)
        for weighed in (False, True)
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "weighed"), cases())
def test_folder_read_back_gives_what_it_gives(
    name: str, given: Sample, weighed: bool, tmp_path: Path
) -> None:
    built = build(all_ops()[name], given)
    pairs = list(zip(built.variables, built.arrays, strict=True))
    weights = {
        each.name_hint: ArrayWeight(np.array(value, order="C"))
        for each, value in pairs[1:] if weighed and isinstance(value, np.ndarray)
    }  # fmt: skip
    feeds = {x.name_hint: value for x, value in pairs if x.name_hint not in weights}
    type_ = built.call.type
    outputs = len(type_.fields) if isinstance(type_, TupleType) else 1
    meta = ModelMeta(tuple(feeds), tuple(f"out{place}" for place in range(outputs)))
    model = RelayModel(IRModule({"main": built.function}), weights, meta)
    try:
        save(from_relay(model, TorchExportOptions(), Report()), tmp_path / "m_torch",
             TorchExportOptions())  # fmt: skip
    except SerdeError as error:
        pytest.skip(f"not written: {error}")
    try:
        back = serde.to_relay(tmp_path / "m_torch")
    except SerdeError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        pytest.skip(str(error))
    with torch.no_grad():
        wanted = flatten(load(tmp_path / "m_torch")(*map(to_tensor, feeds.values())))
    known = {key: np.asarray(value) for key, value in feeds.items() if key in back.meta.inputs}
    found = RelayEngine(back).run(known)
    assert len(found) == len(wanted)
    for one, other in zip(found, map(from_tensor, wanted), strict=True):
        compare(name, np.asarray(one), np.asarray(other))


def compare(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if name.startswith(OTHER):
        return
    tolerance = {"float16": 3e-3, "float32": 3e-5, "float64": 1e-9}.get(wanted.dtype.name, 0)
    if wanted.dtype.kind not in "biuf":
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_schemas_are_those_of_pytorch() -> None:
    """Every overload in the file has the parameters that PyTorch says, in its order."""
    from serde.torch.source.overloads import _schemas

    wrong = []
    for op, overloads in _schemas().items():
        real = {x.overload_name: x for x in torch._C._jit_get_schemas_for_operator(op)}
        for overload, parameters, _several in overloads:
            names = [x.name for x in real[overload].arguments]
            if names != [name for name, _, _ in parameters]:
                wrong.append(f"{op}.{overload}")
    assert wrong == []
