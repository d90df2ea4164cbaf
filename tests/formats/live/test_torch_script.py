"""Programs of TorchScript, traced and scripted, against PyTorch."""

from __future__ import annotations

import functools
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from support.runtime import open_session  # noqa: E402
from support.torch_compiled import X, compare, flat, interpret, script, trace  # noqa: E402
from support.torch_scripted import PROGRAMS  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import serde  # noqa: E402
from serde.core.report import Report  # noqa: E402
from serde.errors import FormatError, OptionError, UnsupportedModelError  # noqa: E402
from serde.relay.ir.model import RelayModel  # noqa: E402

VARIANTS = {"mixed": X, "turned": -X, "large": X + 3, "small": -X - 4, "short": X[:3]}
"""Inputs that together take every branch of the programs."""

SHAPES: dict[str, dict[str, tuple[Any, ...]]] = {"fixed": {"x": (4, 3)}, "open": {"x": ("n", 3)}}
ENDLESS = {("WhileData", "turned"), ("WhileData", "small")}
"""Inputs with which a program never ends."""

CASES = [
    (name, kind, variant)
    for name in PROGRAMS
    for kind in SHAPES
    for variant in VARIANTS
    if (name, variant) not in ENDLESS and (kind == "open" or variant != "short")
]


@functools.cache
def program(name: str) -> Any:
    torch.manual_seed(3)
    return script(PROGRAMS[name]())


@functools.cache
def converted(name: str, kind: str) -> RelayModel:
    return serde.to_relay(program(name), input_shapes=SHAPES[kind])


@functools.cache
def session(name: str, kind: str) -> Any:
    return open_session(serde.from_relay(converted(name, kind), format="onnx").SerializeToString())


@pytest.mark.parametrize(("name", "kind", "variant"), CASES)
def test_control_flow_by_the_interpreter(name: str, kind: str, variant: str) -> None:
    x = VARIANTS[variant]
    compare(interpret(converted(name, kind), x), program(name)(x))


