"""Programs with conditionals and loops of ``torch.export``, every branch taken, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from serde.engine.interpreter import RelayEngine

torch = pytest.importorskip("torch")
pytest.importorskip("torch._higher_order_ops.scan")

from torch._higher_order_ops.map import map as torch_map  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402


class Base(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.Linear(4, 4)


class OverParameters(Base):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x), lambda x: self.b(x) * 2, (x,))


class Nested(Base):
    def forward(self, x):
        def positive(x):
            return torch.cond(x.max() > 2, lambda x: x + 1, lambda x: self.a(x), (x,))

        return torch.cond(x.sum() > 0, positive, lambda x: x * 2, (x,)) + 1


class Several(Base):
    def forward(self, x, flag):
        def yes(x):
            return self.a(x), x.sum(1), x.shape[0] * torch.ones(2)

        def no(x):
            return x - 1, x.mean(1), torch.zeros(2)

        first, second, third = torch.cond(flag, yes, no, (x,))
        return first * second[:, None], third


class DataDependentLoop(Base):
    def forward(self, x):
        def going(i, h):
            return (h.abs().sum() < 100) & (i < 30)

        def turn(i, h):
            return i + 1, h * 1.5 + self.a(h)

        return while_loop(going, turn, (torch.zeros((), dtype=torch.int64), x))


class LoopInBranch(Base):
    def forward(self, x):
        def repeated(x):
            def turn(i, h):
                return i - 1, self.b(h).tanh()

            count = torch.full((), 3, dtype=torch.int64)
            return while_loop(lambda i, h: i > 0, turn, (count, x))[1]

        return torch.cond(x[0, 0] > 0, repeated, lambda x: x.clone(), (x,))


class BranchInLoop(Base):
    def forward(self, x):
        def turn(i, h):
            h = torch.cond(h.sum() > 0, lambda h: h - self.a(h).abs(), lambda h: h + 1, (h,))
            return i + 1, h

        return while_loop(lambda i, h: i < 6, turn, (torch.zeros((), dtype=torch.int64), x))[1]


class Cumulative(Base):
    def forward(self, x):
        def step(carry, row):
            later = self.a(carry) + row
            return later.tanh(), (later * 2, row.sum())

        last, (rows, sums) = scan(step, torch.zeros(4), x, dim=0)
        return last, rows, sums


class Mapped(Base):
    def forward(self, x):
        return torch_map(lambda row, bias: self.b(row) + bias, x, x[0] * 2)


class WithoutGradients(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.a(x)
        return y + self.b(x)


class Writes(Base):
    def forward(self, x):
        x = x.clone()
        x[0] = 1

        def yes(x):
            y = x.clone()
            y[:, 1] *= 2
            return self.a(y).relu_()

        def turn(i, h):
            h = h * 1
            h[1].add_(i)
            return i + 1, h

        y = torch.cond(x[1].sum() > 0, yes, lambda x: x * 3, (x,))
        x.add_(y)
        z = while_loop(lambda i, h: i < 3, turn, (torch.zeros((), dtype=torch.int64), x))[1] + 0
        z[2].zero_()
        return x, y, z


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

POSITIVE = np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4)
LARGE = POSITIVE * 3
NEGATIVE = -POSITIVE
TRUE, FALSE = np.array(True), np.array(False)

CASES: list[tuple[type[Base], list[tuple[np.ndarray, ...]]]] = [
    (OverParameters, [(POSITIVE,), (NEGATIVE,)]),
    (Nested, [(POSITIVE,), (LARGE,), (NEGATIVE,)]),
    (Several, [(POSITIVE, TRUE), (NEGATIVE, FALSE)]),
    (DataDependentLoop, [(POSITIVE,), (NEGATIVE * 40,)]),
    (LoopInBranch, [(POSITIVE,), (NEGATIVE,)]),
    (BranchInLoop, [(POSITIVE,), (NEGATIVE,)]),
    (Cumulative, [(POSITIVE,), (NEGATIVE,)]),
    (Mapped, [(POSITIVE,), (NEGATIVE,)]),
    (WithoutGradients, [(POSITIVE,)]),
    (Writes, [(POSITIVE,), (NEGATIVE,)]),
]
RUNS = [(kind, arrays) for kind, inputs in CASES for arrays in inputs]


def export(kind: type[Base], arrays: tuple[np.ndarray, ...], **options: Any) -> Any:
    tensors = tuple(map(torch.tensor, arrays))
    return torch.export.export(kind().eval(), tensors, strict=False, **options)


def results(kind: type[Base], arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    found = kind().eval()(*map(torch.tensor, arrays))
    items = found if isinstance(found, (list, tuple)) else [found]
    return [each.detach().numpy() for each in items]


def feed(model: Any, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return dict(zip(model.meta.inputs, arrays, strict=True))


def compare(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "arrays"), RUNS)
def test_by_the_interpreter(kind, arrays):
    model = serde.to_relay(export(kind, arrays))
    compare(RelayEngine(model).run(feed(model, arrays)), results(kind, arrays))


@pytest.mark.wide
@pytest.mark.parametrize(("kind", "arrays"), RUNS)
def test_by_onnx_runtime(kind, arrays):
    runtime = pytest.importorskip("onnxruntime")
    model = serde.export_model(export(kind, arrays), format="onnx")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, dict(zip(names, arrays, strict=True)))
    compare(found, results(kind, arrays))


SYMBOLIC = [OverParameters, DataDependentLoop, Cumulative, Mapped]


@pytest.mark.parametrize("kind", SYMBOLIC)
def test_lengths_that_are_not_known(kind):
    length = {"x": {0: torch.export.Dim("rows", min=2)}}
    model = serde.to_relay(export(kind, (POSITIVE,), dynamic_shapes=length))
    longer = (np.concatenate([POSITIVE, NEGATIVE]),)
    compare(RelayEngine(model).run(feed(model, longer)), results(kind, longer))


class Autocast(Base):
    def __init__(self, enabled: bool = True) -> None:
        super().__init__()
        self.enabled = enabled

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.enabled):
            return self.a(x)


def test_autocast_is_refused():
    program = torch.export.export(Autocast().eval(), (torch.tensor(POSITIVE),), strict=False)
    with pytest.raises(serde.UnsupportedModelError, match="autocast to bfloat16"):
        serde.to_relay(program)


def test_autocast_that_is_off():
    module = Autocast(enabled=False).eval()
    program = torch.export.export(module, (torch.tensor(POSITIVE),), strict=False)
    model = serde.to_relay(program)
    wanted = module(torch.tensor(POSITIVE)).detach().numpy()
    compare(RelayEngine(model).run(feed(model, (POSITIVE,))), [wanted])


ARCHIVED = [DataDependentLoop, BranchInLoop, Cumulative, Mapped, WithoutGradients, Writes]


@pytest.mark.wide
@pytest.mark.parametrize("kind", ARCHIVED)
def test_archives_are_checked_by_torch(kind, tmp_path):
    """The engine of archives runs conditionals and loops itself."""
    path = tmp_path / "program.pt2"
    torch.export.save(export(kind, (POSITIVE,)), path)
    report = serde.convert(path, tmp_path / "program.onnx", check=True)
    assert report.passed
    assert report.engines[0].startswith("torch ")


@pytest.mark.wide
@pytest.mark.parametrize("kind", SYMBOLIC)
def test_lengths_that_are_not_known_by_onnx_runtime(kind):
    runtime = pytest.importorskip("onnxruntime")
    length = {"x": {0: torch.export.Dim("rows", min=2)}}
    model = serde.export_model(export(kind, (POSITIVE,), dynamic_shapes=length), format="onnx")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    longer = (np.concatenate([POSITIVE, NEGATIVE]),)
    (name,) = [each.name for each in session.get_inputs()]
    compare(session.run(None, {name: longer[0]}), results(kind, longer))
