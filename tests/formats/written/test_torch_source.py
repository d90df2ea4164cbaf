"""Written folders of PyTorch are read back as data, without PyTorch; nothing of them is run."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.engine.interpreter import RelayEngine
from serde.errors import SerdeError
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

X = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)
WEIGHTS = {
    f"fc{place}_{name}": np.random.default_rng(place).standard_normal(shape).astype(np.float32)
    for place in range(3)
    for name, shape in (("weight", (4, 4)), ("bias", (4,)))
}


def dense(x: np.ndarray, place: int) -> np.ndarray:
    """A layer, computed by NumPy."""
    return x @ WEIGHTS[f"fc{place}_weight"].T + WEIGHTS[f"fc{place}_bias"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three layers with an activation between, as a folder."""
    x = data = relay.var("x", shape=(2, 4))
    held = {name: relay.var(name, shape=value.shape) for name, value in WEIGHTS.items()}
    for place in range(3):
        x = relay.nn.bias_add(
            relay.nn.dense(relay.tanh(x) if place else x, held[f"fc{place}_weight"]),
            held[f"fc{place}_bias"],
        )
    mod = IRModule.from_expr(relay.Function([data, *held.values()], x))
    weights = {name: ArrayWeight(value) for name, value in WEIGHTS.items()}
    model = RelayModel(relay.transform.InferType()(mod), weights, ModelMeta(("x",), ("y",)))
    serde.export_model(model, format="torch", path=tmp_path / "net_torch")
    return tmp_path / "net_torch"


def run(path: Path) -> np.ndarray:
    """What a folder gives, read back and run by the interpreter."""
    (found,) = RelayEngine(serde.to_relay(path)).run({"x": X})
    return np.asarray(found)


def rewrite(path: Path, forward: str, init: str = "", before: str = "") -> None:
    """Give a folder another module, which has no weights."""
    text = (path / "model.py").read_text(encoding="utf-8")
    loader = text[text.index("    @classmethod") :]
    head = "import math\nfrom pathlib import Path\n\nimport torch\n"
    head += "import torch.nn.functional as F\nfrom torch import Tensor, nn\n\n"
    made = f"    def __init__(self):\n        super().__init__()\n{init}\n"
    body = f"    def forward(self, x):\n{forward}\n\n"
    source = f"{head}{before}\n\nclass Model(nn.Module):\n{made}{body}{loader}"
    (path / "model.py").write_text(source, encoding="utf-8")
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")


def test_folder_is_read_back(folder: Path) -> None:
    wanted = dense(np.tanh(dense(np.tanh(dense(X, 0)), 1)), 2)
    np.testing.assert_allclose(run(folder), wanted, rtol=1e-5, atol=1e-5)


def test_folder_is_converted_and_checked(folder: Path, tmp_path: Path) -> None:
    """It has a config and weights in safetensors, as a checkpoint of Hugging Face."""
    report = serde.convert(folder, tmp_path / "net.onnx", check=True)
    assert report.facts["source"] == "torch"
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    (found,) = session.run(None, {"x": X})
    np.testing.assert_allclose(found, run(folder), rtol=1e-5, atol=1e-5)


def test_folder_with_a_layer_less_and_another_activation(folder: Path) -> None:
    source = folder / "model.py"
    text = source.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "fc1" not in line]
    source.write_text("\n".join(lines).replace("torch.tanh", "torch.relu"), encoding="utf-8")
    with pytest.raises(SerdeError, match=r"found fc1\.bias as well"):
        run(folder)
    path = folder / "model.safetensors"
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    kept = json.dumps({key: x for key, x in header.items() if "fc1" not in key}).encode()
    path.write_bytes(len(kept).to_bytes(8, "little") + kept + data[start:])
    relu = np.maximum(dense(X, 0), 0)
    wanted = dense(np.maximum(relu, 0), 2)
    np.testing.assert_allclose(run(folder), wanted, rtol=1e-5, atol=1e-5)


FORWARDS = {
    "loop": ("        for i in range(3):\n            x = x * 2 + i\n        return x",
             X * 8 + 4),
    "branch": (
        "        if x.sum() > 1000:\n            return x\n        y = x - 1\n        return y",
        X - 1,
    ),
    "while": ("        n = 0\n        while n < x.shape[0]:\n            x = x + n\n"
              "            n += 1\n        return x", X + 1),
    "break": ("        for i in range(9):\n            if i == 2:\n                break\n"
              "            x = x + 1\n        return x", X + 2),
    "brackets": ("        return x[..., None, 1:3][:, -1]", X[..., None, 1:3][:, -1]),
    "places": ("        y = x.clone()\n        y[:, 1] = 5\n        return y",
               np.concatenate([X[:, :1], np.full((2, 1), 5, np.float32), X[:, 2:]], 1)),
    "lists": ("        rows = [r * 2 for r in x]\n        rows.append(x[0])\n"
              "        return torch.stack(rows)", np.concatenate([X * 2, X[:1]])),
    "zip": ("        y = x * 0\n        for a, (i, b) in zip(x, enumerate(x)):\n"
            "            y = y + a * b + i\n        return y",
            np.broadcast_to((X * X).sum(0) + 1, X.shape)),
}  # fmt: skip


