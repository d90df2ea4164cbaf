"""Modules that were written run, in memory, from their folder and from archives."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.samples import build

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import all_ops, call
from serde.relay.ir.types import TupleType

torch = pytest.importorskip("torch")

NOTHING = {"one": (0, 3), "other": (4, 0)}
LOOPS = [
    pytest.param(name, given, id=f"{name}-{number}")
    for name in ("serde.loop", "serde.scan", "serde.lstm", "serde.gru", "serde.rnn")
    for number, given in enumerate(all_ops()[name].samples)
]


def model_of(function: Function, weights: dict[str, np.ndarray]) -> RelayModel:
    """Return a function with some of its parameters as weights."""
    mod = relay.transform.InferType()(IRModule.from_expr(function))
    type_ = mod["main"].body.type
    count = len(type_.fields) if isinstance(type_, TupleType) else 1
    names = [each.name_hint for each in function.params if each.name_hint not in weights]
    held = {name: ArrayWeight(value) for name, value in weights.items()}
    outputs = tuple(f"out{number}" for number in range(count))
    return RelayModel(mod, held, ModelMeta(tuple(names), outputs))


def as_torch(value: Any) -> Any:
    if isinstance(value, list):
        return [torch.from_numpy(np.array(each)) for each in value]
    return torch.from_numpy(np.array(value))


def flat(values: Any) -> list[np.ndarray]:
    """Return results, those of lists by themselves, as arrays."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    parts = [part for each in values for part in (each if isinstance(each, list) else [each])]
    return [np.asarray(each.detach() if torch.is_tensor(each) else each) for each in parts]


def compare(found: Any, expected: Sequence[np.ndarray]) -> None:
    results = flat(found)
    assert [(each.shape, each.dtype) for each in results] == [
        (each.shape, each.dtype) for each in expected
    ]
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize(("name", "given"), LOOPS)
def test_loops_run_and_are_scripted(name: str, given: Any) -> None:
    sample = build(all_ops()[name], given)
    module = serde.export_model(model_of(sample.function, {}), format="torch")
    arguments = [as_torch(each) for each in sample.arrays]
    expected = flat(sample.run())
    compare(module(*arguments), expected)
    compare(torch.jit.script(module)(*arguments), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32"])
def test_tables_of_every_dtype_are_looked_up(dtype: str) -> None:
    table = np.arange(12).reshape(4, 3).astype(dtype)
    rows = relay.var("rows", shape=(2,), dtype="int64")
    held = relay.var("held", shape=table.shape, dtype=dtype)
    function = Function([rows, held], relay.take(held, rows, axis=0, mode="fast"))
    module = serde.export_model(model_of(function, {"held": table}), format="torch")
    compare(module(torch.tensor([3, 1])), [table[[3, 1]]])


def branch() -> tuple[RelayModel, dict[str, np.ndarray]]:
    """Return a conditional, and its weights."""
    x = relay.var("x", shape=(3, 4))
    w = relay.var("fc_weight", shape=(4, 4))
    y = relay.nn.relu(x)
    chosen = relay.If(
        relay.greater(relay.sum(x), relay.const(0.0, "float32")),
        relay.nn.dense(y, w),
        relay.reshape(x, (3, 4)),
    )
    weights = {"fc_weight": np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)}
    return model_of(Function([x, w], relay.tanh(chosen)), weights), weights


