"""What a module is asked: its inputs with their lengths, and a call that takes them by name.

Nothing here knows a family. Inputs are those that ``forward`` has and the config says something of;
what is kept between calls is found by running the module once, on the layers of its cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any as AnyValue, Final

from serde.core.optional import require
from serde.errors import Unsupported
from serde.relay.ir.dims import Dim, symbol
from serde.torch.checkpoint.tasks import PARTS

__all__ = ["Asked", "ask"]

Tensors = Mapping[str, AnyValue]

BATCH, SEQUENCE, PAST = symbol("batch"), symbol("sequence"), symbol("past")
ENCODED = symbol("encoder_sequence")

_LENGTHS: Final = {
    "batch": 2, "sequence": 3, "past": 5, "encoder_sequence": 7, "text_batch": 3,
    "image_batch": 2, "samples": 8000, "frames": 64,
}  # fmt: skip
"""Lengths in examples, each another, so that none is taken for another."""


@dataclass(frozen=True)
class Asked:
    """How a module is called.

    Attributes:
        function: Takes tensors by name and returns such.
        inputs: Shape and dtype of each input.
        states: Inputs that the next call is given, by the outputs that become them.
    """

    function: Callable[[Tensors], Tensors]
    inputs: Mapping[str, tuple[tuple[Dim, ...], str]]
    states: Mapping[str, str] = field(default_factory=dict)

    def examples(self) -> dict[str, AnyValue]:
        """Return tensors to run it with: tokens and floats of zero, masks of one."""
        torch = require("torch")
        made = {}
        for name, (shape, dtype) in self.inputs.items():
            lengths = [_length(each) for each in shape]
            fill = torch.ones if name.endswith("attention_mask") else torch.zeros
            made[name] = fill(lengths, dtype=getattr(torch, dtype))
        return made


def ask(module: AnyValue, task: str, part: str) -> Asked:
    """Return how a module is called for a task.

    Args:
        module: The module.
        task: The task.
        part: Which of :data:`PARTS`; empty for models that are one.

    Raises:
        Unsupported: What it keeps between calls has no counterpart.
    """
    if part:
        encode = _encoder(module)
        return encode if part == PARTS[0] else _paired_decoder(module, encode)
    return _decoder(module) if task == "text-generation" else _once(module)


def _length(dim: Dim) -> int:
    """Return the length that a dimension has in examples."""
    if isinstance(dim, int):
        return dim
    parts = [name for name in _LENGTHS if name in str(dim).replace("+", " ").split()]
    return sum(_LENGTHS[name] for name in parts)


def _takes(module: AnyValue) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(module.forward).parameters


def _only_tensors(found: AnyValue) -> dict[str, AnyValue]:
    torch = require("torch")
    return {name: each for name, each in found.items() if isinstance(each, torch.Tensor)}


# Models that are called once.


def _once(module: AnyValue) -> Asked:
    """Return a call with all inputs that a module has, which gives all tensors that it gives."""
    if module.config.is_encoder_decoder:
        raise Unsupported("an encoder and a decoder have no features without a prompt")
    inputs = _found_inputs(module)
    fixed = {"return_dict": True, "use_cache": False}
    fixed = {name: value for name, value in fixed.items() if name in _takes(module)}

    def run(tensors: Tensors) -> Tensors:
        return _only_tensors(module(**tensors, **fixed))

    return Asked(run, inputs)


def _found_inputs(module: AnyValue) -> dict[str, tuple[tuple[Dim, ...], str]]:
    """Return what a module takes, the input that it is named for first."""
    known, takes = _known_inputs(module), _takes(module)
    wanted = [module.main_input_name, *(name for name in known if name != module.main_input_name)]
    missing = [name for name in wanted[:1] if name not in known]
    if missing:
        raise Unsupported(f"nothing is known of the input {missing[0]}")
    masks = () if "input_ids" in takes else ("attention_mask", "token_type_ids")
    return {x: known[x] for x in wanted if x in takes and x not in masks}


def _known_inputs(module: AnyValue) -> dict[str, tuple[tuple[Dim, ...], str]]:
    """Return shapes and dtypes of inputs by name, as the config says them."""
    config, takes = module.config, _takes(module)
    vision, text = (getattr(config, f"{kind}_config", config) for kind in ("vision", "text"))
    both = "input_ids" in takes and "pixel_values" in takes
    batch = symbol("text_batch") if both else BATCH
    rows, floats = (batch, SEQUENCE), str(module.dtype).removeprefix("torch.")
    known: dict[str, tuple[tuple[Dim, ...], str]] = {"input_ids": (rows, "int64")}
    size = getattr(vision, "image_size", None)
    if size is not None:
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        channels = getattr(vision, "num_channels", 3)
        images = symbol("image_batch") if both else BATCH
        known["pixel_values"] = ((images, channels, height, width), floats)
    known["input_values"] = ((BATCH, symbol("samples")), floats)
    if hasattr(config, "num_mel_bins"):
        # Positions of the encoder are learned for this length alone, behind a stride of two.
        length = getattr(config, "max_source_positions", None)
        frames = symbol("frames") if length is None else 2 * length
        known["input_features"] = ((BATCH, config.num_mel_bins, frames), floats)
    known["attention_mask"] = (rows, "int64")
    if getattr(text, "type_vocab_size", 0) > 1:
        known["token_type_ids"] = (rows, "int64")
    return known


# Decoders.


def _decoder(module: AnyValue) -> Asked:
    """Return a call that serves the prompt and each step: the past may be empty."""
    torch, takes = require("torch"), _takes(module)
    rows, dtype = (BATCH, SEQUENCE), str(module.dtype).removeprefix("torch.")
    inputs: dict[str, tuple[tuple[Dim, ...], str]] = {"input_ids": (rows, "int64")}
    if "attention_mask" in takes:
        inputs["attention_mask"] = ((BATCH, PAST + SEQUENCE), "int64")
    if "position_ids" in takes:
        inputs["position_ids"] = (rows, "int64")
    own = list(inputs)
    prompt = torch.zeros((_LENGTHS["batch"], _LENGTHS["sequence"]), dtype=torch.int64)
    found = module(input_ids=prompt, use_cache=True)
    layers = _layers(getattr(found, "past_key_values", None))
    names = [f"{place}.{kind}" for place in range(len(layers)) for kind in ("key", "value")]
    for name, tensor in zip(names, _states(layers), strict=True):
        shape = (BATCH, tensor.shape[1], PAST, tensor.shape[3])
        inputs[f"past_key_values.{name}"] = (shape, dtype)

    def run(tensors: Tensors) -> Tensors:
        cache = _cache([tensors[f"past_key_values.{name}"] for name in names])
        given = {name: tensors[name] for name in own}
        found = module(**given, past_key_values=cache, use_cache=True)
        present = _states(found.past_key_values.layers)
        return {"logits": found.logits, **_named("present", names, present)}

    return Asked(run, inputs, {f"present.{x}": f"past_key_values.{x}" for x in names})


def _named(prefix: str, names: Sequence[str], tensors: Sequence[AnyValue]) -> dict[str, AnyValue]:
    return {f"{prefix}.{name}": each for name, each in zip(names, tensors, strict=True)}


def _layers(cache: AnyValue) -> Sequence[AnyValue]:
    """Return the layers of a cache, each with keys and values that grow.

    Raises:
        Unsupported: One keeps something else.
    """
    layers = getattr(cache, "layers", None)
    if not layers:
        raise Unsupported("the module returns no cache of keys and values")
    kinds = require("transformers").cache_utils
    for place, each in enumerate(layers):
        if not isinstance(each, kinds.DynamicLayer) or isinstance(
            each, kinds.LinearAttentionCacheLayerMixin
        ):
            raise Unsupported(
                f"layer {place} keeps a {type(each).__name__}: states of recurrent layers and of "
                "linear attention are written in place, a prompt otherwise than a step"
            )
    return list(layers)


def _states(layers: Sequence[AnyValue]) -> list[AnyValue]:
    return [tensor for each in layers for tensor in (each.keys, each.values)]


def _cache(tensors: Sequence[AnyValue]) -> AnyValue:
    """Return a cache that holds keys and values, in turn.

    All of its layers keep the whole past: windows are applied by the mask.
    """
    kinds = require("transformers").cache_utils
    cache = kinds.DynamicCache()
    for keys, values in zip(tensors[::2], tensors[1::2], strict=True):
        layer = kinds.DynamicLayer()
        layer.keys, layer.values = keys, values
        layer.dtype, layer.device = keys.dtype, keys.device
        layer.is_initialized = True
        cache.layers.append(layer)
    return cache


# Encoders with decoders: the encoder also gives the keys and values that the decoder attends to.


def _encoder(module: AnyValue) -> Asked:
    """Return a call of the encoder.

    What the decoder computes of its result alone, once for all steps, is taken from a decoder that
    is run on one token; nothing else of that is kept.
    """
    torch, encoder = require("torch"), module.get_encoder()
    known, takes = _known_inputs(module), _takes(encoder)
    main = encoder.main_input_name
    if main not in known:
        raise Unsupported(f"nothing is known of the input {main}")
    inputs = {main: known[main]}
    if main == "input_ids" and "attention_mask" in takes:
        inputs["attention_mask"] = known["attention_mask"]

    def run(tensors: Tensors) -> Tensors:
        first = torch.zeros((tensors[main].shape[0], 1), dtype=torch.int64)
        found = module(**tensors, decoder_input_ids=first, use_cache=True)
        layers = _layers(found.past_key_values.cross_attention_cache)
        return {
            "last_hidden_state": found.encoder_last_hidden_state,
            **_named("present", _cross_names(layers), _states(layers)),
        }

    return Asked(run, inputs)


def _cross_names(layers: Sequence[AnyValue], kind: str = "encoder") -> list[str]:
    return [f"{i}.{kind}.{what}" for i in range(len(layers)) for what in ("key", "value")]


def _paired_decoder(module: AnyValue, encode: Asked) -> Asked:
    """Return a call of the decoder, to which the encoder's keys and values are given."""
    kinds, dtype = require("transformers").cache_utils, str(module.dtype).removeprefix("torch.")
    torch = require("torch")
    prompt = torch.zeros((_LENGTHS["batch"], 1), dtype=torch.int64)
    found = module(**encode.examples(), decoder_input_ids=prompt, use_cache=True)
    caches = found.past_key_values
    own, cross = _layers(caches.self_attention_cache), _layers(caches.cross_attention_cache)
    width = found.encoder_last_hidden_state.shape[-1]
    output_kind = type(module.get_encoder()(**encode.examples(), return_dict=True))
    names, others = _cross_names(own, "decoder"), _cross_names(cross)
    inputs: dict[str, tuple[tuple[Dim, ...], str]] = {"input_ids": ((BATCH, SEQUENCE), "int64")}
    masked = "attention_mask" in encode.inputs
    if masked:
        inputs["encoder_attention_mask"] = ((BATCH, ENCODED), "int64")
    lengths = [(names, own, PAST), (others, cross, ENCODED)]
    for given, layers, length in lengths:
        for name, tensor in zip(given, _states(layers), strict=True):
            shape = (BATCH, tensor.shape[1], length, tensor.shape[3])
            inputs[f"past_key_values.{name}"] = (shape, dtype)

    def run(tensors: Tensors) -> Tensors:
        own, cross = (
            _cache([tensors[f"past_key_values.{name}"] for name in each])
            for each in (names, others)
        )
        cache = kinds.EncoderDecoderCache(kinds.DynamicCache(), kinds.DynamicCache())
        cache.self_attention_cache, cache.cross_attention_cache = own, cross
        cache.is_updated = dict.fromkeys(range(len(cross.layers)), True)
        keys = cross.layers[0].keys
        # Only its lengths are read: what is computed of it is in the cache.
        hidden = keys.new_zeros((keys.shape[0], keys.shape[2], width))
        output = output_kind(last_hidden_state=hidden)
        mask = {"attention_mask": tensors["encoder_attention_mask"]} if masked else {}
        found = module(
            encoder_outputs=output,
            decoder_input_ids=tensors["input_ids"],
            past_key_values=cache,
            use_cache=True,
            **mask,
        )
        present = _states(found.past_key_values.self_attention_cache.layers)
        return {"logits": found.logits, **_named("present", names, present)}

    return Asked(run, inputs, {f"present.{x}": f"past_key_values.{x}" for x in names})
