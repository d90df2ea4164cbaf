"""Images of ML Programs that are resized to a size which is computed."""

from __future__ import annotations

import numpy as np
import pytest
from support.coreml_written import model, var
from support.mil_executor import execute
from support.mil_values import check_types

import serde.relay as relay
from serde.core.report import Report
from serde.coreml.exporter import from_relay
from serde.coreml.model import operations
from serde.coreml.options import CoremlExportOptions
from serde.relay.ir.registry import call
from serde.relay.run.interpreter import run


@pytest.mark.parametrize("target", ["iOS17", "iOS18"])
def test_a_computed_size(target: str) -> None:
    """How many axes change is told in uint32, which programs for iOS17 have as constants alone."""
    x, size = var("x", 1, 2, 5, 4), var("size", 2, dtype="int32")
    region = relay.const(np.zeros(4, np.float32))
    source = model(call("dyn.image.resize2d", x, size, region), x, size)
    options = CoremlExportOptions(minimum_deployment_target=target, compute_precision="float32")
    native = from_relay(source, options, Report())
    assert "resize" in {op.type for op in operations(native.spec)}
    check_types(native)
    data = np.random.default_rng(4).uniform(-1, 1, (1, 2, 5, 4)).astype(np.float32)
    given = {"x": data, "size": np.array([7, 9], np.int32)}
    (actual,) = execute(native, given)
    wanted = run(source.main, [*given.values()], mod=source.mod)
    np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