def expected_of_branch(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    chosen = np.maximum(x, 0) @ weight.T if x.sum() > 0 else x
    return np.tanh(chosen)


@pytest.mark.parametrize("sign", [1, -1])
def test_both_branches_of_cond_are_exported(sign: int) -> None:
    model, weights = branch()
    module = serde.export_model(model, format="torch", control_flow="hop")
    x = np.full((3, 4), sign, np.float32)
    exported = torch.export.export(module, (torch.from_numpy(np.abs(x)),)).module()
    compare(exported(torch.from_numpy(x)), [expected_of_branch(x, weights["fc_weight"])])


def test_while_loop_is_exported() -> None:
    sample = build(all_ops()["serde.loop"], all_ops()["serde.loop"].samples[0])
    module = serde.export_model(model_of(sample.function, {}), format="torch", control_flow="hop")
    arguments = tuple(as_torch(each) for each in sample.arrays)
    assert "torch.while_loop(" in inspect.getsource(sys.modules[type(module).__module__])
    compare(torch.export.export(module, arguments).module()(*arguments), flat(sample.run()))


def dynamic() -> tuple[RelayModel, np.ndarray]:
    """Return a dense layer of any number of rows, and its weight."""
    x, w = relay.var("x", shape=("N", 4)), relay.var("fc_weight", shape=(2, 4))
    weight = np.arange(8, dtype=np.float32).reshape(2, 4)
    body = relay.nn.relu(relay.nn.dense(x, w))
    return model_of(Function([x, w], body), {"fc_weight": weight}), weight


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("suffix", [".pt2", ".pt"])
def test_archives_run_for_any_length_and_are_the_same_again(tmp_path: Path, suffix: str) -> None:
    model, weight = dynamic()
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "other")]
    for path in paths:
        serde.export_model(model, format="torch", path=path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    load = torch.jit.load if suffix == ".pt" else lambda path: torch.export.load(path).module()
    x = np.ones((5, 4), np.float32)
    compare(load(str(paths[0]))(torch.from_numpy(x)), [np.maximum(x @ weight.T, 0)])


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_archives_hold_weights_of_no_elements(tmp_path: Path, dtype: str) -> None:
    """Those that share no memory, and one that is empty by a slice of another."""
    one, other = (relay.var(name, shape=shape, dtype=dtype) for name, shape in NOTHING.items())
    rows = relay.var("rows", shape=(2, 3), dtype=dtype)
    body = relay.Tuple([one, relay.transpose(other), relay.strided_slice(rows, [2], [1], axes=[1])])
    weights = {name: np.zeros(shape, dtype) for name, shape in NOTHING.items()}
    weights["rows"] = np.ones((2, 3), dtype)
    model = model_of(Function([one, other, rows], body), weights)
    path = tmp_path / "net.pt2"
    serde.export_model(model, format="torch", path=path)
    expected = [np.zeros(shape, dtype) for shape in ((0, 3), (0, 4), (2, 0))]
    compare(torch.export.load(path).module()(), expected)


def test_weights_of_classes_have_no_gradient() -> None:
    """PyTorch has none for them, and refuses to compute a loss that asks for one."""
    scores = relay.var("scores", shape=(3, 2))
    labels = relay.var("labels", shape=(3,), dtype="int32")
    shift, classes = relay.var("shift", shape=(2,)), relay.var("classes", shape=(2,))
    weights = relay.exp(relay.add(classes, relay.max(scores)))
    shifted = relay.add(scores, shift)
    losses = call("serde.softmax_cross_entropy_loss", shifted, labels, weights)
    body = relay.TupleGetItem(losses, 0)
    held = {"shift": np.float32([0.5, -1]), "classes": np.float32([0.25, 2])}
    function = Function([scores, labels, shift, classes], body)
    module = serde.export_model(model_of(function, held), format="torch")
    given = torch.tensor([[1.0, -2.0], [0.5, 0.0], [-1.0, 3.0]]), torch.tensor([0, 1, 1])
    loss = module(*given)
    by_class = torch.exp(torch.from_numpy(held["classes"]) + 3)
    expected = torch.nn.functional.cross_entropy(
        given[0] + torch.from_numpy(held["shift"]), given[1], by_class
    )
    torch.testing.assert_close(loss, expected)
    loss.backward()
    gradients = {name: each.grad for name, each in module.named_parameters()}
    assert gradients["shift"].abs().sum() > 0
    assert gradients["classes"] is None
    torch.export.export(module, given)


def test_an_archive_is_refused_where_pytorch_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedModelError, match=r"PyTorch does not take it: .*; control_flow='hop'"
    ):
        serde.export_model(branch()[0], format="torch", path=tmp_path / "net.pt2")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_loads_by_itself(tmp_path: Path) -> None:
    model, weight = dynamic()
    serde.export_model(model, format="torch", path=tmp_path / "net_torch")
    spec = importlib.util.spec_from_file_location("net", tmp_path / "net_torch" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded = module.Model.from_pretrained(tmp_path / "net_torch")
    x = np.ones((3, 4), np.float32)
    compare(loaded(torch.from_numpy(x)), [np.maximum(x @ weight.T, 0)])
    assert not loaded.training
    np.testing.assert_array_equal(loaded.state_dict()["fc.weight"], weight)


def test_equal_dropouts_stay_apart() -> None:
    x = relay.var("x", shape=(64, 64))
    parts = [relay.nn.dropout(x, 0.5) for _ in range(2)]
    module = serde.export_model(model_of(Function([x], relay.Tuple(parts)), {}), format="torch")
    ones = torch.ones(64, 64)
    one, other = module.train()(ones)
    assert not torch.equal(one, other)
    one, other = module.eval()(ones)
    assert torch.equal(one, ones)
    assert torch.equal(other, ones)
