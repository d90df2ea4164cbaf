"""MXNet reads marked pairs as it reads its own, and writes them anew without the mark."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.core.weights import ArrayWeight
from serde.errors import MissingDependency

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
WEIGHT = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
Y = np.tanh(X @ WEIGHT.T)


@pytest.fixture
def mx() -> Any:
    try:
        return import_mxnet()
    except MissingDependency:
        pytest.skip("MXNet is not installed")


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """A dense layer, written by serde."""
    x, weight = relay.var("data", shape=X.shape), relay.var("fc_weight", shape=WEIGHT.shape)
    function = relay.Function([x, weight], relay.tanh(relay.nn.dense(x, weight)))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    meta = relay.ModelMeta(inputs=("data",), outputs=("out",))
    model = relay.RelayModel(mod, {"fc_weight": ArrayWeight(WEIGHT)}, meta)
    serde.from_relay(model, path=tmp_path / "net-symbol.json")
    assert marks(tmp_path) != [0, 0]
    return str(tmp_path / "net")


def marks(folder: Path) -> list[int]:
    """The marks of symbol and parameters, read from the bytes."""
    text = (folder / "net-symbol.json").read_text()
    raw = (folder / "net-0000.params").read_bytes()
    _, found, rest = text.partition('"serde_pair"')
    return [int(rest.split('"')[3], 16) if found else 0, struct.unpack_from("<Q", raw, 8)[0]]


def test_both_files_carry_the_same_mark(prefix: str) -> None:
    first, second = marks(Path(prefix).parent)
    assert first == second


def test_nd_load(mx: Any, prefix: str) -> None:
    loaded = mx.nd.load(f"{prefix}-0000.params")
    assert list(loaded) == ["arg:fc_weight"]
    np.testing.assert_array_equal(loaded["arg:fc_weight"].asnumpy(), WEIGHT)
    raw = Path(f"{prefix}-0000.params").read_bytes()
    assert list(mx.nd.load_frombuffer(raw)) == ["arg:fc_weight"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_symbol_block_imports(mx: Any, prefix: str) -> None:
    files = f"{prefix}-symbol.json", f"{prefix}-0000.params"
    block = mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_allclose(block(mx.nd.array(X)).asnumpy(), Y, rtol=1e-5, atol=1e-6)


def test_module_load(mx: Any, prefix: str) -> None:
    module = mx.mod.Module.load(prefix, 0, data_names=["data"], label_names=None)
    module.bind([("data", X.shape)], for_training=False)
    module.forward(mx.io.DataBatch([mx.nd.array(X)]))
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), Y, rtol=1e-5, atol=1e-6)


def test_a_checkpoint_that_mxnet_saves_has_no_mark(mx: Any, prefix: str) -> None:
    symbol, args, aux = mx.model.load_checkpoint(prefix, 0)
    mx.model.save_checkpoint(prefix, 0, symbol, {"fc_weight": args["fc_weight"] * 2}, aux)
    assert marks(Path(prefix).parent) == [0, 0]
    (weight,) = serde.to_relay(prefix, input_shapes={"data": X.shape}).params.values()
    np.testing.assert_array_equal(weight.array(), 2 * WEIGHT)


def test_parameters_that_mxnet_saves_fit_a_marked_symbol(mx: Any, prefix: str) -> None:
    mx.nd.save(f"{prefix}-0001.params", {"arg:fc_weight": mx.nd.array(WEIGHT * 3)})
    found = serde.to_relay(prefix, input_shapes={"data": X.shape}, epoch=1)
    (weight,) = found.params.values()
    np.testing.assert_array_equal(weight.array(), 3 * WEIGHT)
