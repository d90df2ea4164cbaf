"""What MXNet 1.9.1 changes in the symbols of older releases when it loads them.

Definition: ``legacy_json_util.cc`` of MXNet, whose five steps these are:

- before 1.9.1, attributes such as ``lr_mult`` become hidden (``__lr_mult__``),
  and ``weight_lr_mult`` on an operator moves to its input;
- before 0.9.0, auxiliary states were not written: inputs that an operator
  lacks become variables;
- before 0.9.4, initialisers were not noted on variables;
- before 0.9.5, ``axis=-1`` of argmax and argmin meant all axes.

(The fifth parses attributes, which serde does when it converts.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from serde.core.records import dataclass, field
from serde.mxnet.model import LATEST_VERSION, Entry, Graph

__all__ = ["AUXILIARY", "HIDDEN_KEYS", "Draft", "input_names", "upgrade"]

HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
"""Attributes that belong to training and placement, not to an operator."""

_ZERO, _ONE = '["zero", {}]', '["one", {}]'

_INITIALIZERS = {
    "BatchNorm": {3: _ZERO, 4: _ONE},
    "BatchNorm_v1": {3: _ZERO, 4: _ONE},
    "CuDNNBatchNorm": {3: _ZERO, 4: _ONE},
    "IdentityAttachKLSparseReg": {1: _ZERO},
    "LeakyReLU": {1: '["Constant", {"value": 0.25}]'},
}

AUXILIARY: Mapping[str, tuple[int, ...]] = {
    "BatchNorm": (3, 4),
    "BatchNorm_v1": (3, 4),
    "CuDNNBatchNorm": (3, 4),
    "IdentityAttachKLSparseReg": (1,),
    "_contrib_BatchNormWithReLU": (3, 4),
    "_contrib_SyncBatchNorm": (3, 4),
}
"""Positions of the inputs that an operator updates itself."""

_NORMALIZED = ("data", "gamma", "beta", "moving_mean", "moving_var")

_INPUTS: dict[str, tuple[str, ...]] = {
    "BatchNorm": _NORMALIZED,
    "BatchNorm_v1": _NORMALIZED,
    "CuDNNBatchNorm": _NORMALIZED,
    "BilinearSampler": ("data", "grid"),
    "Correlation": ("data1", "data2"),
    "Embedding": ("data", "weight"),
    "IdentityAttachKLSparseReg": ("data", "moving_avg"),
    "InstanceNorm": ("data", "gamma", "beta"),
    "LinearRegressionOutput": ("data", "label"),
    "LogisticRegressionOutput": ("data", "label"),
    "MAERegressionOutput": ("data", "label"),
    "ROIPooling": ("data", "rois"),
    "SVMOutput": ("data", "label"),
    "Softmax": ("data", "label"),
    "SoftmaxOutput": ("data", "label"),
    "SpatialTransformer": ("data", "loc"),
    "softmax_cross_entropy": ("data", "label"),
}


@dataclass(slots=True)
class Draft:
    """A node while it is being upgraded; attributes of all kinds together."""

    op: str
    name: str
    attrs: dict[str, str] = field(default_factory=dict)
    inputs: list[Entry] = field(default_factory=list)
    subgraphs: list[Graph] = field(default_factory=list)
    control: list[int] = field(default_factory=list)

    def dependencies(self) -> Iterator[int]:
        """Yield the nodes that must come before."""
        yield from (entry.node for entry in self.inputs)
        yield from self.control


def upgrade(drafts: list[Draft], version: int) -> None:
    """Apply to `drafts` what MXNet does with a symbol of `version`; variables may be added."""
    if version >= LATEST_VERSION:
        return
    steps = ((None, _hide_keys), (900, _add_inputs), (904, _note_initializers), (905, _drop_axis))
    for limit, step in steps:
        if limit is not None and version >= limit:
            continue
        for draft in list(drafts):
            step(draft, drafts)


def input_names(op: str, attrs: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the inputs of one of the layers of 0.8; None for other operators."""
    if op in _OPTIONAL_INPUTS:
        return _OPTIONAL_INPUTS[op](attrs)
    return _INPUTS.get(op)


