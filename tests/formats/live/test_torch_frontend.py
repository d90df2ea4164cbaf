"""``relay.frontend.from_pytorch`` and ``from_exported_program`` as TVM's users call them."""

from __future__ import annotations

import numpy as np
import pytest

import serde
import serde.relay as relay

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
X = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
IDS = np.array([[1, 0, 2]])


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.inner = torch.nn.Linear(3, 4)
        self.table = torch.nn.Embedding(5, 4)

    def forward(self, x, ids):
        return torch.relu(self.inner(x)), self.table(ids) + 1


def script():
    return torch.jit.trace(Net().eval(), (torch.tensor(X), torch.tensor(IDS)))


INFOS = [("data", (2, 3)), ("tokens", ((1, 3), "int64"))]


def run(mod, params, **inputs):
    executor = relay.create_executor("graph", mod=mod)
    return executor.evaluate()(**inputs, **params)


@pytest.mark.parametrize("infos", [INFOS, [INFOS[0], ("tokens", ((1, 3), "long"))]])
def test_values_and_names(infos):
    mod, params = relay.frontend.from_pytorch(script(), infos)
    assert [each.name_hint for each in mod["main"].params][:2] == ["data", "tokens"]
    assert set(params) == {"inner.weight", "inner.bias", "table.weight"}
    found = run(mod, params, data=X, tokens=IDS)
    wanted = Net()(torch.tensor(X), torch.tensor(IDS))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_friendly_names():
    _, params = relay.frontend.from_pytorch(script(), INFOS, use_parser_friendly_name=True)
    assert set(params) == {"inner_weight", "inner_bias", "table_weight"}


def test_own_converters():
    seen = []

    def convert(inputs, input_types):
        seen.append((len(inputs), input_types))
        return relay.negative(inputs[0])

    mod, params = relay.frontend.from_pytorch(script(), INFOS, {"aten::relu": convert})
    (found, _) = run(mod, params, data=X, tokens=IDS)
    wanted = -Net().inner(torch.tensor(X))
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert seen == [(1, ["float32"])]


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        (INFOS[:1], r"expected 2 \(x, ids\), found 1"),
        ([("data", ((2, 3), (1,))), INFOS[1]], "expected a shape or"),
    ],
)
def test_wrong_infos(infos, message):
    with pytest.raises(serde.OptionError, match=message):
        relay.frontend.from_pytorch(script(), infos)


def test_exported_program():
    program = torch.export.export(Net().eval(), (torch.tensor(X), torch.tensor(IDS)))
    mod, params = relay.frontend.from_exported_program(program)
    found = run(mod, params, x=X, ids=IDS)
    wanted = Net()(torch.tensor(X), torch.tensor(IDS))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)
