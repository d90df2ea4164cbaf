"""Core ML models that coremltools makes of PyTorch nets, with the numbers that PyTorch gives.

``build(name)`` makes one, for each ``name`` in ``MODELS``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from support import (
    torch_nets,
    torch_parts as parts,
    torch_sequences as sequences,
    torch_vision as vision,
)
from support.coreml_compression import Compression, in_turn, palette, pruned, quantized
from support.coreml_recipes import Built, Inputs, Recipe, made
from torch import Tensor, nn

__all__ = ["MODELS", "Built", "build"]


@functools.cache
def build(name: str) -> Built:
    """Make a model.

    Args:
        name: A key of ``MODELS``.
    """
    recipe = MODELS[name]
    return made(recipe, None if recipe.beside is None else build(recipe.beside).model)


def _old(name: str, batch: int = 2, length: int = 8) -> tuple[Callable[[], nn.Module], Inputs]:
    """A net of those that other formats are tested with, and its inputs."""
    net = torch_nets.NETS[name]
    return net.make, lambda: net.inputs(batch, length)


def _draw(*shape: int) -> Inputs:
    return lambda: (torch.randn(*shape),)


def _several(*shapes: tuple[int, ...]) -> Inputs:
    return lambda: tuple(torch.randn(*shape) for shape in shapes)


def _places(most: int, *shapes: tuple[int, ...], count: int) -> Inputs:
    """Numbers of shapes, and different indices below `most`."""
    return lambda: (*(torch.randn(*shape) for shape in shapes), torch.randperm(most)[:count])


def _activations(*without: str) -> Callable[[], nn.Module]:
    kinds = {
        "relu": nn.ReLU(), "leaky": nn.LeakyReLU(0.1), "prelu": nn.PReLU(4), "one": nn.PReLU(),
        "elu": nn.ELU(0.7), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "softplus": nn.Softplus(),
        "hardsigmoid": nn.Hardsigmoid(), "relu6": nn.ReLU6(), "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU(), "hardswish": nn.Hardswish(),
        "softsign": nn.Softsign(), "mish": nn.Mish(),
        "selu": nn.SELU(), "hardtanh": nn.Hardtanh(-0.4, 0.8),
        "softmax": nn.Softmax(1), "log_softmax": nn.LogSoftmax(2), "tanhshrink": nn.Tanhshrink(),
        "softmin": nn.Softmin(1), "threshold": nn.Threshold(0.1, -0.5),
        "softplus_beta": nn.Softplus(2.0),
    }  # fmt: skip
    return lambda: parts.Activations([kind for name, kind in kinds.items() if name not in without])


UNARY = (
    torch.exp, torch.sin, torch.cos, torch.tan, torch.atan, torch.sinh, torch.cosh, torch.tanh,
    torch.erf, torch.sigmoid, torch.square, torch.exp2, torch.expm1,
    lambda x: torch.log(x.abs() + 0.1), lambda x: torch.sqrt(x.abs()),
    lambda x: torch.rsqrt(x.abs() + 0.1), lambda x: torch.log1p(x.abs()),
    lambda x: torch.log2(x.abs() + 0.1), lambda x: torch.log10(x.abs() + 0.1),
    lambda x: torch.asin(x.clamp(-0.9, 0.9)), lambda x: torch.acos(x.clamp(-0.9, 0.9)),
    lambda x: torch.atanh(x.clamp(-0.9, 0.9)),
)  # fmt: skip


class Small(nn.Module):
    """Convolutions and dense layers whose weights can be compressed in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, groups=2)
        self.third = nn.Linear(64, 32)
        self.fourth = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = nn.functional.adaptive_avg_pool2d(torch.relu(self.second(x)), 2)
        return self.fourth(torch.tanh(self.third(x.flatten(1))))


def _small(compress: Compression, target: str, **settings: Any) -> Recipe:
    return Recipe(Small, _draw(2, 4, 8, 8), target=target, compress=compress, **settings)


def _ranged(name: str, *shape: Any) -> Callable[[Any], Sequence[Any]]:
    """One input; an axis that is a pair of numbers may have any length between them."""

    def types(ct: Any) -> Sequence[Any]:
        dims = [ct.RangeDim(*each) if isinstance(each, tuple) else each for each in shape]
        return [ct.TensorType(name, ct.Shape(dims), dtype=np.float32)]

    return types


