"""What a program computes beside tensors: lengths, lists, numbers and texts of Python's.

These operators are evaluated while the program is walked. A number that is known stays one of
Python's; one that is not is a scalar expression, registered as a number for type promotion.
"""

from serde.torch.host import constants as constants
from serde.torch.host import control as control
from serde.torch.host import dicts as dicts
from serde.torch.host import lists as lists
from serde.torch.host import loops as loops
from serde.torch.host import numbers as numbers
from serde.torch.host import properties as properties
from serde.torch.host import symbols as symbols
from serde.torch.host import texts as texts
from serde.torch.host import wrappers as wrappers
from serde.torch.host.lists import DYNAMIC_LIST_EVALUATORS
from serde.torch.host.registry import EVALUATORS, MOVES, evaluates, find_evaluator
from serde.torch.host.unrolling import unroll_nodes
from serde.torch.host.values import is_dynamic

__all__ = [
    "DYNAMIC_LIST_EVALUATORS",
    "EVALUATORS",
    "MOVES",
    "evaluates",
    "find_evaluator",
    "is_dynamic",
    "unroll_nodes",
]
