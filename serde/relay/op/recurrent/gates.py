"""The functions that gates of recurrent layers may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, call, const, tensor_type

__all__ = ["PARAMETERS", "Activation", "Direction", "Gate", "RecurrentLayer", "count_directions"]

Direction = Literal["forward", "reverse", "bidirectional"]
Layout = Literal["TNC", "NTC"]

Activation = Literal[
    "sigmoid",
    "tanh",
    "relu",
    "affine",
    "leaky_relu",
    "thresholded_relu",
    "scaled_tanh",
    "hard_sigmoid",
    "elu",
    "softsign",
    "softplus",
]

PARAMETERS: Final[dict[str, tuple[float, ...]]] = {
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01,),
    "thresholded_relu": (1.0,),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0,),
}
"""Functions that have an alpha, or an alpha and a beta, with their defaults."""


def count_directions(direction: str) -> int:
    """Return how many directions a layer walks."""
    return 2 if direction == "bidirectional" else 1


@dataclass(frozen=True, slots=True)
class Gate:
    """One function of a gate.

    Attributes:
        name: Its name.
        alpha: Its first parameter, where it has one.
        beta: Its second parameter, where it has one.
        clip: Bound on the magnitude of what it is applied to, or None.
    """

    name: str
    alpha: float
    beta: float
    clip: float | None

    def values(self, x: Array) -> Array:
        """Return the function of an array."""
        alpha, beta = x.dtype.type(self.alpha), x.dtype.type(self.beta)
        if self.clip is not None:
            x = np.clip(x, -self.clip, self.clip).astype(x.dtype, copy=False)
        with np.errstate(over="ignore", under="ignore"):
            return _values(self.name, x, alpha, beta)

    def expression(self, x: Expr) -> Expr:
        """Return the function of an expression with a type."""
        if self.clip is not None:
            x = call("clip", x, a_min=-self.clip, a_max=self.clip)
        match self.name:
            case "sigmoid" | "tanh":
                return call(self.name, x)
            case "relu":
                return call("nn.relu", x)
            case "affine":
                return call("add", call("multiply", x, _like(self.alpha, x)), _like(self.beta, x))
            case "leaky_relu":
                return call("nn.leaky_relu", x, alpha=self.alpha)
            case "thresholded_relu":
                kept = call("greater_equal", x, _like(self.alpha, x))
                return call("where", kept, x, _like(0.0, x))
            case "scaled_tanh":
                inner = call("tanh", call("multiply", x, _like(self.beta, x)))
                return call("multiply", inner, _like(self.alpha, x))
            case "hard_sigmoid":
                return call("serde.hard_sigmoid", x, alpha=self.alpha, beta=self.beta)
            case "elu":
                return call("serde.elu", x, alpha=self.alpha)
            case _:
                return call(f"serde.{self.name}", x)


def _values(name: str, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the activation `name` of an array, with its parameters alpha and beta."""
    match name:
        case "sigmoid":
            small = np.exp(-np.abs(x))
            return np.where(x < 0, small, 1) / (1 + small)
        case "tanh":
            return np.tanh(x)
        case "relu":
            return np.maximum(x, 0)
        case "affine":
            return alpha * x + beta
        case "leaky_relu":
            return np.where(x < 0, alpha * x, x)
        case "thresholded_relu":
            return np.where(x >= alpha, x, 0)
        case "scaled_tanh":
            return alpha * np.tanh(beta * x)
        case "hard_sigmoid":
            return np.clip(alpha * x + beta, 0, 1)
        case "elu":
            return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)
        case "softsign":
            return x / (1 + np.abs(x))
        case _:
            return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _like(value: float, x: Expr) -> Expr:
    return const(value, tensor_type(x).dtype)


@dataclass(frozen=True, kw_only=True)
class RecurrentLayer:
    """Attributes that recurrent layers share.

    Attributes:
        hidden_size: Elements of the state, of an LSTM those of the cell.
        direction: Along the sequence, against it, or both.
        activations: The functions of each direction; of none, the usual ones for each.
        activation_alpha: Parameter of each function, whether it has one or not; or none for the
            defaults.
        activation_beta: Second parameter of each, likewise.
        clip: Bound on the magnitude of what the functions are applied to, but for the third of an
            LSTM: that one is applied to the cell as it is, as in ONNX Runtime.
        layout: Order of the axes of data, states and outputs.
    """

    hidden_size: int
    direction: Direction = "forward"
    activations: tuple[Activation, ...] = ()
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float | None = None
    layout: Layout = "TNC"

    def gates(self, defaults: Sequence[str]) -> list[list[Gate]]:
        """Return the functions of each direction; `defaults` are the usual ones of one."""
        if self.clip is not None and self.clip < 0:
            raise TypeInferenceError(f"clip {self.clip} is negative")
        alphas, betas = self.activation_alpha, self.activation_beta
        names = list(self.activations) or list(defaults) * count_directions(self.direction)
        wanted = len(defaults) * count_directions(self.direction)
        if len(names) != wanted:
            raise TypeInferenceError(f"expected {wanted} activations, found {len(names)}")
        for what, given in (("alphas", alphas), ("betas", betas)):
            if len(given) not in (0, wanted):
                raise TypeInferenceError(f"expected {wanted} {what} or none, found {len(given)}")
        gates = []
        for index, name in enumerate(names):
            own = (*PARAMETERS.get(name, ()), 0.0, 0.0)
            alpha = alphas[index] if alphas else own[0]
            beta = betas[index] if betas else own[1]
            of_cell = index % len(defaults) == 2
            gates.append(Gate(name, alpha, beta, None if of_cell else self.clip))
        return [gates[i : i + len(defaults)] for i in range(0, wanted, len(defaults))]