@pytest.mark.wide
@pytest.mark.parametrize(("name", "kind", "variant"), CASES)
def test_control_flow_by_onnx_runtime(name: str, kind: str, variant: str) -> None:
    x = VARIANTS[variant]
    found = session(name, kind).run(None, {"x": x.numpy()})
    expected = flat(program(name)(x))
    assert [each.shape for each in found] == [each.shape for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


# Names, inputs and weights.


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(6, 3)
        self.inner = nn.Sequential(nn.Linear(3, 3))
        self.out = nn.Linear(3, 6, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("level", torch.ones(3))

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.inner(self.words(ids)) + self.level)


@pytest.mark.parametrize("way", ["traced", "scripted"])
def test_weights_have_the_names_of_the_state_dict_and_tied_ones_are_one(way: str) -> None:
    ids = torch.tensor([[1, 2, 5]])
    module = script(Tied()) if way == "scripted" else trace(Tied(), ids)
    model = serde.to_relay(module, input_shapes={"ids": (1, 3)}, input_dtypes={"ids": "int64"})
    assert set(model.params) in (
        {tied, "inner.0.weight", "inner.0.bias", "level"} for tied in ("words.weight", "out.weight")
    )
    compare(interpret(model, ids), module(ids))


class Nest(nn.Module):
    def forward(self, x: tuple[Tensor, list[Tensor]], by: dict[str, Tensor]) -> dict[str, Tensor]:
        total = x[0]
        for each in x[1]:
            total = total + each
        return {"sum": total, "scaled": total * by["a"] + by["b"]}


def test_inputs_inside_tuples_lists_and_dicts_have_names() -> None:
    names = ["x.0", "x.1.0", "x.1.1", "by.a", "by.b"]
    model = serde.to_relay(script(Nest()), input_shapes=dict.fromkeys(names, (2, 3)))
    assert list(model.meta.inputs) == names
    values = [torch.full((2, 3), float(i + 1)) for i in range(5)]
    wanted = Nest()((values[0], values[1:3]), {"a": values[3], "b": values[4]})
    compare(interpret(model, *values), wanted)


def test_a_list_of_which_nobody_says_what_is_in_it_is_refused() -> None:
    with pytest.raises(OptionError, match=r"input x\.1 is a List\[Tensor\].*'x\.1\.0'"):
        serde.to_relay(script(Nest()), input_shapes={"x.0": (2, 3), "by.a": (3,)})


def test_arguments_that_may_be_left_out_are_unless_their_shape_is_given() -> None:
    module = program("OptionalArg")
    report = Report()
    alone = serde.to_relay(module, input_shapes={"x": (2, 3)}, report=report)
    assert alone.meta.inputs == ("x",)
    assert "scale is left out of the inputs: it is 2.0" in report.notes
    compare(interpret(alone, X[:2]), module(X[:2]))
    both = serde.to_relay(module, input_shapes={"x": (2, 3), "y": (3,), "scale": ()})
    assert both.meta.inputs == ("x", "y", "scale")
    y = torch.tensor([1.0, 2.0, 3.0])
    compare(interpret(both, X[:2], y, 0.5), module(X[:2], y, 0.5))


def test_shapes_of_scripted_inputs_must_be_given() -> None:
    with pytest.raises(OptionError, match="shape of x is missing"):
        serde.to_relay(program("Break"))


def test_a_shape_of_another_rank_than_was_traced_is_refused() -> None:
    traced = trace(nn.Linear(3, 2), X)
    with pytest.raises(OptionError, match="expected 2 axes, found 3"):
        serde.to_relay(traced, input_shapes={"input": (1, 4, 3)})


def test_functions_are_read(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = torch.jit.script(smooth)
    model = serde.to_relay(function, input_shapes={"x": (4, 3), "times": ()})
    compare(interpret(model, X, 3), smooth(X, 3))


def smooth(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = (x + x.roll(1, 0)) / 2
    return x


class Squash(torch.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def test_traced_functions_with_gradients_of_their_own_are_read() -> None:
    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return Squash.apply(Squash.apply(x) * 2)

    compare(interpret(serde.to_relay(trace(Twice(), X)), X), Twice()(X))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 2
        self.register_buffer("last", torch.zeros(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        if bool(x.sum() > 0):
            self.last = self.last + x
        return x * self.count + self.last


@pytest.mark.parametrize("sign", [1, -1])
def test_attributes_that_are_set_are_further_outputs(sign: int) -> None:
    x = X * sign
    model = serde.to_relay(script(Counting()), input_shapes={"x": (4, 3)})
    assert list(model.meta.outputs) == ["output", "count_new", "last_new"]
    own = Counting()
    compare(interpret(model, x), [own(x), own.count, own.last])


class Pair:
    """An object of the program's own."""

    def __init__(self, first: Tensor, second: int) -> None:
        self.first = first
        self.second = second

    def total(self) -> Tensor:
        self.second += 1
        return self.first * self.second


class UsesPair(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pair = Pair(x, 2)
        if bool(x.sum() > 0):
            pair.first = x + 1
        return pair.total() + pair.second


@pytest.mark.parametrize("sign", [1, -1])
def test_objects_of_the_program_are_read(sign: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Pair)
    model = serde.to_relay(script(UsesPair()), input_shapes={"x": (4, 3)})
    compare(interpret(model, X * sign), UsesPair()(X * sign))


class HoldsPair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(torch.ones(3), 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        (found,) = torch.where(x[:, 0] > 0)
        value: Any = x
        if isinstance(value, Tensor):
            x = x * 2
        return x + self.pair.first * self.pair.second, found


def test_modules_may_hold_objects() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Pair)
    module = script(HoldsPair())
    compare(interpret(serde.to_relay(module, input_shapes={"x": (4, 3)}), X), HoldsPair()(X))


# Archives.


def test_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(program("IfModules"), str(path))
    model = serde.to_relay(path, input_shapes={"x": (4, 3)})
    for x in (X, -X - 1):
        compare(interpret(model, x), program("IfModules")(x))


@pytest.mark.parametrize("way", ["script", "trace"])
@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_an_archive_is_told(way: str, training: bool, tmp_path: Path) -> None:
    """One that was scripted is evaluated, with a note; one that was traced is what it was."""
    net, given = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).train(training), torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.jit.script(net) if way == "script" else torch.jit.trace(net, given)
        made.save(tmp_path / "net.pt")
    report = Report()
    serde.to_relay(tmp_path / "net.pt", input_shapes={"input": (2, 3)}, report=report)
    told = "the module is in training mode; converted in evaluation mode" in report.notes
    assert told == (training and way == "script")
    assert any("running_mean_new" in each for each in report.notes) == (training and not told)


def test_a_broken_archive_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(program("IfModules"), str(path))
    broken = tmp_path / "broken.pt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"..." if name.endswith("data.pkl") else old.read(name))
    with pytest.raises(FormatError, match=r"broken\.pt.*PyTorch cannot load it"):
        serde.to_relay(broken, input_shapes={"x": (4, 3)})


def test_an_archive_is_checked_by_pytorch(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(program("WhileFlag"), str(path))
    report = Report()
    shapes = {"x": (4, 3)}
    serde.convert(path, tmp_path / "net.onnx", input_shapes=shapes, check=True, report=report)
    assert report.passed
    assert report.engines is not None
    assert report.engines[0].startswith("torch")


# Refusals.


class TwoRanks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x
        return x.sum(0)


class MaybeNone(nn.Module):
    def forward(self, x: Tensor) -> Tensor | None:
        y: Tensor | None = None
        if bool(x.sum() > 0):
            y = x
        return y


class ReadsGrowing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = [x[0]]
        while bool(torch.stack(outs).sum() < 10):
            outs.insert(0, outs[-1] + 1)
        return outs[0]


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) == 3:
            raise ValueError("three")
        return x


REFUSED = {
    "branches of two ranks": (TwoRanks, "branches give tensors of"),
    "a tensor or None": (MaybeNone, "only one of two branches gives a tensor"),
    "a list that is changed in its middle": (ReadsGrowing, "only known when the model runs"),
    "an error that is always raised": (Raises, "raises an error here: three"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_said_is_refused(what: str) -> None:
    kind, reason = REFUSED[what]
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(script(kind()), input_shapes={"x": (4, 3)})


def test_a_branch_that_only_raises_is_taken_to_be_never_entered() -> None:
    class Asserts(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            assert bool(x.sum() < 1000), "too much"
            return x + 1

    report = Report()
    model = serde.to_relay(script(Asserts()), input_shapes={"x": (4, 3)}, report=report)
    compare(interpret(model, X), X + 1)
    assert any("only raise errors" in each for each in report.notes)


def test_all_missing_operators_are_reported_with_their_lines() -> None:
    class Strange(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = torch.special.airy_ai(x)
            if bool(x.sum() > 0):
                y = torch.linalg.ldl_factor(y @ y.t())[0]
            return torch.special.airy_ai(y)

    with pytest.raises(UnsupportedModelError) as found:
        serde.to_relay(script(Strange()), input_shapes={"x": (3, 3)})
    text = str(found.value)
    lines = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert lines.keys() == {"aten::special_airy_ai", "aten::linalg_ldl_factor"}
    assert " x2 " in lines["aten::special_airy_ai"]
    first = Strange.forward.__code__.co_firstlineno + 1
    assert f"{Path(__file__).name}:{first} " in lines["aten::special_airy_ai"]
    assert "custom_convert_map" in text


def test_deprecation_of_torchscript_is_not_repeated(recwarn: Mapping[str, Any]) -> None:
    serde.to_relay(program("Tuples"), input_shapes={"x": (4, 3)})
    assert not list(recwarn)


# Quantised tensors.


class QuantisedBranches(nn.Module):
    def __init__(self, other: float) -> None:
        super().__init__()
        self.other = other

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        else:
            y = torch.quantize_per_tensor(-x, self.other, 3, torch.quint8)
        return y.dequantize()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("sign", [1, -1])
def test_branches_may_give_quantised_tensors(sign: int) -> None:
    module = script(QuantisedBranches(0.1))
    compare(
        interpret(serde.to_relay(module, input_shapes={"x": (4, 3)}), X * sign), module(X * sign)
    )


def test_branches_that_quantise_differently_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="quantised differently"):
        serde.to_relay(script(QuantisedBranches(0.2)), input_shapes={"x": (4, 3)})


class QuantisedLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        while bool(x.sum() < 10):
            x = x + 1
            y = y.flip(0)
        return y.dequantize()


def test_quantised_tensors_that_go_round_a_loop_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="quantised tensor that goes round a loop"):
        serde.to_relay(script(QuantisedLoop()), input_shapes={"x": (4, 3)})