def _is_true(attrs: Mapping[str, str], key: str, default: str) -> bool:
    return attrs.get(key, default).strip().lower() in ("true", "1")


def _layer_inputs(attrs: Mapping[str, str]) -> tuple[str, ...]:
    bias = () if _is_true(attrs, "no_bias", "False") else ("bias",)
    return ("data", "weight", *bias)


def _deconvolution_inputs(attrs: Mapping[str, str]) -> tuple[str, ...]:
    bias = () if _is_true(attrs, "no_bias", "True") else ("bias",)
    return ("data", "weight", *bias)


def _leaky_relu_inputs(attrs: Mapping[str, str]) -> tuple[str, ...]:
    return ("data", "gamma") if attrs.get("act_type") == "prelu" else ("data",)


def _rnn_inputs(attrs: Mapping[str, str]) -> tuple[str, ...]:
    cell = ("state_cell",) if attrs.get("mode") == "lstm" else ()
    return ("data", "parameters", "state", *cell)


def _sequence_inputs(attrs: Mapping[str, str]) -> tuple[str, ...]:
    length = ("sequence_length",) if _is_true(attrs, "use_sequence_length", "False") else ()
    return ("data", *length)


_OPTIONAL_INPUTS: dict[str, Callable[[Mapping[str, str]], tuple[str, ...]]] = {
    "Convolution": _layer_inputs,
    "Convolution_v1": _layer_inputs,
    "Deconvolution": _deconvolution_inputs,
    "FullyConnected": _layer_inputs,
    "LeakyReLU": _leaky_relu_inputs,
    "RNN": _rnn_inputs,
    "SequenceLast": _sequence_inputs,
    "SequenceMask": _sequence_inputs,
    "SequenceReverse": _sequence_inputs,
}


def _hide_keys(draft: Draft, drafts: list[Draft]) -> None:
    found = {key: value for key, value in draft.attrs.items() if key.endswith(HIDDEN_KEYS)}
    for key in found:
        del draft.attrs[key]
    for key, value in found.items():
        hidden = next(suffix for suffix in HIDDEN_KEYS if key.endswith(suffix))
        if key == hidden:
            draft.attrs[f"__{hidden}__"] = value
            continue
        owner = _input_variable(draft, key.removesuffix(hidden)[:-1], drafts)
        if owner is None:
            draft.attrs[key] = value
        else:
            owner.attrs[f"__{hidden}__"] = value


def _input_variable(draft: Draft, name: str, drafts: list[Draft]) -> Draft | None:
    names = input_names(draft.op, draft.attrs) or ()
    if name not in names[: len(draft.inputs)]:
        return None
    variable = drafts[draft.inputs[names.index(name)].node]
    return variable if variable.op == "null" else None


def _add_inputs(draft: Draft, drafts: list[Draft]) -> None:
    names = input_names(draft.op, draft.attrs) or ()
    for name in names[len(draft.inputs) :]:
        variable = f"{draft.name}_{name}" if draft.name else name
        draft.inputs.append(Entry(len(drafts), 0))
        drafts.append(Draft("null", variable, dict(draft.attrs)))


def _note_initializers(draft: Draft, drafts: list[Draft]) -> None:
    for position, text in _INITIALIZERS.get(draft.op, {}).items():
        if position >= len(draft.inputs):
            continue
        variable = drafts[draft.inputs[position].node]
        if variable.op == "null":
            variable.attrs.setdefault("__init__", text)


def _drop_axis(draft: Draft, drafts: list[Draft]) -> None:
    if draft.op in ("argmax", "argmin") and draft.attrs.get("axis") == "-1":
        del draft.attrs["axis"]
