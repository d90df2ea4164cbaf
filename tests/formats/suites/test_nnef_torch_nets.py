"""Small nets of PyTorch, by torch.export, as NNEF: judged by PyTorch."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nnef")

from support.nnef_written import compare, write  # noqa: E402
from support.torch_nets import NETS  # noqa: E402

import serde  # noqa: E402
from serde.conversion.prepare import PrepareOptions, prepare  # noqa: E402
from serde.core.report import Report  # noqa: E402


@pytest.mark.wide
@pytest.mark.parametrize("name", NETS)
def test_net(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = NETS[name]
    module, inputs = net.make().eval(), tuple(net.inputs(2, 8))
    with torch.no_grad():
        results = module(*inputs)
    expected = list(results) if isinstance(results, tuple) else [results]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.export warns of views of recurrent weights
        program = torch.export.export(module, inputs)
    model = serde.to_relay(program)
    found = write(prepare(model, PrepareOptions(), report=Report()), tmp_path / "net")
    given = dict(zip(model.meta.inputs, (each.numpy() for each in inputs), strict=True))
    wanted = [each.numpy() for each in expected]
    compare(found.interpret(given), wanted)
    compare(found.evaluate(given), wanted)
