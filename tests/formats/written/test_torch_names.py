"""Written source whose names could be the writer's own: it loads strictly, and computes right."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.named_nets import NamedNet, named_net, row_of_blocks
from support.unlucky_names import UNLUCKY

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.relay.ir.dims import symbol
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.torch.names import OF_MODULES

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
onnxruntime = pytest.importorskip("onnxruntime")

FEW = 10
MANY = 300


def seeds() -> list[Any]:
    """Seeds, of which the first run in each run."""
    return [
        pytest.param(seed, marks=[] if seed < FEW else [pytest.mark.wide]) for seed in range(MANY)
    ]


def load(folder: Path) -> Any:
    """Return the module that a folder's own loader makes, which is strict."""
    spec = importlib.util.spec_from_file_location(f"written_{folder.name}", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model.from_pretrained(folder)


def flat(found: Any) -> list[np.ndarray]:
    return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]


def check(model: Any, feeds: dict[str, np.ndarray], folder: Path, **options: str) -> None:
    """Write a folder, and compare what its module computes with ONNX Runtime."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = 1
    expected = onnxruntime.InferenceSession(model.SerializeToString(), chosen).run(None, feeds)
    serde.export_model(serde.to_relay(model), format="torch", path=folder, **options)
    module = load(folder)
    assert safetensors.load_file(folder / "model.safetensors").keys() == module.state_dict().keys()
    with torch.no_grad():
        found = flat(module(*map(torch.from_numpy, feeds.values())))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("control_flow", ["python", "hop"])
@pytest.mark.parametrize("seed", seeds())
def test_names_that_the_writer_would_choose_itself(
    seed: int, control_flow: str, tmp_path: Path
) -> None:
    check(*named_net(seed), tmp_path / "net", control_flow=control_flow)


@pytest.mark.parametrize("seed", seeds())
def test_rows_of_blocks_of_several_kinds(seed: int, tmp_path: Path) -> None:
    check(*row_of_blocks(seed), tmp_path / "net")


def test_rows_in_scopes_with_unlucky_names(tmp_path: Path) -> None:
    net = NamedNet(random.Random(0), [])
    x = net.input(2, 4)
    for scope in ("forward", "self", "nn", "F", "a.b", "a_b", "class", "layers", "_", "x.0"):
        for place in ("0", "1.0", "2"):
            held = [
                net.weight(*shape, name=f"{scope}.{place}.{kind}")
                for kind, shape in (("weight", (4, 4)), ("bias", (4,)))
            ]
            x = net.node("Relu", net.node("Gemm", x, *held, transB=1))
    check(net.finish([x], 2, 4), net.feeds, tmp_path / "net")
    assert (tmp_path / "net" / "model.py").read_text().count("nn.Sequential(") == 7


class Plain(torch.nn.Module):
    """A module with nothing of its own."""

    def forward(self, x: Any) -> Any:
        return x


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain(),
        lambda: torch.fx.symbolic_trace(Plain()),
        lambda: torch.export.export(Plain(), (torch.ones(2),)).module(),
        lambda: torch.jit.script(Plain()),
    ],
    ids=["module", "fx", "export", "script"],
)
def test_attributes_that_modules_have_are_known(make: Callable[[], Any]) -> None:
    own = {"args_0"}  # How ``torch.export`` calls the only input.
    own.add("smart_apply")  # What transformers gives every module, once it is imported.
    assert {each for each in dir(make()) if not each.startswith("_")} - own <= OF_MODULES


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", [".pt", ".pt2"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("graph", "数据") else [pytest.mark.wide])
        for name in dict.fromkeys([*UNLUCKY[1::6], "graph", "数据"])
    ],
)
def test_archives_with_unlucky_names_are_read_again(name: str, suffix: str, tmp_path: Path) -> None:
    """The only input, its length and the only weight have the same name, but for a stroke."""
    x, w = relay.var(name, shape=(symbol(name or "n"), 3)), relay.var(f"{name}/", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.sin(relay.add(x, w))))
    weights = {f"{name}/": ArrayWeight(np.ones(3, np.float32))}
    meta = ModelMeta((name,), (f"{name}//",))
    model = RelayModel(relay.transform.InferType()(mod), weights, meta)
    path = tmp_path / f"net{suffix}"
    serde.export_model(model, format="torch", path=path)
    read = torch.jit.load(path) if suffix == ".pt" else torch.export.load(path).module()
    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = read(torch.from_numpy(given)).detach().numpy()
    np.testing.assert_allclose(found, np.sin(given + 1), rtol=1e-5, atol=1e-6)
