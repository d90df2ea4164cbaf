"""What a program computes beside tensors: lengths, lists, numbers and texts of Python's.

These operators are evaluated while the program is walked. A number that is known stays one of
Python's; one that is not is a scalar expression, registered as a number for type promotion.
"""

from serde.torch.host import (
    constants as constants,
    control as control,
    dicts as dicts,
    lists as lists,
    loops as loops,
    numbers as numbers,
    properties as properties,
    symbols as symbols,
    texts as texts,
    wrappers as wrappers,
)
from serde.torch.host.lists import DYNAMIC_LIST_EVALUATORS
from serde.torch.host.registry import EVALUATORS, MOVES, evaluates, find_evaluator
from serde.torch.host.unrolling import unroll_nodes
from serde.torch.host.values import is_dynamic

__all__ = [
    "DYNAMIC_LIST_EVALUATORS", "EVALUATORS", "MOVES", "evaluates", "find_evaluator", "is_dynamic",
    "unroll_nodes",
]  # fmt: skip