def _enumerated(*shapes: tuple[int, ...]) -> Callable[[Any], Sequence[Any]]:
    return lambda ct: [ct.TensorType("x0", ct.EnumeratedShapes(shapes=shapes), dtype=np.float32)]


def _image(shape: tuple[int, ...], scale: float, bias: Any, layout: str) -> dict[str, Any]:
    """The settings of a model that takes an image, which it scales and shifts itself."""
    offset = torch.tensor(bias).reshape(1, -1, 1, 1)

    def types(ct: Any) -> Sequence[Any]:
        given = bias if len(bias) > 1 else bias[0]
        return [
            ct.ImageType(
                "x0", shape, scale=scale, bias=given, color_layout=getattr(ct.colorlayout, layout)
            )
        ]

    return {
        "inputs": lambda: (torch.randint(0, 256, shape).to(torch.float32),),
        "types": types,
        "prepare": lambda x: x * scale + offset,
    }


def _classes(*labels: Any) -> Callable[[Any], Mapping[str, Any]]:
    return lambda ct: {"classifier_config": ct.ClassifierConfig(list(labels))}


def _softmax(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(make(), nn.Softmax(-1))


def _layer(kind: type[nn.RNNBase], **options: Any) -> Callable[[], nn.Module]:
    return lambda: sequences.Recurrent(kind, **options)


def _full(*channels: int) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AvgPool2d(2), nn.Conv2d(channels[-1], 2, 1))


def _unary() -> nn.Module:
    return parts.Together(*UNARY)


MEAN = [-2.1, -2.0, -1.8]

