"""Names of PyTorch that written modules use, and those that they may not give."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from serde.relay.ir.unique_names import UniqueNames

__all__ = [
    "APPLIED", "DTYPES", "OF_MODULES", "TAKES_NUMBERS", "Names", "attribute", "identifier",
    "is_free",
]  # fmt: skip

APPLIED: Final[Mapping[str, str]] = {
    **{x: x.lower() for x in (
        "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LogSigmoid",
        "Mish", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softplus", "Softshrink",
        "Softsign", "Tanh", "Tanhshrink", "Threshold",
    )},
    **{f"{x}{n}d": f"{y}{n}d" for n in (1, 2, 3) for x, y in (
        ("AdaptiveAvgPool", "adaptive_avg_pool"), ("AdaptiveMaxPool", "adaptive_max_pool"),
        ("AvgPool", "avg_pool"),
    )},
    "ChannelShuffle": "channel_shuffle", "GLU": "glu", "LeakyReLU": "leaky_relu",
    "LocalResponseNorm": "local_response_norm", "LogSoftmax": "log_softmax",
    "PixelShuffle": "pixel_shuffle", "PixelUnshuffle": "pixel_unshuffle", "Upsample": "interpolate",
}  # fmt: skip
"""Modules without weights, by the functions that take their arguments behind the input."""

DTYPES: Final = frozenset([
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
])  # fmt: skip
"""Dtypes of tensors, which NumPy and ml_dtypes call the same."""

TAKES_NUMBERS: Final = frozenset([
    "torch.add", "torch.sub", "torch.mul", "torch.div", "torch.pow", "torch.remainder",
    "torch.fmod", "torch.where", "torch.floor_divide", "torch.eq", "torch.ne", "torch.lt",
    "torch.le", "torch.gt", "torch.ge", "torch.bitwise_and", "torch.bitwise_or",
    "torch.bitwise_xor", "torch.bitwise_left_shift", "torch.bitwise_right_shift",
    "torch.masked_fill",
])  # fmt: skip
"""Functions that take a Python number for a tensor of the dtype of the other operand."""

OF_MODULES: Final = frozenset([
    "F", "T_destination", "add_module", "add_submodule", "apply", "bfloat16", "buffers",
    "call_super_init", "children", "code", "code_with_constants", "compile", "cpu", "cuda",
    "define", "delete_all_unused_submodules", "delete_submodule", "dfloat", "double",
    "dump_patches", "eval", "extra_repr", "float", "forward", "forward_magic_method",
    "from_pretrained", "get_buffer", "get_debug_state", "get_extra_state", "get_parameter",
    "get_submodule", "graph", "graph_for", "half", "inlined_graph", "ipu", "load_state_dict",
    "meta", "modules", "mtia", "named_buffers", "named_children", "named_modules",
    "named_parameters", "nn", "original_name", "parameters", "print_readable",
    "range_constraints", "recompile", "register_backward_hook", "register_buffer",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "save",
    "save_to_buffer", "self", "set_extra_state", "set_submodule", "shape_env", "share_memory",
    "state_dict", "to", "to_empty", "to_folder", "torch", "train", "training", "type",
    "validate_inputs", "xpu", "zero_grad",
])  # fmt: skip
"""Attributes of ``nn.Module``, of what ``torch.fx`` and ``torch.jit`` make of it, and of ours."""


def identifier(name: str) -> str:
    """Return an identifier like a name; "" if nothing is left.

    It is one in every dialect: TorchScript writes names of other scripts, and cannot read them. It
    begins with an underscore only before a digit: Python renames attributes of classes that begin
    with two, and ``nn.Module`` has its own that begin with one.
    """
    parts = unicodedata.normalize("NFKD", name)
    letters = (each for each in parts if not unicodedata.combining(each))
    plain = "".join(x if x.isascii() and x.isalnum() else "_" for x in letters).lstrip("_")
    return f"_{plain}" if plain[:1].isdigit() else plain


def is_free(name: str) -> bool:
    """Whether an attribute of a module may have a name."""
    return name == identifier(name) != "" and not keyword.iskeyword(name) and name not in OF_MODULES


class Names(UniqueNames):
    """The names of one scope of what is written, each of which is handed out once.

    All identifiers of a text come from here: inputs, variables, functions inside ``forward``,
    attributes of modules, parameters and classes; so do the keys of weights.

    Args:
        taken: What stands in the scope already, or is read in it.
        first: The first number behind a name that is taken.
        joint: What is before that number; None for an underscore behind a digit, else nothing.
    """

    def __init__(
        self, taken: Iterable[str] = (), *, first: int = 2, joint: str | None = None
    ) -> None:
        super().__init__(taken, first=first, joint=joint)

    def __contains__(self, name: str) -> bool:
        return super().__contains__(name) or keyword.iskeyword(name)


def attribute(wanted: str, taken: Iterable[str]) -> str:
    """Return what a module that has some attributes may call a further one."""
    return Names({*OF_MODULES, *taken}).reserve(wanted)
