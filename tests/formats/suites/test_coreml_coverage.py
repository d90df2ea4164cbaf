"""The lists of MIL's operators and of layers, against coremltools and what all samples become."""

from __future__ import annotations

import importlib

import pytest
from support.coreml_models import tools
from support.coreml_written import written

from serde.bridge.formats import get_bridge
from serde.coreml.mlprogram.operators import (
    CORE,
    INSTEAD,
    LAYER_KINDS,
    LAYERS_INSTEAD,
    LAYERS_NOT_WRITTEN,
    LAYERS_WRITTEN,
    NOT_READ,
    NOT_WRITTEN,
    WRITTEN,
    WRITTEN_UNTIL,
)
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.neuralnetwork.ops import LAYERS

STATES = {"read_state", "write_state"}
"""``write_state`` is an operator of files that the registry does not have."""


def declared(target: int) -> set[str]:
    """What is said to be written for a target."""
    return {
        op
        for op, since in (WRITTEN if target >= 15 else LAYERS_WRITTEN).items()
        if since <= target <= WRITTEN_UNTIL.get(op, target)
    }


def test_operators_are_those_of_coremltools() -> None:
    tools()
    importlib.import_module("coremltools.converters.mil.mil.ops.defs")
    registry = importlib.import_module("coremltools.converters.mil.mil.ops.registry")
    assert set(registry.SSAOpRegistry.core_ops) == CORE
    assert len(CORE) == 168


def test_layers_are_those_of_the_message() -> None:
    message = tools().proto.NeuralNetwork_pb2.NeuralNetworkLayer.DESCRIPTOR
    assert {field.name for field in message.oneofs_by_name["layer"].fields} == LAYER_KINDS
    assert len(LAYER_KINDS) == 158


def test_all_is_read_or_has_a_reason() -> None:
    read = {op for op, _version in TABLE.imported()} | {"const"}
    assert read == (CORE | STATES) - set(NOT_READ)
    assert {kind for kind, _version in LAYERS.imported()} == LAYER_KINDS


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (CORE | STATES, (WRITTEN, INSTEAD, NOT_WRITTEN)),
        (LAYER_KINDS, (LAYERS_WRITTEN, LAYERS_INSTEAD, LAYERS_NOT_WRITTEN)),
    ],
)
def test_all_is_written_or_has_a_reason(
    names: frozenset[str], parts: tuple[dict[str, object], ...]
) -> None:
    assert sorted(names) == sorted(name for part in parts for name in part)


@pytest.mark.parametrize(
    ("instead", "known"), [(INSTEAD, WRITTEN), (LAYERS_INSTEAD, LAYERS_WRITTEN)]
)
def test_what_is_written_instead_is_written(instead: dict[str, str], known: dict[str, int]) -> None:
    assert {name for names in instead.values() for name in names.split()} <= set(known)


@pytest.mark.parametrize(
    "target",
    [
        *(pytest.param(each, marks=pytest.mark.wide) for each in (13, 15, 18)),
        *(pytest.param(each, marks=pytest.mark.slow) for each in (14, 16, 17, 26)),
    ],
)
def test_samples_become_what_is_said_to_be_written(target: int) -> None:
    assert written(f"iOS{target}") == declared(target)


def test_the_list_of_operators() -> None:
    rows = get_bridge("coreml").coverage()
    assert ("relu6", "read, since iOS15; written as clip") in rows
    assert ("resize", "read, since iOS17; written, from iOS17") in rows
    assert ("loopBreak (layer)", "read; written as branch, loop") in rows
    assert ("argSort (layer)", "read; written, from iOS14") in rows
    assert ("tanh", "read, since iOS15; written, from iOS15; in layers, from iOS13") in rows
    assert ("nn.conv2d", "written, from iOS15") in rows
    assert ("acosh", "written as others") in rows
    names = [name for name, _remark in rows]
    assert set(names) >= CORE
    assert {f"{kind} (layer)" for kind in LAYER_KINDS} <= set(names)


def test_the_summary_counts() -> None:
    written_here = f"{len(CORE & set(WRITTEN))} and {len(LAYERS_WRITTEN)} written"
    assert get_bridge("coreml").coverage_summary() == (
        f"167 of 168 operators of MIL and 157 of 158 layers read, {written_here} (coremltools 9.0)"
    )