MODELS: dict[str, Recipe] = {
    # Nets over images.
    "resnet": Recipe(*_old("resnet")),
    "resnet_ios16": Recipe(*_old("resnet"), target="iOS16"),
    "resnet_export_ios18": Recipe(*_old("resnet"), front="export", target="iOS18"),
    "unet_ios17": Recipe(*_old("unet"), target="iOS17"),
    "unet_export_ios26": Recipe(*_old("unet"), front="export", target="iOS26"),
    "mobilenet": Recipe(vision.Mobilenet, _draw(2, 3, 24, 32)),
    "mobilenet_ios17_float16": Recipe(
        vision.Mobilenet, _draw(2, 3, 24, 32), target="iOS17", precision="float16"
    ),
    "mobilenet_export": Recipe(
        vision.Mobilenet, _draw(2, 3, 24, 32), front="export", target="iOS16"
    ),
    "densenet_ios16": Recipe(vision.Densenet, _draw(2, 3, 16, 20), target="iOS16"),
    "densenet_ios18_float16": Recipe(
        vision.Densenet, _draw(2, 3, 16, 20), target="iOS18", precision="float16"
    ),
    "inception": Recipe(vision.Inception, _draw(2, 3, 24, 22)),
    "inception_ios26": Recipe(vision.Inception, _draw(2, 3, 24, 22), target="iOS26"),
    "shufflenet_ios17": Recipe(vision.Shufflenet, _draw(2, 3, 12, 16), target="iOS17"),
    "squeezenet": Recipe(vision.Squeezenet, _draw(2, 3, 27, 29)),
    "deeplab_ios17": Recipe(vision.Deeplab, _draw(2, 3, 16, 20), target="iOS17"),
    "upsampler": Recipe(vision.Upsampler, _draw(2, 3, 5, 4)),
    "upsampler_ios17": Recipe(vision.Upsampler, _draw(2, 3, 5, 4), target="iOS17"),
    "pixel_shuffle": Recipe(lambda: vision.PixelShuffle(back=False), _draw(2, 3, 9, 10)),
    "pixel_shuffle_ios16": Recipe(vision.PixelShuffle, _draw(2, 3, 9, 10), target="iOS16"),
    "temporal": Recipe(vision.Temporal, _draw(2, 4, 12)),
    "volume_ios16": Recipe(vision.Volume, _draw(1, 2, 4, 6, 8), target="iOS16"),
    # Attention.
    "heads": Recipe(sequences.Heads, _draw(2, 6, 16)),
    "heads_export_ios18": Recipe(sequences.Heads, _draw(2, 6, 16), front="export", target="iOS18"),
    **{
        f"scaled_{target}_{precision}": Recipe(
            sequences.Scaled,
            _several((2, 3, 5, 8), (2, 3, 5, 8), (2, 3, 5, 8)),
            target=target,
            precision=precision,
        )
        for target, precision in (("iOS16", "float32"), ("iOS18", "float32"), ("iOS18", "float16"))
    },
    "encoder_ios17": Recipe(sequences.Encoder, _draw(2, 6, 16), target="iOS17"),
    "cross_ios18": Recipe(sequences.Cross, _several((2, 5, 16), (2, 7, 16)), target="iOS18"),
    "vit": Recipe(sequences.Vit, _draw(2, 3, 16, 16)),
    "vit_export_ios18_float16": Recipe(
        sequences.Vit, _draw(2, 3, 16, 16), front="export", target="iOS18", precision="float16"
    ),
    "windows_ios16": Recipe(sequences.Windows, _draw(2, 8, 8, 8), target="iOS16"),
    "llama_ios17": Recipe(sequences.Llama, _draw(2, 6, 16), target="iOS17"),
    "llama_export_ios18": Recipe(sequences.Llama, _draw(2, 6, 16), front="export", target="iOS18"),
    "bert": Recipe(*_old("bert")),
    "bert_export_ios18": Recipe(*_old("bert"), front="export", target="iOS18"),
    "gpt_ios16": Recipe(*_old("gpt"), target="iOS16"),
    "gpt_ios26_float16": Recipe(*_old("gpt"), target="iOS26", precision="float16"),
    # Recurrence.
    "lstm": Recipe(*_old("lstm")),
    "lstm_ios17": Recipe(*_old("lstm"), target="iOS17"),
    "gru_ios16": Recipe(*_old("gru"), target="iOS16"),
    "lstm_plain_float16": Recipe(_layer(nn.LSTM), _draw(4, 2, 5), precision="float16"),
    "lstm_both_ways": Recipe(_layer(nn.LSTM, bidirectional=True), _draw(4, 2, 5)),
    "gru_plain": Recipe(_layer(nn.GRU), _draw(4, 2, 5)),
    "gru_stacked_ios18": Recipe(_layer(nn.GRU, num_layers=2), _draw(4, 2, 5), target="iOS18"),
    "gru_both_ways_ios17": Recipe(
        _layer(nn.GRU, bidirectional=True, batch_first=True), _draw(2, 4, 5), target="iOS17"
    ),
    "rnn_tanh": Recipe(_layer(nn.RNN), _draw(4, 2, 5)),
    "rnn_relu_stacked_ios17": Recipe(
        _layer(nn.RNN, nonlinearity="relu", num_layers=2), _draw(4, 2, 5), target="iOS17"
    ),
    "steps_ios17": Recipe(
        sequences.Steps, _several((4, 2, 5), (1, 2, 6), (1, 2, 6)), target="iOS17"
    ),
    "cells": Recipe(sequences.Cells, _draw(3, 2, 2, 5, 4)),
    # Control flow.
    "converging": Recipe(sequences.Converging, _draw(2, 4), front="script"),
    "converging_ios18_float16": Recipe(
        sequences.Converging, _draw(2, 4), front="script", target="iOS18", precision="float16"
    ),
    "branches_yes": Recipe(
        sequences.Branches, lambda: (torch.randn(2, 4).abs(),), front="script", target="iOS16"
    ),
    "branches_no": Recipe(
        sequences.Branches, lambda: (-torch.randn(2, 4).abs(),), front="script", target="iOS17"
    ),
    "counter_ios17": Recipe(sequences.Counter, _draw(5, 4), front="script", target="iOS17"),
    "nested": Recipe(sequences.Nested, _draw(2, 4), front="script"),
    # Operators of one kind.
    "activations": Recipe(_activations(), _draw(2, 4, 5, 5)),
    "activations_ios17_float16": Recipe(
        _activations(), _draw(2, 4, 5, 5), target="iOS17", precision="float16"
    ),
    "activations_export_ios18": Recipe(
        _activations("threshold", "gelu_tanh"), _draw(2, 4, 5, 5), front="export", target="iOS18"
    ),
    "norms": Recipe(parts.Norms, _draw(2, 6, 5, 4)),
    "norms_ios17": Recipe(parts.Norms, _draw(2, 6, 5, 4), target="iOS17"),
    "pooling": Recipe(parts.Pooling, _draw(2, 3, 12, 12)),
    "pooling_ios18": Recipe(parts.Pooling, _draw(2, 3, 12, 12), target="iOS18"),
    "resizing": Recipe(parts.Resizing, _draw(2, 3, 6, 5)),
    "resizing_ios17": Recipe(parts.Resizing, _draw(2, 3, 6, 5), target="iOS17"),
    **{
        f"{name}_{target}": Recipe(make, inputs, target=target)
        for target in ("iOS15", "iOS17", "iOS18")
        for name, make, inputs in (
            ("indexing", parts.Indexing, _places(5, (6, 5), count=4)),
            ("scattering", parts.Scattering, _places(5, (6, 5), count=4)),
            ("ordering", parts.Ordering, _draw(4, 6)),
        )
    },
    "indexing_export": Recipe(
        parts.Indexing, _places(5, (6, 5), count=4), front="export", target="iOS17"
    ),
    "masks_ios16": Recipe(parts.Masks, _draw(5, 6), target="iOS16"),
    "embeddings": Recipe(
        parts.Embeddings, lambda: (torch.randint(0, 20, (2, 5)), torch.randint(0, 4, (2, 5)))
    ),
    "products": Recipe(parts.Products, _several((2, 5, 4), (2, 4, 5))),
    "products_ios17": Recipe(parts.Products, _several((2, 5, 4), (2, 4, 5)), target="iOS17"),
    "reductions": Recipe(parts.Reductions, _draw(3, 4, 5)),
    "reductions_export_ios18": Recipe(
        parts.Reductions, _draw(3, 4, 5), front="export", target="iOS18"
    ),
    "logic_ios16": Recipe(parts.Logic, _several((4, 5), (4, 5)), target="iOS16"),
    "numbers": Recipe(parts.Numbers, _several((4, 5), (4, 5))),
    "numbers_ios17": Recipe(parts.Numbers, _several((4, 5), (4, 5)), target="iOS17"),
    "unary": Recipe(_unary, _draw(4, 5)),
    "unary_ios17": Recipe(_unary, _draw(4, 5), target="iOS17"),
    "sampling": Recipe(parts.Sampling, _several((2, 3, 6, 4), (2, 5, 7, 2))),
    "sampling_ios17": Recipe(parts.Sampling, _several((2, 3, 6, 4), (2, 5, 7, 2)), target="iOS17"),
    "selecting_ios16": Recipe(parts.Selecting, _draw(4, 5), target="iOS16"),
    "spectra": Recipe(parts.Spectra, _draw(2, 16)),
    "joining_ios16": Recipe(parts.Joining, _several((3, 4), (3, 4)), target="iOS16"),
    "shapes": Recipe(parts.Shapes, _draw(2, 4, 6, 4)),
    # Compressed weights.
    "int8": _small(quantized(mode="linear_symmetric"), "iOS16"),
    "uint8_float16": _small(quantized(mode="linear", dtype="uint8"), "iOS16", precision="float16"),
    "int8_per_tensor_ios17": _small(quantized(mode="linear", granularity="per_tensor"), "iOS17"),
    "int8_ios18": _small(quantized(mode="linear"), "iOS18"),
    "int4_blocks_ios18": _small(
        quantized(mode="linear_symmetric", dtype="int4", granularity="per_block", block_size=2),
        "iOS18",
    ),
    "uint4_blocks_ios26_float16": _small(
        quantized(mode="linear", dtype="uint4", granularity="per_block", block_size=4),
        "iOS26",
        precision="float16",
    ),
    **{f"palette_{bits}": _small(palette(bits), "iOS16") for bits in (1, 2, 4, 6, 8)},
    "palette_4_ios17_float16": _small(palette(4), "iOS17", precision="float16"),
    "palette_3_ios18": _small(palette(3), "iOS18"),
    **{
        f"palette_{bits}_groups_ios18": _small(
            palette(bits, granularity="per_grouped_channel", group_size=4), "iOS18"
        )
        for bits in (2, 4, 6)
    },
    "palette_scaled_ios18": _small(
        palette(4, granularity="per_grouped_channel", group_size=8, enable_per_channel_scale=True),
        "iOS18",
    ),
    "sparse": _small(pruned(target_sparsity=0.6), "iOS16"),
    "sparse_pairs_ios17_float16": _small(
        pruned(n_m_ratio=(2, 4), dim=1), "iOS17", precision="float16"
    ),
    "sparse_ios18": _small(pruned(target_sparsity=0.5, block_size=2, dim=0), "iOS18"),
    "sparse_int8_ios18": _small(
        in_turn(pruned(target_sparsity=0.5), quantized(mode="linear_symmetric")), "iOS18"
    ),
    "sparse_palette_ios18": _small(in_turn(pruned(target_sparsity=0.5), palette(4)), "iOS18"),
    "palette_int8_ios18": _small(
        in_turn(palette(4), quantized(mode="linear_symmetric", granularity="per_tensor")), "iOS18"
    ),
    # Shapes that are not fixed.
    "batch_of_any_size": Recipe(
        lambda: _full(3, 6, 8),
        _draw(3, 3, 8, 8),
        example=_draw(1, 3, 8, 8),
        types=_ranged("x0", (1, 8), 3, 8, 8),
    ),
    "image_of_any_size_ios17": Recipe(
        lambda: nn.Sequential(_full(3, 6), nn.Upsample(scale_factor=2, mode="bilinear")),
        _draw(1, 3, 18, 14),
        example=_draw(1, 3, 16, 16),
        types=_ranged("x0", 1, 3, (8, 64), (8, 64)),
        target="iOS17",
    ),
    "image_of_some_sizes": Recipe(
        lambda: _full(3, 6),
        _draw(1, 3, 12, 10),
        example=_draw(1, 3, 8, 8),
        types=_enumerated((1, 3, 8, 8), (1, 3, 12, 10)),
    ),
    "sequence_of_any_length": Recipe(
        _layer(nn.LSTM, num_layers=2),
        _draw(7, 2, 5),
        example=_draw(4, 2, 5),
        types=_ranged("x0", (1, 20), 2, 5),
    ),
    "sentence_of_any_length_ios18": Recipe(
        sequences.Llama,
        _draw(2, 9, 16),
        example=_draw(2, 6, 16),
        types=_ranged("x0", 2, (2, 32), 16),
        target="iOS18",
    ),
    "encoder_of_any_length_ios16": Recipe(
        sequences.Encoder,
        _draw(3, 9, 16),
        example=_draw(2, 6, 16),
        types=_ranged("x0", (1, 5), (2, 32), 16),
        target="iOS16",
    ),
    "batch_exported_ios17": Recipe(
        vision.Squeezenet,
        _draw(3, 3, 27, 29),
        front="export",
        example=_draw(2, 3, 27, 29),
        dynamic=({0: torch.export.Dim("batch", min=1, max=8)},),
        types=_ranged("x0", (1, 8), 3, 27, 29),
        target="iOS17",
    ),
    # Images and classes.
    "rgb": Recipe(vision.Squeezenet, **_image((1, 3, 27, 29), 0.017, MEAN, "RGB")),
    "bgr_ios16_float16": Recipe(
        vision.Mobilenet,
        **_image((1, 3, 24, 32), 1 / 64, MEAN, "BGR"),
        target="iOS16",
        precision="float16",
    ),
    "gray": Recipe(lambda: _full(1, 4, 6), **_image((1, 1, 12, 10), 1 / 128, [-1.0], "GRAYSCALE")),
    "classes": Recipe(
        vision.Squeezenet, _draw(1, 3, 27, 29), options=_classes("a", "b", "c", "d", "e")
    ),
    "numbered_classes_ios17": Recipe(
        _softmax(vision.Mobilenet),
        **_image((1, 3, 24, 32), 1 / 64, MEAN, "RGB"),
        options=_classes(*range(10, 16)),
        target="iOS17",
    ),
    # States and functions.
    "stateful_ios18": Recipe(
        sequences.Stateful, _draw(1, 4), target="iOS18", precision="float16", states=("mean",)
    ),
    "cache_ios18": Recipe(
        sequences.Cache,
        _draw(1, 1, 8),
        target="iOS18",
        precision="float16",
        states=("keys", "values"),
    ),
    "one_of_two_ios18": Recipe(
        vision.Squeezenet, _draw(1, 3, 27, 29), target="iOS18", beside="gru_stacked_ios18"
    ),
}
"""The models by name."""

