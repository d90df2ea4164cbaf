"""Generators that hand over generators, as what reads and prints text nested at any depth."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any as AnyValue

__all__ = ["run_steps"]


def run_steps(step: Generator[AnyValue, AnyValue, AnyValue]) -> AnyValue:
    """Run a generator and those it hands over, without recursion."""
    stack = [step]
    answer: AnyValue = None
    while True:
        try:
            stack.append(stack[-1].send(answer))
            answer = None
        except StopIteration as done:
            stack.pop()
            answer = done.value
            if not stack:
                return answer
