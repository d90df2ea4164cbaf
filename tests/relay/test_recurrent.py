"""Recurrent layers: kernels and decompositions against ONNX Runtime, PyTorch and NumPy."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.runtime import open_session, skip_empty_sequences, skip_rnn_of_other_activations

import serde.relay as relay
from serde.core.report import Report
from serde.errors import TypeInferenceError
from serde.onnx.exporter import from_relay
from serde.relay.ir.dims import Dim, symbol
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.op.recurrent.gates import PARAMETERS
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose, InferType

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
FUNCTIONS = {"lstm": 3, "gru": 2, "rnn": 1}
TIME, BATCH, INPUT, HIDDEN = 6, 3, 4, 5
TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
SPREAD = 0.5
"""Deviation of weights: small enough for rounding not to grow from step to step."""
NAMES = [
    "sigmoid", "tanh", "relu", "affine", "leaky_relu", "thresholded_relu", "scaled_tanh",
    "hard_sigmoid", "elu", "softsign", "softplus",
]  # fmt: skip
LEGAL = Decompose(frozenset())


def _operands(
    kind: str,
    *,
    direction: str = "forward",
    layout: str = "TNC",
    absent: str = "",
    lengths: Any = None,
) -> list[np.ndarray | None]:
    """Random operands in order; `absent` names those left out by their first letters."""
    seed = zlib.crc32(f"{kind} {direction} {layout}".encode())
    draw = np.random.default_rng(seed).normal
    directions, rows = 1 + (direction == "bidirectional"), GATES[kind] * HIDDEN
    data = draw(size=(TIME, BATCH, INPUT))
    states = [draw(size=(directions, BATCH, HIDDEN)) for _ in range(2)]
    if layout == "NTC":
        data, states = data.swapaxes(0, 1), [state.swapaxes(0, 1) for state in states]
    arrays = [
        data,
        draw(size=(directions, rows, INPUT)),
        draw(size=(directions, rows, HIDDEN)),
        None if "b" in absent else draw(size=(directions, 2 * rows)),
        None if lengths is None else np.array(lengths, np.int32),
        None if "h" in absent else states[0],
    ]
    if kind == "lstm":
        arrays.append(None if "c" in absent else states[1])
        arrays.append(None if "p" in absent else draw(size=(directions, 3 * HIDDEN)))
    return [
        (SPREAD * x).astype("float32") if x is not None and x.dtype == np.float64 else x
        for x in arrays
    ]


def _function(kind: str, arrays: list[Any], dims: Any = None, **attrs: Any) -> Function:
    """The layer as a function of the operands that are there."""
    variables: list[Var] = []
    operands: list[Expr | None] = []
    for array in arrays:
        if array is None:
            operands.append(None)
            continue
        shape: tuple[Dim, ...] = array.shape if dims is None else dims(len(operands), array.shape)
        variables.append(Var(f"x{len(variables)}", TensorType(shape, array.dtype)))
        operands.append(variables[-1])
    return Function(variables, call(f"serde.{kind}", *operands, hidden_size=HIDDEN, **attrs))


def _present(arrays: list[Any]) -> list[np.ndarray]:
    return [array for array in arrays if array is not None]


def _runtime(function: Function, arrays: list[np.ndarray], opset: int = 17) -> list[np.ndarray]:
    skip_empty_sequences(array for array in arrays if array.dtype == np.int32)
    for node in post_order(function):
        if isinstance(node, Call) and getattr(node.op, "name", "") == "serde.rnn":
            skip_rnn_of_other_activations(node.attrs["activations"])
    names = tuple(variable.name_hint for variable in function.params)
    body = function.body
    count = len(body.fields) if isinstance(body, Tuple) else len(body.type.fields)
    meta = ModelMeta(names, tuple(f"y{index}" for index in range(count)))
    model = RelayModel(IRModule({"main": function}), {}, meta)
    proto = from_relay(model, opset, True, Report()).complete()
    feeds = dict(zip(names, arrays, strict=True))
    return open_session(proto.SerializeToString()).run(None, feeds)


def _kinds(function: Function) -> set[str]:
    return {
        n.op.name for n in post_order(function) if isinstance(n, Call) and hasattr(n.op, "name")
    }


def _assert_all_close(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, **TOLERANCE)


def _judge(kind: str, arrays: list[Any], **attrs: Any) -> None:
    """Kernel and decomposition in the interpreter, both exported in ONNX Runtime: all agree."""
    function = _function(kind, arrays, **attrs)
    given = _present(arrays)
    found = run(function, given)
    plain = LEGAL.transform(function)
    assert not any(name.startswith("serde.") for name in _kinds(plain))
    _assert_all_close(run(plain, given), found)
    _assert_all_close(found, _runtime(function, given))
    _assert_all_close(_runtime(plain, given), found)


MODES = {
    "bare": {"absent": "bhcp"},
    "biased": {"absent": "hcp"},
    "states": {"absent": "bp"},
    "all": {},
    "lengths": {"lengths": [6, 1, 3]},
    "lengths-empty": {"lengths": [0, 6, 2]},
    "lengths-bare": {"absent": "bhcp", "lengths": [2, 6, 5]},
}


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", list(GATES))
def test_operands_and_directions(kind: str, direction: str, mode: str, layout: str) -> None:
    arrays = _operands(kind, direction=direction, layout=layout, **MODES[mode])
    _judge(kind, arrays, direction=direction, layout=layout)


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", list(GATES))
def test_activations(kind: str, name: str) -> None:
    other = NAMES[(NAMES.index(name) + 4) % len(NAMES)]
    functions = (
        ([name, other, "tanh"][: FUNCTIONS[kind]]) + ([other, "sigmoid", name][: FUNCTIONS[kind]])
    )
    _judge(
        kind,
        _operands(kind, direction="bidirectional"),
        direction="bidirectional",
        activations=functions,
        clip=0.75,
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name in PARAMETERS])
@pytest.mark.parametrize("kind", list(GATES))
def test_parameters_of_activations(kind: str, name: str) -> None:
    functions = ["tanh", name, "sigmoid"][: FUNCTIONS[kind]] if kind != "rnn" else [name]
    _judge(
        kind,
        _operands(kind),
        activations=functions,
        activation_alpha=[0.375] * len(functions),
        activation_beta=[0.25] * len(functions),
    )


@pytest.mark.parametrize("clip", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("kind", list(GATES))
def test_clip(kind: str, clip: float) -> None:
    if clip == 0.0:
        arrays = _operands(kind)
        (every, *_), plain = run(_function(kind, arrays, clip=0.0), _present(arrays)), LEGAL
        again = run(plain.transform(_function(kind, arrays, clip=0.0)), _present(arrays))
        _assert_all_close([again[0]], [every])
        return
    _judge(kind, _operands(kind), clip=clip)


@pytest.mark.wide
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("mode", list(MODES))
def test_gru_that_resets_after_the_product(direction: str, mode: str) -> None:
    arrays = _operands("gru", direction=direction, **MODES[mode])
    _judge("gru", arrays, direction=direction, linear_before_reset=True, clip=1.5)


@pytest.mark.wide
@pytest.mark.parametrize("absent", ["", "p"])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_lstm_with_coupled_gates(absent: str, clip: float | None) -> None:
    arrays = _operands("lstm", direction="bidirectional", absent=absent, lengths=[4, 6, 2])
    _judge("lstm", arrays, direction="bidirectional", input_forget=True, clip=clip)


@pytest.mark.parametrize("opset", [11, 13, 14, 17, 21, 22])
@pytest.mark.parametrize("kind", list(GATES))
def test_every_form_of_onnx(kind: str, opset: int) -> None:
    arrays = _operands(kind, lengths=[5, 6, 2])
    arrays[4] = arrays[4].astype(np.int64)
    function = _function(kind, arrays)
    given = _present(arrays)
    _assert_all_close(_runtime(function, given, opset), run(function, given))


def _symbolic(_number: int, shape: tuple[int, ...]) -> tuple[Dim, ...]:
    return tuple({TIME: symbol("t"), BATCH: symbol("n")}.get(dim, dim) for dim in shape)


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("lengths", [None, [5, 1, 6], [0, 2, 4]], ids=["full", "lengths", "empty"])
@pytest.mark.parametrize("absent", ["", "bhcp"], ids=["all", "bare"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", list(GATES))
def test_symbolic_length_and_batch(
    kind: str, direction: str, absent: str, lengths: Any, layout: str
) -> None:
    arrays = _operands(kind, direction=direction, layout=layout, absent=absent, lengths=lengths)
    given = _present(arrays)
    attrs = {"direction": direction, "layout": layout}
    function = _function(kind, arrays, _symbolic, **attrs)
    expected = _runtime(_function(kind, arrays, **attrs), given)
    _assert_all_close(_runtime(function, given), expected)
    plain = IRModule({"main": LEGAL.transform(function)})
    verify(InferType()(plain))
    assert any(isinstance(node, relay.Let) for node in post_order(plain["main"]))
    _assert_all_close(run(plain["main"], given), expected)


@pytest.mark.parametrize("kind", list(GATES))
def test_symbolic_batch_of_a_known_length_exports_decomposed(kind: str) -> None:
    arrays = _operands(kind, absent="hc", lengths=[5, 1, 6])
    given = _present(arrays)

    def dims(_number: int, shape: tuple[int, ...]) -> tuple[Dim, ...]:
        return tuple(symbol("n") if dim == BATCH else dim for dim in shape)

    plain = LEGAL.transform(_function(kind, arrays, dims))
    _assert_all_close(_runtime(plain, given), _runtime(_function(kind, arrays), given))


@pytest.mark.wide
@pytest.mark.parametrize("strict", [False, True], ids=["dialect", "strict"])
@pytest.mark.parametrize("dims", [None, _symbolic], ids=["known", "symbolic"])
@pytest.mark.parametrize("kind", list(GATES))
def test_text(kind: str, dims: Any, strict: bool) -> None:
    arrays = _operands(kind, direction="bidirectional", lengths=[5, 1, 6])
    function = _function(kind, arrays, dims, direction="bidirectional")
    mod = InferType()(IRModule.from_expr(function))
    again = relay.fromtext(mod.astext(strict=strict))
    relay.assert_structural_equal(again, mod)
    plain = InferType()(IRModule.from_expr(LEGAL.transform(function)))
    relay.assert_structural_equal(relay.fromtext(plain.astext()), plain)


@pytest.mark.parametrize("kind", list(GATES))
def test_sequences_of_length_zero(kind: str) -> None:
    arrays = _operands(kind)
    arrays[0] = arrays[0][:0]
    for dims in (None, lambda number, shape: (symbol("t"), *shape[1:]) if number == 0 else shape):
        function = _function(kind, arrays, dims)
        for each in (function, LEGAL.transform(function)):
            every, *final = run(each, _present(arrays))
            assert every.shape == (0, 1, BATCH, HIDDEN)
            _assert_all_close(final, arrays[5:7] if kind == "lstm" else arrays[5:6])


@pytest.mark.parametrize("kind", list(GATES))
def test_weights_take_their_types_from_the_layer(kind: str) -> None:
    arrays = _operands(kind, absent="hcp")
    x, *weights = relay.var("x", shape=arrays[0].shape), *(relay.var(n) for n in "wrb")
    layer = call(f"serde.{kind}", x, *weights, hidden_size=HIDDEN)
    function = InferType()(IRModule.from_expr(Function([x, *weights], layer)))["main"]
    assert [v.type.shape for v in function.params] == [a.shape for a in _present(arrays)]


def _refused() -> list[Any]:
    return [
        pytest.param({"hidden_size": 4}, "input_weight: expected shape", id="weights"),
        pytest.param({"hidden_size": 0}, "not positive", id="hidden"),
        pytest.param({"activations": ["tanh"]}, "expected 3 activations", id="count"),
        pytest.param({"activation_alpha": [0.5]}, "expected 3 alphas or none", id="alphas"),
        pytest.param({"activations": ["tan"] * 3}, "attribute activations", id="name"),
        pytest.param({"direction": "backward"}, "attribute direction", id="direction"),
        pytest.param({"direction": "bidirectional"}, "expected shape", id="two"),
        pytest.param({"clip": -1.0}, "is negative", id="clip"),
        pytest.param({"cell_clip": (1.0, -1.0)}, "not in order", id="bounds"),
        pytest.param({"layout": "NTC"}, "initial_h: expected shape", id="layout"),
    ]


@pytest.mark.parametrize(("attrs", "message"), _refused())
def test_what_does_not_fit_is_refused(attrs: dict[str, Any], message: str) -> None:
    arrays = _present(_operands("lstm"))
    operands = [relay.var("x", TensorType(a.shape, a.dtype)) for a in arrays]
    operands.insert(4, None)
    with pytest.raises(TypeInferenceError, match=message):
        call("serde.lstm", *operands, **{"hidden_size": HIDDEN, **attrs})


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dims", [None, _symbolic], ids=["known", "symbolic"])
def test_lstm_with_a_projection_and_bounds_of_the_cell(dims: Any) -> None:
    draw = np.random.default_rng(5).normal
    x, w, r, b, p = (
        draw(size=shape).astype("float32")
        for shape in ((TIME, BATCH, INPUT), (1, 20, INPUT), (1, 20, 2), (1, 40), (1, 2, HIDDEN))
    )
    arrays = [x, w, r, b, None, None, None, None, p]
    function = _function("lstm", arrays, dims, cell_clip=(-0.25, 0.5))
    state, cell = np.zeros((BATCH, 2)), np.zeros((BATCH, HIDDEN))
    expected = []
    for row in x:
        i, o, f, c = np.split(row @ w[0].T + state @ r[0].T + b[0, :20] + b[0, 20:], 4, axis=1)
        cell = np.clip(_sigmoid(f) * cell + _sigmoid(i) * np.tanh(c), -0.25, 0.5)
        state = (_sigmoid(o) * np.tanh(cell)) @ p[0].T
        expected.append(state)
    wanted = [np.stack(expected)[:, np.newaxis], state[np.newaxis], cell[np.newaxis]]
    _assert_all_close(run(function, _present(arrays)), wanted)
    _assert_all_close(run(LEGAL.transform(function), _present(arrays)), wanted)
    if dims is None:
        _assert_all_close(_runtime(function, _present(arrays)), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("kind", list(GATES))
def test_other_precisions(kind: str, dtype: str) -> None:
    arrays = _operands(kind, direction="bidirectional", lengths=[5, 1, 6])
    exact = run(_function(kind, arrays, direction="bidirectional"), _present(arrays))
    cast = [a.astype(dtype) if a is not None and a.dtype == "float32" else a for a in arrays]
    function = _function(kind, cast, direction="bidirectional")
    tolerance = 2e-2 if dtype == "float16" else 1e-5
    for each in (function, LEGAL.transform(function)):
        for found, expected in zip(run(each, _present(cast)), exact, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


TORCH_ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Where PyTorch has the gates that ONNX lists."""


