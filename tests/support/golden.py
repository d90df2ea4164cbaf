"""What TVM 0.18 inferred and computed for single operators, as calls of our builders.

The layout of the files is told by the key ``_about`` of relay_golden.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import serde.relay as relay
from serde.relay.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var, astuple, const
from serde.relay.ir.infer import infer_function
from serde.relay.ir.registry import OpDef
from serde.relay.ir.visit import free_vars, post_order

FOLDER = Path(__file__).parent.parent / "golden" / "tvm"


@dataclass(frozen=True)
class GoldenCall:
    """One recorded call.

    Attributes:
        name: Name of the case.
        record: Its entry in the file.
    """

    name: str
    record: Mapping[str, Any]

    @property
    def type_text(self) -> str:
        """The type of the result, as TVM prints it."""
        signature = next(line for line in self.record["typed"].split("\n") if "@main" in line)
        return signature.rsplit(" -> ", 1)[1].removesuffix(" {")

    @property
    def inputs(self) -> list[np.ndarray]:
        """The recorded values of the variables."""
        return _arrays(self.name, "in")

    @property
    def outputs(self) -> list[np.ndarray]:
        """The recorded results; none where the case has no values."""
        return _arrays(self.name, "out")

    def build(self) -> relay.Function:
        """Return the call as a typed function of the variables in their order."""
        variables: list[Var] = []
        operands = [_operand(given, variables) for given in self.record["inputs"]]
        builder: Any = relay
        for part in self.record["op"].split("."):
            builder = getattr(builder, part)
        body = astuple(builder(*operands, **self.record["attrs"]))
        assert set(free_vars(body)) <= set(variables)
        return infer_function(relay.Function(variables, body))


@cache
def _file() -> Mapping[str, Any]:
    return json.loads((FOLDER / "relay_golden.json").read_text())


@cache
def _values() -> Mapping[str, np.ndarray]:
    with np.load(FOLDER / "relay_golden.npz") as archive:
        return dict(archive)


@cache
def tvm_ops() -> Mapping[str, Any]:
    """Return the facts about TVM's operators, by name."""
    content = json.loads((FOLDER / "relay_ops.json").read_text())
    return {name: facts for name, facts in content.items() if not name.startswith("_")}


def golden_calls() -> list[GoldenCall]:
    """Return all recorded calls."""
    return [GoldenCall(name, record) for name, record in _file()["calls"].items()]


def _arrays(case: str, kind: str) -> list[np.ndarray]:
    found = []
    while f"{case}/{kind}{len(found)}" in _values():
        found.append(_values()[f"{case}/{kind}{len(found)}"])
    return found


def _operand(given: Any, variables: list[Var]) -> Any:
    if not isinstance(given, list) or not given or not isinstance(given[0], str):
        return given
    kind = given[0]
    if kind == "t":
        variables.append(relay.var(f"x{len(variables)}", shape=given[1], dtype=given[2]))
        return variables[-1]
    if kind == "c":
        return const(given[1], given[2])
    items = [_operand(item, variables) for item in given[1]]
    return Tuple(items) if kind == "T" else items


def evaluate(function: relay.Function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a function of operator calls, on the kernels."""
    values: dict[Expr, Any] = dict(zip(function.params, inputs, strict=True))
    for node in post_order(function.body):
        if node not in values:
            values[node] = _value(node, values)
    result = values[function.body]
    return list(result) if isinstance(result, tuple) else [result]


def _value(node: Expr, values: Mapping[Expr, Any]) -> Any:
    if isinstance(node, Constant):
        return node.data
    if isinstance(node, Tuple):
        return tuple(values[field] for field in node.fields)
    if isinstance(node, TupleGetItem):
        return values[node.tuple_value][node.index]
    assert isinstance(node, Call)
    assert isinstance(node.op, OpDef)
    operands = [
        None if operand.optional and isinstance(argument, Tuple) else values[argument]
        for operand, argument in zip(node.op.operands, node.args, strict=True)
    ]
    return node.op.kernel(*operands, **node.attrs)
