"""Operators of libraries of PyTorch: converted by users' functions, and kept as they are."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import OptionError, RelayError, UnsupportedModelError
from serde.relay.ir.foreign import ARGUMENTS, Foreign, is_foreign
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NAMESPACE = "serde_test"


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[Any]:
    """A library with operators of all kinds of arguments."""
    library = torch.library.Library(NAMESPACE, "DEF")
    library.define("swish(Tensor x, float beta, int[] axes=[0], Tensor? extra=None) -> Tensor")
    library.define("pair(Tensor x, Tensor[] more, str mode='a') -> (Tensor, Tensor)")
    library.define("bare(Tensor x) -> Tensor")

    def swish(x: Any, beta: float, axes: Any = (0,), extra: Any = None) -> Any:
        found = x * torch.sigmoid(x * beta)
        return found if extra is None else found + extra

    def pair(x: Any, more: Any, mode: str = "a") -> Any:
        return x + more[0], x * more[-1]

    for name, function in (("swish", swish), ("pair", pair), ("bare", lambda x: x * 3)):
        library.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::swish", lambda x, *rest, **more: torch.empty_like(x))
    torch.library.register_fake(
        f"{NAMESPACE}::pair", lambda x, *rest, **more: (torch.empty_like(x), torch.empty_like(x))
    )
    yield library
    library._destroy()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.a = torch.nn.Linear(5, 4)
        self.b = torch.nn.Linear(4, 3)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = torch.ops.serde_test.swish(self.a(x), 1.5, [0, 1])
        u, v = torch.ops.serde_test.pair(y, [y, x[:, :4]])
        return self.b(u - v)


X = np.random.default_rng(5).standard_normal((2, 5)).astype(np.float32)
SHAPES = {"input_shapes": {"x": (2, 5)}}


@pytest.fixture(scope="module")
def net() -> Any:
    return Net().eval()


@pytest.fixture(scope="module")
def want(net: Any) -> np.ndarray:
    return net(torch.from_numpy(X)).detach().numpy()


KINDS = ["scripted", "traced", "exported", "exported with symbols", "pt2", "pt", "module"]


@pytest.fixture(scope="module")
def sources(net: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The net in every form that is read, and what the form needs."""
    folder, x = tmp_path_factory.mktemp("torch"), torch.from_numpy(X)
    scripted = torch.jit.script(net)
    scripted.save(str(folder / "net.pt"))
    exported = torch.export.export(net, (x,))
    torch.export.save(exported, str(folder / "net.pt2"))
    shapes = {"x": {0: torch.export.Dim("n")}}
    wide = torch.export.export(net, (torch.randn(3, 5),), dynamic_shapes=shapes)
    return {
        "scripted": (scripted, SHAPES),
        "traced": (torch.jit.trace(net, x), SHAPES),
        "exported": (exported, {}),
        "exported with symbols": (wide, {}),
        "pt2": (folder / "net.pt2", {}),
        "pt": (folder / "net.pt", SHAPES),
        "module": (net, {"example_inputs": (x,)}),
    }


def swish(ctx: Any, x: Any, extra: Any = None, *, beta: float, axes: tuple[int, ...] = (0,)) -> Any:
    assert axes == (0, 1)
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, relay.const(np.float32(beta)))))


def pair(ctx: Any, x: Any, *more: Any, mode: str = "a") -> Any:
    return relay.add(x, more[0]), relay.multiply(x, more[-1])


FUNCTIONS = {f"{NAMESPACE}::swish": swish, f"{NAMESPACE}::pair": pair}


def by_relay(model: Any) -> Any:
    weights = [model.params[each.name_hint].array() for each in model.main.params[1:]]
    return run(model.mod["main"], [X, *weights])