MODELS |= {
    f"network_{name}": Recipe(make, inputs, target=None)
    for name, make, inputs in (
        *((name, *_old(name)) for name in torch_nets.NETS),
        ("mobilenet", vision.Mobilenet, _draw(2, 3, 24, 32)),
        ("densenet", vision.Densenet, _draw(2, 3, 16, 20)),
        ("inception", vision.Inception, _draw(2, 3, 24, 22)),
        ("shufflenet", vision.Shufflenet, _draw(2, 3, 12, 16)),
        ("deeplab", vision.Deeplab, _draw(2, 3, 16, 20)),
        ("upsampler", lambda: vision.Upsampler(1, fraction=False), _draw(2, 3, 5, 4)),
        ("pixel_shuffle", lambda: vision.PixelShuffle(back=False), _draw(2, 3, 9, 10)),
        ("temporal", vision.Temporal, _draw(2, 4, 12)),
        ("volume", vision.Volume, _draw(1, 2, 4, 6, 8)),
        ("heads", sequences.Heads, _draw(2, 6, 16)),
        ("vit", sequences.Vit, _draw(2, 3, 16, 16)),
        ("llama", sequences.Llama, _draw(2, 6, 16)),
        ("lstm_both_ways", _layer(nn.LSTM, bidirectional=True), _draw(4, 2, 5)),
        ("gru_both_ways", _layer(nn.GRU, bidirectional=True), _draw(4, 2, 5)),
        ("rnn", _layer(nn.RNN), _draw(4, 2, 5)),
        ("cells", sequences.Cells, _draw(3, 2, 2, 5, 4)),
        ("activations", _activations(), _draw(2, 4, 5, 5)),
        ("norms", parts.Norms, _draw(2, 6, 5, 4)),
        ("pooling", parts.Pooling, _draw(2, 3, 12, 12)),
        ("resizing", lambda: parts.Resizing(fraction=False), _draw(2, 3, 6, 5)),
        ("indexing", parts.Indexing, _places(5, (6, 5), count=4)),
        ("scattering", parts.Scattering, _places(5, (6, 5), count=4)),
        ("masks", parts.Masks, _draw(5, 6)),
        ("ordering", parts.Ordering, _draw(4, 6)),
        ("products", parts.Products, _several((2, 5, 4), (2, 4, 5))),
        ("reductions", parts.Reductions, _draw(3, 4, 5)),
        ("logic", parts.Logic, _several((4, 5), (4, 5))),
        ("numbers", parts.Numbers, _several((4, 5), (4, 5))),
        ("unary", _unary, _draw(4, 5)),
        ("joining", parts.Joining, _several((3, 4), (3, 4))),
        ("shapes", parts.Shapes, _draw(2, 4, 6, 4)),
    )
}
MODELS |= {
    "network_converging": Recipe(sequences.Converging, _draw(2, 4), front="script", target=None),
    "network_nested": Recipe(sequences.Nested, _draw(2, 4), front="script", target=None),
    "network_rgb": Recipe(
        vision.Squeezenet, **_image((1, 3, 27, 29), 0.017, MEAN, "RGB"), target=None
    ),
    "network_bgr": Recipe(
        vision.Squeezenet, **_image((1, 3, 27, 29), 0.017, MEAN, "BGR"), target=None
    ),
    "network_gray": Recipe(
        lambda: _full(1, 4, 6), **_image((1, 1, 12, 10), 1 / 128, [-1.0], "GRAYSCALE"), target=None
    ),
    "network_classes": Recipe(
        vision.Squeezenet,
        _draw(1, 3, 27, 29),
        options=_classes("a", "b", "c", "d", "e"),
        target=None,
    ),
    "network_batch_of_any_size": Recipe(
        lambda: _full(3, 6, 8),
        _draw(3, 3, 8, 8),
        example=_draw(1, 3, 8, 8),
        types=_ranged("x0", (1, 8), 3, 8, 8),
        target=None,
    ),
    "network_image_of_some_sizes": Recipe(
        lambda: _full(3, 6),
        _draw(1, 3, 12, 10),
        example=_draw(1, 3, 8, 8),
        types=_enumerated((1, 3, 8, 8), (1, 3, 12, 10)),
        target=None,
    ),
}
