"""Random programs with control flow: the interpreter against ONNX Runtime."""

from __future__ import annotations

import pytest
from support.exported import assert_close, export, interpreted, run_proto
from support.random_control import ProgramMaker
from support.tiers import first_of


@pytest.mark.sparse(4)
@pytest.mark.wide
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("seed", first_of(range(25), range(8)))
def test_runtime_agrees_with_interpreter(seed: int, local: bool) -> None:
    maker = ProgramMaker(seed)
    mod, arrays = maker.module(), maker.inputs()
    expected = interpreted(mod, arrays)
    opset = (15, 17, 21)[seed % 3] if local else (11, 13, 17, 21)[seed % 4]
    proto = export(mod, opset, local_functions=local, intermediate_shapes=seed % 2 == 0)
    assert_close(run_proto(proto, arrays), expected)