def _from_torch(kind: str, net: Any, level: int, directions: int) -> list[np.ndarray]:
    """Weights and biases of one level of a PyTorch layer, in our order."""

    def gates(name: str, suffix: str) -> np.ndarray:
        data = getattr(net, f"{name}_l{level}{suffix}").detach().numpy()
        parts = np.split(data, GATES[kind])
        return np.concatenate([parts[index] for index in TORCH_ORDER[kind]])

    ends = ["", "_reverse"][:directions]
    weights = [np.stack([gates(f"weight_{way}", end) for end in ends]) for way in ("ih", "hh")]
    biases = [np.concatenate([gates("bias_ih", end), gates("bias_hh", end)]) for end in ends]
    return [*weights, np.stack(biases)]


@pytest.mark.parametrize(("kind", "projection"), [("lstm", 0), ("lstm", 3), ("gru", 0), ("rnn", 0)])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", [1, 2])
def test_pytorch(kind: str, directions: int, layers: int, projection: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    more = {"proj_size": projection} if projection else {}
    net = getattr(torch.nn, kind.upper())(
        INPUT, HIDDEN, num_layers=layers, bidirectional=directions == 2, **more
    )
    x = torch.randn(TIME, BATCH, INPUT)
    output = projection or HIDDEN
    h = torch.randn(layers * directions, BATCH, output)
    c = torch.randn(layers * directions, BATCH, HIDDEN)
    lengths = torch.tensor([6, 4, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    with torch.no_grad():
        result, final = net(packed, (h, c) if kind == "lstm" else h)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(result)
    finals = final if kind == "lstm" else (final,)
    data: np.ndarray = x.numpy()
    ends: list[list[np.ndarray]] = []
    for level in range(layers):
        own = slice(level * directions, (level + 1) * directions)
        arrays = [data, *_from_torch(kind, net, level, directions), lengths.numpy(), h[own].numpy()]
        attrs: dict[str, Any] = {"direction": "bidirectional" if directions == 2 else "forward"}
        if kind == "lstm":
            arrays += [c[own].numpy(), None]
        if projection:
            suffixes = ["", "_reverse"][:directions]
            names = [f"weight_hr_l{level}{suffix}" for suffix in suffixes]
            arrays.append(np.stack([getattr(net, name).detach().numpy() for name in names]))
        if kind == "gru":
            attrs["linear_before_reset"] = True
        every, *last = run(_function(kind, arrays, **attrs), _present(arrays))
        data = every.transpose(0, 2, 1, 3).reshape(TIME, BATCH, -1)
        ends.append(last)
    np.testing.assert_allclose(data, expected.numpy(), **TOLERANCE)
    for found, wanted in zip(zip(*ends, strict=True), finals, strict=True):
        np.testing.assert_allclose(np.concatenate(found), wanted.numpy(), **TOLERANCE)


def test_results_may_be_used_one_by_one() -> None:
    arrays = _operands("lstm")
    function = _function("lstm", arrays)
    last = Function(function.params, relay.tanh(TupleGetItem(function.body, 1)))
    expected = np.tanh(run(function, _present(arrays))[1])
    np.testing.assert_allclose(run(LEGAL.transform(last), _present(arrays)), expected, **TOLERANCE)
