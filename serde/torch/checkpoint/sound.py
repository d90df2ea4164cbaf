"""Spectrograms in front of models of speech, as the feature extractor of Whisper computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import require
from serde.errors import OptionError, Unsupported
from serde.relay.ir import symbol
from serde.torch.checkpoint.asked import BATCH, Asked, Tensors

__all__ = ["of_samples"]

SAMPLES = symbol("samples")

_FEATURES: Final = "input_features"
_KIND: Final = "WhisperFeatureExtractor"


def of_samples(extractor: AnyValue) -> Callable[[Asked], Asked]:
    """Return what makes of a call one of samples of sound, ``audio``, in place of a spectrogram.

    A call without a spectrogram, as that of a decoder, stays as it is.

    Args:
        extractor: The feature extractor of transformers.

    Raises:
        OptionError: It is another one, or draws random numbers.
    """
    if type(extractor).__name__ != _KIND or extractor.dither:
        found = type(extractor).__name__
        raise OptionError(f"raw_audio: expected a {_KIND} without dither, found a {found}")
    features = _spectrogram(extractor)
    made = [extractor.feature_size, extractor.nb_max_frames]

    def change(asked: Asked) -> Asked:
        if _FEATURES not in asked.inputs:
            return asked
        (_, *wanted), dtype = asked.inputs[_FEATURES]
        if wanted != made:
            raise Unsupported(f"raw_audio: its spectrograms are {made}, the model takes {wanted}")

        def run(tensors: Tensors) -> Tensors:
            found = features(tensors["audio"]).to(getattr(require("torch"), dtype))
            return asked.function({_FEATURES: found})

        return replace(asked, function=run, inputs={"audio": ((BATCH, SAMPLES), "float32")})

    return change


def _spectrogram(extractor: AnyValue) -> Callable[[AnyValue], AnyValue]:
    """Return what makes logarithms of spectra in the bands of hearing, of each frame.

    A Fourier transform of frames this short is the product with a matrix of waves, which runtimes
    compute faster and closer than their transforms of lengths that are no powers of two.
    """
    torch, size = require("torch"), extractor.n_fft
    half, count = size // 2 + 1, extractor.n_samples
    angles = 2 * np.pi / size * np.outer(np.arange(half), np.arange(size))
    window = 0.5 - 0.5 * np.cos(2 * np.pi / size * np.arange(size))
    waves = np.concatenate([np.cos(angles), np.sin(angles)])[:, None] * window
    kernel = torch.tensor(waves, dtype=torch.float32)
    filters = torch.tensor(extractor.mel_filters.T, dtype=torch.float32)

    def compute(audio: AnyValue) -> AnyValue:
        rest = audio.new_full((audio.shape[0], count), extractor.padding_value)
        whole = torch.cat([audio, rest], 1)[:, None, :count]
        padded = torch.nn.functional.pad(whole, (size // 2, size // 2), mode="reflect")
        found = torch.nn.functional.conv1d(padded, kernel, stride=extractor.hop_length)
        power = found[..., :-1].square()
        bands = torch.matmul(filters, power[:, :half] + power[:, half:])
        logs = bands.clamp(min=1e-10).log10()
        return (torch.maximum(logs, logs.amax((1, 2), keepdim=True) - 8.0) + 4.0) / 4.0

    return compute