def kept_nodes(model: Any) -> list[Foreign]:
    return [Foreign.of(n) for n in post_order(model.main) if is_foreign(n)]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_without_anything_it_is_refused(sources: Any, kind: str) -> None:
    source, options = sources[kind]
    with pytest.raises(UnsupportedModelError, match=r"serde_test::swish.*no importer"):
        serde.to_relay(source, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_convert_it(sources: Any, want: Any, kind: str) -> None:
    source, options = sources[kind]
    report = Report()
    found = serde.to_relay(source, converters=FUNCTIONS, report=report, **options)
    np.testing.assert_allclose(by_relay(found), want, rtol=1e-5, atol=1e-6)
    assert not kept_nodes(found)
    assert [each.op.partition(".")[0] for each in report.fallbacks] == [
        "serde_test::swish", "serde_test::pair",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_kept_it_is_run_by_pytorch(sources: Any, want: Any, kind: str) -> None:
    source, options = sources[kind]
    report = Report()
    found = serde.to_relay(source, keep_unknown=True, report=report, **options)
    np.testing.assert_allclose(by_relay(found), want, rtol=1e-6, atol=1e-6)
    first, second = kept_nodes(found)
    assert (first.framework, first.domain, first.name) == ("torch", NAMESPACE, "swish")
    assert first.plain_attributes["beta"] == 1.5
    assert first.plain_attributes["axes"] == (0, 1)
    assert len(second.results) == 2
    assert len(report.fallbacks) == 2


@pytest.mark.parametrize("strict", [False, True])
def test_kept_it_comes_through_text(sources: Any, strict: bool) -> None:
    found = serde.to_relay(sources["exported with symbols"][0], keep_unknown=True)
    again = relay.fromtext(found.mod.astext(strict=strict))
    assert relay.structural_equal(found.mod, again)


def test_a_symbol_stays_one(sources: Any) -> None:
    found = serde.to_relay(sources["exported with symbols"][0], keep_unknown=True)
    (dim, _) = found.main.params[0].type.shape
    first, _ = kept_nodes(found)
    assert first.results[0].shape == (dim, 4)
    other = np.random.default_rng(9).standard_normal((7, 5)).astype(np.float32)
    weights = [found.params[each.name_hint].array() for each in found.main.params[1:]]
    result = run(found.mod["main"], [other, *weights])
    wanted = Net().eval()(torch.from_numpy(other)).detach().numpy()
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["scripted", "exported"])
def test_pytorch_gets_it_back_as_it_was(sources: Any, want: Any, kind: str, tmp_path: Path) -> None:
    source, options = sources[kind]
    found = serde.to_relay(source, keep_unknown=True, **options)
    module = serde.from_relay(found, format="torch")
    np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), want, rtol=1e-6)
    folder = serde.from_relay(found, format="torch", path=tmp_path / "net")
    text = (folder / "model.py").read_text()
    assert "torch.ops.serde_test.swish(x=y, beta=1.5, axes=[0, 1]" in text


@pytest.mark.parametrize("suffix", [".pt2", ".pt"])
def test_an_archive_gets_it_back(sources: Any, want: Any, suffix: str, tmp_path: Path) -> None:
    found = serde.to_relay(sources["exported"][0], keep_unknown=True)
    path = serde.from_relay(found, format="torch", path=tmp_path / f"net{suffix}")
    options = SHAPES if suffix == ".pt" else {}
    again = serde.to_relay(path, keep_unknown=True, **options)
    np.testing.assert_allclose(by_relay(again), want, rtol=1e-6, atol=1e-6)


