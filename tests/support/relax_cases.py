"""Calls of operators on arrays that a test gives, run by TVM and by their kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support.relax_samples import judge

from serde.relay.ir.schema import Sample, TensorSpec, sample

__all__ = ["Given", "given", "judge_call"]


@dataclass(frozen=True)
class Given(TensorSpec):
    """An operand that is fed when the model runs, with its value."""

    value: Any = field(default=None, compare=False)

    def array(self, generator: np.random.Generator) -> np.ndarray:
        """Return the value."""
        return self.value


def given(value: Any, dtype: str | None = None) -> Given:
    """Return an operand with a value."""
    array = np.asarray(value, dtype)
    return Given(array.shape, array.dtype.name, value=array)


def judge_call(op: str, *operands: Any, symbolic: bool = False, **attrs: Any) -> None:
    """Compare what TVM computes for a call with what the kernel does.

    Args:
        op: The operator.
        operands: Arrays are fed when the model runs, unless they are in a tuple of one: those
            are constants. Lists are operands of several tensors.
        symbolic: Whether lengths above 1 are symbols.
        attrs: The attributes.

    Raises:
        AssertionError: They differ.
    """
    case: Sample = sample(*map(_operand, operands), **attrs)
    judge(op, case, symbolic=symbolic)


def _operand(value: Any) -> Any:
    if isinstance(value, list):
        return [_operand(each) for each in value]
    return value[0] if isinstance(value, tuple) else given(value)