@pytest.mark.parametrize("case", FORWARDS)
def test_statements_mean_what_they_mean_in_python(folder: Path, case: str) -> None:
    forward, wanted = FORWARDS[case]
    rewrite(folder, forward)
    np.testing.assert_allclose(run(folder), wanted, rtol=1e-5, atol=1e-5)


HOSTILE = {
    "import": ("        return __import__('os').getcwd()", "", "", "15: expected a name"),
    "open": ("        open('PWNED', 'w')\n        return x", "", "", "15: expected a name"),
    "exec": ("        exec('x = 1')\n        return x", "", "", "15: expected a name"),
    "dunder": ("        return x.__class__", "", "", "15: expected shape, dtype"),
    "module": ("        return x", "", "import os\n", ":8: expected imports"),
    "star": ("        return x", "", "from torch import *\n", ":8: expected names"),
    "patch": ("        return x", "", "F.relu = 3\n", ":8: expected a class or a function"),
    "decorator": ("        return x", "", "@torch.jit.ignore\ndef f(x):\n    return x\n",
                  "without"),
    "list": ("        return x", "        self.a = [0] * 10**12", "", "steps"),
    "text": ("        return x", "        self.a = 'a' * 10**12", "", "steps"),
    "power": ("        return x * 10**10**10", "", "", "15: expected what can be computed"),
    "layers": ("        return x",
               "        self.a = nn.Sequential(*(nn.ReLU() for _ in range(10**9)))", "", "steps"),
    "calls": ("        return self(x)", "", "", "48 calls"),
    "classes": ("        return x", "        self.a = A()",
                "class A(nn.Module):\n    def __init__(self):\n        self.a = A()\n", "48 calls"),
    "doubling": ("        y = x\n" + "        y = (y, y)\n" * 60 + "        return y", "", "",
                 "steps"),
    "deep": ("        return " + "-" * 19_000 + "x", "", "", "levels"),
    "brackets": ("        return " + "(" * 5_000 + "x" + ")" * 5_000, "", "", "expected"),
    "growing": ("        return x", "        a = [1]\n        for _ in range(60):\n"
                "            a.extend(a)\n        self.a = a", "", "steps"),
    "endless": ("        return x", "        a = [1]\n        for each in a:\n"
                "            a.append(each)", "", "steps"),
    "module in itself": ("        return x", "        self.a = nn.Sequential()\n"
                         "        self.a.append(self.a)", "", "modules and weights once"),
    "name of a module": ("        return x", "        self.a = nn.Sequential()\n"
                         "        self.a.add_module('forward', nn.ReLU())", "", "that nothing"),
    "no self": ("        return x", "        self.a = A()",
                "class A(nn.Sequential):\n    def __init__(this):\n"
                "        super().__init__(nn.ReLU())\n", "in a constructor"),
    "layers by name": ("        return x", "        self.a = nn.Sequential(first=nn.ReLU())", "",
                       "in a list of them"),
    "static return": ("        for m in (1, 2):\n            return x\n        return x", "", "",
                      "outside of loops"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_leaves_the_subset_is_refused_by_its_line(folder: Path, case: str) -> None:
    forward, init, before, reason = HOSTILE[case]
    rewrite(folder, forward, init, before)
    start = time.process_time()
    with pytest.raises(SerdeError, match=reason) as caught:
        serde.to_relay(folder)
    assert "model.py" in str(caught.value)
    assert time.process_time() - start < 30
    assert not Path("PWNED").exists()


def test_lists_that_grow_are_one_list_under_all_names(folder: Path) -> None:
    init = """        a = [1, 2]
        b = self.c = a
        a += [3]
        b.append(4)
        a.extend((5, 6))
"""
    rewrite(folder, "        return x * len(self.c) + self.c[-1]", init)
    np.testing.assert_allclose(run(folder), X * 6 + 6, rtol=1e-6)


def test_another_loader_is_refused(folder: Path) -> None:
    source = folder / "model.py"
    text = source.read_text(encoding="utf-8").replace('"model.safetensors"', '"../x.safetensors"')
    source.write_text(text, encoding="utf-8")
    with pytest.raises(SerdeError, match="from_pretrained as serde writes it"):
        serde.to_relay(folder)


@pytest.mark.parametrize("name", ["model.py", "model.safetensors", "config.json"])
def test_links_are_not_followed(folder: Path, name: str, tmp_path: Path) -> None:
    (folder / name).rename(tmp_path / name)
    os.symlink(tmp_path / name, folder / name)
    with pytest.raises(SerdeError, match="symbolic link"):
        serde.to_relay(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    source = folder / "model.py"
    text = source.read_text(encoding="utf-8").replace(
        "nn.Linear(4, 4)", "nn.Linear(4, 2, dtype=torch.float16)", 1
    )
    source.write_text(
        text.replace("from torch import nn", "import torch\nfrom torch import nn"), encoding="utf-8"
    )
    with pytest.raises(SerdeError, match=r"expected float16\[2"):
        serde.to_relay(folder)
