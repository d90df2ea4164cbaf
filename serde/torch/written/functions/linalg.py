"""Factors of matrices, spectra and sparse matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def lower_factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower triangle L and the orthonormal rows Q of L @ Q."""
    q, r = torch.linalg.qr(x.transpose(-2, -1))
    return r.transpose(-2, -1), q.transpose(-2, -1)


def real_eigenvalues(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors, which must be real."""
    values, vectors = torch.linalg.eig(x)
    if bool(torch.any(torch.imag(values) != 0)):
        raise ValueError("an eigenvalue is not real")
    return torch.real(values), torch.real(vectors)


def symmetric_eigenvalues(x: Tensor, triangle: str) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, and eigenvectors whose greatest component is positive."""
    values, vectors = torch.linalg.eigh(x, UPLO=triangle)
    peaks = vectors.abs().argmax(-2, keepdim=True)
    negative = torch.gather(vectors, -2, peaks) < 0
    return values, torch.where(negative, -vectors, vectors)


def short_time_fourier(
    x: Tensor,
    window: Tensor,
    size: int,
    step: int,
    length: int,
    normalized: bool,
    onesided: bool,
) -> Tensor:
    """Transform windows, of which the first elements count, at frequencies in these."""
    count = (x.shape[-1] - size) // step + 1
    frames = x.unfold(-1, size, step)[..., :count, :length].double()
    frames = frames * window[:length]
    frequencies = torch.arange(size // 2 + 1 if onesided else size, device=x.device)
    taps = torch.arange(length, device=x.device)
    angles = taps[:, None] * frequencies % length * (2 * math.pi / length)
    real = (frames @ torch.cos(angles.double())).transpose(-2, -1)
    imaginary = (frames @ -torch.sin(angles.double())).transpose(-2, -1)
    found = torch.stack([real, imaginary], dim=-1)
    if normalized:
        found = found / math.sqrt(size)
    return found.to(x.dtype)