def test_an_optional_tensor_is_left_out_or_given(want: Any) -> None:
    class Two(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            y = torch.ops.serde_test.swish(x, 2.0)
            return torch.ops.serde_test.swish(y, 2.0, [1], x)

    exported = torch.export.export(Two(), (torch.from_numpy(X),))
    found = serde.to_relay(exported, keep_unknown=True)
    plain, given = kept_nodes(found)
    assert dict(plain.attributes[ARGUMENTS]).get("extra") is None
    assert dict(given.attributes[ARGUMENTS])["extra"] is not None
    wanted = Two()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(by_relay(found), wanted, rtol=1e-6)

    seen: list[Any] = []

    def read(ctx: Any, x: Any, extra: Any = None, *, beta: float, axes: Any = None) -> Any:
        seen.append((extra is None, axes))
        return x

    serde.to_relay(exported, converters={"serde_test::swish": read})
    assert [each[0] for each in seen] == [True, False]


@pytest.mark.parametrize("name", ["serde_test::bare", "serde_test::bare.default"])
def test_a_name_may_have_an_overload(name: str) -> None:
    class Bare(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return torch.ops.serde_test.bare(x)

    scripted = torch.jit.script(Bare())
    found = serde.to_relay(scripted, converters={name: lambda ctx, x: relay.negative(x)}, **SHAPES)
    np.testing.assert_array_equal(by_relay(found), -X)


def test_types_that_pytorch_cannot_infer_may_be_told() -> None:
    class Bare(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return torch.relu(torch.ops.serde_test.unfaked(x))

    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    library.define("unfaked(Tensor x) -> Tensor")
    library.impl("unfaked", lambda x: torch.from_numpy(x.numpy() * 3), "CPU")
    scripted = torch.jit.script(Bare())
    with pytest.raises(UnsupportedModelError, match="the types of its results are not known"):
        serde.to_relay(scripted, keep_unknown=True, **SHAPES)
    found = serde.to_relay(
        scripted, keep_unknown=True, result_types={"serde_test::unfaked": "float32[2,5]"}, **SHAPES
    )
    np.testing.assert_allclose(by_relay(found), np.maximum(X * 3, 0), rtol=1e-6)
    library._destroy()


def test_onnx_gets_a_node_of_the_library(sources: Any) -> None:
    found = serde.to_relay(sources["exported"][0], keep_unknown=True)
    with pytest.raises(UnsupportedModelError, match="an operator of torch that Relay"):
        serde.from_relay(found, format="onnx", custom_ops=["swish"])
    written = serde.from_relay(found, format="onnx", custom_ops=["swish", f"{NAMESPACE}::pair"])
    own = [each for each in written.graph.node if each.domain]
    assert [(each.domain, each.op_type) for each in own] == [
        (NAMESPACE, "swish"), (NAMESPACE, "pair"),
    ]  # fmt: skip
    assert {each.name for each in own[0].attribute} == {"beta", "axes"}
    assert len(own[1].input) == 3


def test_functions_write_what_was_kept(sources: Any, want: Any) -> None:
    def write_swish(ctx: Any, x: Any, *, beta: float, axes: Any) -> Any:
        return ctx.emit(
            "Mul", x, ctx.emit("Sigmoid", ctx.emit("Mul", x, ctx.const(np.float32(beta))))
        )

    def write_pair(ctx: Any, x: Any, y: Any, z: Any, **attributes: Any) -> Any:
        return ctx.emit("Add", x, y), ctx.emit("Mul", x, z)

    from onnx.reference import ReferenceEvaluator

    found = serde.to_relay(sources["exported"][0], keep_unknown=True)
    written = serde.from_relay(
        found,
        format="onnx",
        converters={"serde_test::swish": write_swish, "serde_test::pair": write_pair},
    )
    (result,) = ReferenceEvaluator(written).run(None, {"x": X})
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6)


def test_a_function_takes_the_place_of_an_operator_that_is_known() -> None:
    class Plain(torch.nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return torch.relu(x)

    for source, options in (
        (torch.jit.script(Plain()), SHAPES),
        (torch.export.export(Plain(), (torch.from_numpy(X),)), {}),
    ):
        found = serde.to_relay(
            source, converters={"aten::relu": lambda ctx, x: relay.negative(x)}, **options
        )
        np.testing.assert_array_equal(by_relay(found), -X)


def test_what_custom_convert_map_gives_stays(sources: Any, want: Any) -> None:
    def old_swish(inputs: Any, dtypes: Any) -> Any:
        assert dtypes[0] == "float32"
        x, beta = inputs[:2]
        return relay.multiply(x, relay.sigmoid(relay.multiply(x, relay.const(np.float32(beta)))))

    def old_pair(inputs: Any, dtypes: Any) -> Any:
        return relay.add(inputs[0], inputs[1][0]), relay.multiply(inputs[0], inputs[1][-1])

    found = serde.to_relay(
        sources["exported"][0],
        custom_convert_map={"serde_test::swish": old_swish, "serde_test::pair": old_pair},
    )
    np.testing.assert_allclose(by_relay(found), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx, x, **a: 3, "expected 1 Relay expressions, found 3"),
        (lambda ctx, x, **a: None, "expected 1 Relay expressions, found None"),
        (lambda ctx, x, **a: 1 / 0, "ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("kind", ["scripted", "exported"])
def test_a_function_that_is_wrong_is_named(
    sources: Any, kind: str, function: Any, message: str
) -> None:
    source, options = sources[kind]
    given = {**FUNCTIONS, "serde_test::swish": function}
    with pytest.raises(OptionError, match=rf"<lambda> of serde_test::swish .*node .*{message}"):
        serde.to_relay(source, converters=given, **options)


HOSTILE = [
    ("serde_test", "not_there"),
    ("load_library", "x"),
    ("import_module", "x"),
    ("__class__", "__init__"),
    ("loaded_libraries", "clear"),
    ("no_such_library", "op"),
]


@pytest.mark.parametrize(("domain", "name"), HOSTILE)
def test_only_operators_of_pytorch_are_run(domain: str, name: str) -> None:
    one = TensorType((2, 5), "float32")
    node = Foreign(framework="torch", domain=domain, name=name, results=(one,))
    x = relay.var("x", one)
    with pytest.raises(RelayError):
        run(relay.Function([x], node.build([x])), [X])


@pytest.mark.parametrize("placed", [False, True], ids=["attributes", "arguments"])
def test_an_operator_that_opens_files_is_not_run(placed: bool, tmp_path: Path) -> None:
    one = TensorType((2,), "float32")
    target = tmp_path / "written"
    given = {"filename": str(target), "shared": True, "size": 2}
    node = Foreign(
        framework="torch", domain="aten", name="from_file",
        attributes={"$arguments": tuple(given.items())} if placed else given, results=(one,),
    )  # fmt: skip
    with pytest.raises(RelayError, match="takes a text"):
        run(relay.Function([], node.build([])), [])
    assert not target.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "no name of an operator in Python"),
        ({"name": "a(); import os"}, "no name of an operator in Python"),
        ({"domain": "a.b"}, "no name of an operator in Python"),
        ({"attributes": {"a b": 1}}, "is no argument of a call"),
        ({"attributes": {"raw": b"x"}}, "is no argument of a call"),
    ],
)
def test_names_that_are_none_of_pythons_are_not_written(
    changes: dict[str, Any], message: str
) -> None:
    one = TensorType((2, 5), "float32")
    given = {"framework": "torch", "domain": NAMESPACE, "name": "bare", "results": (one,)}
    x = relay.var("x", one)
    call = Foreign(**{**given, **changes}).build([x])
    mod = relay.IRModule.from_expr(relay.Function([x], call))
    with pytest.raises(UnsupportedModelError, match=message):
        serde.from_relay(mod, format="torch")


def test_an_operator_of_onnx_is_called_by_name(tmp_path: Path) -> None:
    one = TensorType((2, 5), "float32")
    node = Foreign(
        framework="onnx", domain="com.acme", name="Wobble-2", attributes={"gain": 1.5},
        results=(one,),
    )  # fmt: skip
    x = relay.var("x", one)
    mod = relay.IRModule.from_expr(relay.Function([x], node.build([x])))
    with pytest.raises(UnsupportedModelError, match="an operator of onnx"):
        serde.from_relay(mod, format="torch", path=tmp_path / "net")
    folder = serde.from_relay(
        mod, format="torch", path=tmp_path / "net", custom_ops=["com.acme::Wobble-2"]
    )
    assert "torch.ops.com_acme.Wobble_2(x, gain=1.5)" in (folder / "model.py").read_text()


def test_a_check_runs_what_is_kept(sources: Any, tmp_path: Path) -> None:
    path, _ = sources["pt2"]
    target = tmp_path / "net.onnx"
    serde.convert(path, target, converters=FUNCTIONS)
    report = serde.check(path, target, keep_unknown=True)
    assert report.passed
    assert report.engines is not None
    assert report.engines[0] == "relay interpreter"


def test_an_archive_names_its_operator(sources: Any) -> None:
    """What is kept comes from the archive: it holds the name, and nothing was guessed."""
    path, _ = sources["pt2"]
    with zipfile.ZipFile(path) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("models/model.json")]
        assert b"serde_test.swish" in archive.read(name)
