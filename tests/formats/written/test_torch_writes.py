"""Programs that write to tensors through views, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
from serde.engine.interpreter import RelayEngine

torch = pytest.importorskip("torch")

X = np.random.default_rng(7).standard_normal((3, 4, 5)).astype(np.float32)


def select(x):
    y = x.clone()
    y[:, 0] = 1
    return y, y[:, 0] + 1


def select_last(x):
    y = x.clone()
    y[-1] = y[0]
    return y


def transposed(x):
    y = x[0].clone()
    y.t().add_(torch.arange(4.0))
    return y


def chain(x):
    y = x.clone()
    y[1:, 2].unsqueeze(0).mul_(3)
    return y


def chain_of_shapes(x):
    y = x.clone()
    z = y.view(12, 5).permute(1, 0)
    z[2:4].zero_()
    return y, z


def loop_over_slices(x):
    y = torch.zeros_like(x)
    for i in range(4):
        y[:, i] = x[:, 3 - i] * i
    return y


def view_after_base(x):
    y = x.clone()
    z = y[0]
    y.mul_(2)
    z.add_(1)
    return y, z


def base_after_view(x):
    y = x.clone()
    z = y[0]
    z.add_(1)
    w = y + 0
    y.copy_(x * 3)
    return w, y, z


def two_views(x):
    y = x.clone()
    a, b = y[1], y[:, 1]
    a.fill_(2)
    c = b * 1
    b.fill_(3)
    return y, a, b, c


def relus(x):
    y = torch.nn.functional.relu(x * 2, inplace=True)
    z = torch.nn.functional.relu(y - 1, inplace=True)
    return z, y


def residual(x):
    y = x * 1.5
    z = torch.relu_(y)
    return y + z


def steps(x):
    y = x.clone()
    y[:, ::2] = 0
    y[:, 1::2, 1:4:2] = x[:, ::2, :2]
    return y


def split_parts(x):
    y = x.clone()
    a, b, c = y.split([1, 2, 2], dim=2)
    b.add_(10)
    c.mul_(a)
    return y, a, b, c


def chunked(x):
    y = x.clone()
    first, second = y.chunk(2, 1)
    second.copy_(first)
    return y


def unbound(x):
    y = x.clone()
    rows = y.unbind(1)
    rows[2].neg_()
    rows[0].add_(rows[2])
    return y, *rows


def diagonal(x):
    y = x.clone()
    y.diagonal(0, 1, 2).fill_(7)
    torch.diagonal(y[1], 1).mul_(2)
    return y


def masked(x):
    y = x.clone()
    y.masked_fill_(y > 0.5, -1.0)
    return y


def indexed(x):
    y = x.clone()
    y[torch.tensor([0, 2])] = 5.0
    y[:, torch.tensor([1, 3])] += 1
    return y


def casts(x):
    y = (x * 10).to(torch.int32)
    y.add_(2)
    z = torch.zeros(3, 4, 5, dtype=torch.float64)
    z.copy_(x)
    z[0] = y[0]
    return y, z


def same_dtype_aliases(x):
    y = x.clone()
    z = y.to(torch.float32)
    z.add_(1)
    return y


def other_dtype_copies(x):
    y = x.clone()
    z = y.to(torch.float64)
    z.add_(1)
    return y, z


def dropout_aliases(x):
    y = x.clone()
    z = torch.nn.functional.dropout(y, 0.5, training=False)
    z.mul_(2)
    return y


def reshape_aliases(x):
    y = x.clone()
    y.reshape(12, 5).add_(1)
    return y


def reshape_of_transposed(x):
    y = x.clone()
    z = y.transpose(0, 1).reshape(12, 5)
    z.add_(1)
    return z


def flat(x):
    y = torch.zeros(3, 4, 5)
    y.flatten()[7:13] = 1
    return y


def squeezes(x):
    y = x.clone()
    y.unsqueeze_(0)
    y[:, 1] = 0
    y.squeeze_(0)
    return y


def transposes(x):
    y = x.clone()
    z = y[0]
    y.transpose_(0, 2)
    y[1] = 4
    return y, z


def out_argument(x):
    y = torch.empty(3, 4, 5)
    torch.add(x, 1, out=y)
    torch.mul(x, 2, out=y[0:3])
    return y


def moved(x):
    y = x.clone()
    y.movedim(0, -1)[1] = 9
    y.mT.swapaxes(0, 1)[2] = 8
    return y


def narrowed(x):
    y = x.clone()
    y.narrow(1, 1, 2).sub_(x.narrow(1, 0, 2))
    return y


def input_is_written(x):
    x.add_(1)
    return x * 2


def detached(x):
    y = x.clone()
    y.detach().add_(1)
    return y


def list_of_views(x):
    y = x.clone()
    rows = [y[i] for i in range(3)]
    for row in rows:
        row.mul_(2)
    return torch.stack(rows), y


def accumulates(x):
    y = torch.zeros(4, 5)
    for i in range(3):
        y += x[i]
        y.clamp_(-1, 1)
    return y


def shared_twice(x):
    y = x.clone()
    a = y.view(60)
    b = a.view(5, 12)
    c = b.t()
    c[3].fill_(0)
    a[5] = 2
    return y, a, b, c


def fills_diagonals(x):
    y, z = torch.zeros(7, 3), torch.zeros(3, 5)
    y.fill_diagonal_(2, wrap=True)
    z.t().fill_diagonal_(3)
    return y + x[0, 0, 0], z


def drops_in_place(x):
    y = x.clone()
    torch.dropout_(y, 0.5, False)
    return y


PROGRAMS: list[Callable[..., Any]] = [
    select, select_last, transposed, chain, chain_of_shapes, loop_over_slices, view_after_base,
    base_after_view, two_views, relus, residual, steps, split_parts, chunked, unbound, diagonal,
    masked, indexed, casts, same_dtype_aliases, other_dtype_copies, dropout_aliases,
    reshape_aliases, reshape_of_transposed, flat, squeezes, transposes, out_argument, moved,
    narrowed, detached, list_of_views, accumulates, shared_twice, fills_diagonals, drops_in_place,
]  # fmt: skip


class Program(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def run(program: Any, *arrays: np.ndarray, **options: Any) -> list[np.ndarray]:
    model = serde.to_relay(program, **options)
    names = [each.name_hint for each in model.main.params[: len(arrays)]]
    return RelayEngine(model).run(dict(zip(names, arrays, strict=True)))


def flatten(found: Any) -> list[np.ndarray]:
    items = found if isinstance(found, (list, tuple)) else [found]
    return [each.numpy() for each in items]


def compare(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS)
def test_exported(function):
    wanted = flatten(function(torch.tensor(X)))
    program = torch.export.export(Program(function), (torch.tensor(X),))
    compare(run(program, X), wanted)


def test_inputs_are_further_outputs():
    program = torch.export.export(Program(input_is_written), (torch.tensor(X),))
    assert serde.to_relay(program).meta.outputs[1:] == ("x_new",)
    given = torch.tensor(X)
    result = input_is_written(given)
    compare(run(program, X), flatten([result, given]))


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(5))
        self.register_buffer("ring", torch.zeros(4, 5))

    def forward(self, x):
        self.seen.add_(x.sum((0, 1)))
        self.ring[1:3] = x[0, :2]
        return x * self.seen + self.ring


def test_buffers_are_further_outputs():
    module = Counting()
    program = torch.export.export(module, (torch.tensor(X),))
    model = serde.to_relay(program)
    assert model.meta.outputs[1:] == ("seen_new", "ring_new")
    found = run(program, X)
    wanted = Counting()
    result = wanted(torch.tensor(X))
    compare(found, flatten([result, wanted.seen, wanted.ring]))


def test_statistics_stay_in_eval():
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.ReLU(inplace=True)).eval()
    program = torch.export.export(module, (torch.tensor(X),))
    compare(run(program, X), flatten(module(torch.tensor(X)).detach()))


def written_after_reshape(x):
    y = x.clone()
    z = y.transpose(0, 1).reshape(12, 5)
    z.add_(1)
    return y


def read_after_reshape(x):
    y = x.clone()
    z = y.transpose(0, 1).reshape(12, 5)
    y.add_(1)
    return z


@pytest.mark.parametrize("function", [written_after_reshape, read_after_reshape])
def test_memory_that_may_be_shared(function):
    program = torch.export.export(Program(function), (torch.tensor(X),))
    with pytest.raises(serde.UnsupportedModelError, match="shares its memory is not known"):
        serde.to_relay(program)


def dynamic_slices(x):
    y = x.clone()
    y[:, 1:-1] *= 2
    y[-1, :2].fill_(0)
    z = y.reshape(-1, 5)
    z[::2] = 1
    y.transpose(0, 1)[-1] += 3
    return y, z


def test_lengths_that_are_not_known():
    shapes = {"x": (torch.export.Dim("n", min=2), torch.export.Dim("m", min=4), None)}
    program = torch.export.export(
        Program(dynamic_slices), (torch.tensor(X),), dynamic_shapes={"x": shapes["x"]}
    )
    other = np.random.default_rng(3).standard_normal((4, 6, 5)).astype(np.float32)
    compare(run(program, other), flatten(dynamic_slices(torch.tensor(other))))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("decomposed", [False, True])
def test_statistics_of_training_are_further_outputs(decomposed):
    module = torch.nn.BatchNorm1d(4)
    program = torch.export.export(module.train(), (torch.tensor(X),))
    model = serde.to_relay(program.run_decompositions() if decomposed else program)
    found = RelayEngine(model).run({"input": X})
    result = module(torch.tensor(X)).detach()
    wanted = {
        "running_mean_new": module.running_mean,
        "running_var_new": module.running_var,
        "num_batches_tracked_new": module.num_batches_tracked,
    }
    names = model.meta.outputs[1:]
    assert sorted(names) == sorted(wanted)
    compare(found, [result.numpy(), *(wanted[name].numpy() for name in names)])
