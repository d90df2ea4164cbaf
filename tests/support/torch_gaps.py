"""What PyTorch's samples of its operators show to be missing, by the reason that is reported.

``python tests/support/torch_opinfo.py --gaps --dtypes ...`` prints what belongs here. Each
(operator, reason) is a strict xfail: closing a gap forces its entry out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gap:
    """Samples that do not pass for one reason.

    Attributes:
        reason: A part of the reason that is reported.
        why: What is behind it.
        names: The operators, as ``name`` or, where one dtype alone is meant, ``name[dtype]``.
    """

    reason: str
    why: str
    names: tuple[str, ...]


GAPS: tuple[Gap, ...] = (
    Gap(
        "no importer",
        "functions without a name in Relay that are not spelled out",
        (
            "special.airy_ai",
            "special.bessel_j0",
            "special.bessel_j1",
            "special.bessel_y0",
            "special.bessel_y1",
            "special.erfcx",
            "special.log_ndtr",
            "special.modified_bessel_k0",
            "special.modified_bessel_k1",
            "special.ndtri",
            "special.scaled_modified_bessel_k0",
            "special.scaled_modified_bessel_k1",
            "special.spherical_bessel_j0",
            "special.zeta",
            "igamma",
            "igammac",
        ),
    ),
    Gap(
        "no importer",
        "polynomials of an order that is a tensor",
        (
            "special.chebyshev_polynomial_t",
            "special.chebyshev_polynomial_u",
            "special.chebyshev_polynomial_v",
            "special.chebyshev_polynomial_w",
            "special.hermite_polynomial_h",
            "special.hermite_polynomial_he",
            "special.laguerre_polynomial_l",
            "special.legendre_polynomial_p",
            "special.shifted_chebyshev_polynomial_t",
            "special.shifted_chebyshev_polynomial_u",
            "special.shifted_chebyshev_polynomial_v",
            "special.shifted_chebyshev_polynomial_w",
        ),
    ),
    Gap(
        "no importer",
        "factors with exchanged rows, of which Relay has none",
        (
            "geqrf",
            "linalg.ldl_factor",
            "linalg.ldl_factor_ex",
            "linalg.ldl_solve",
            "linalg.lstsq",
            "linalg.lstsq:grad_oriented",
            "linalg.lu",
            "linalg.lu_factor",
            "linalg.lu_factor_ex",
            "linalg.lu_solve",
            "lu",
            "lu_solve",
            "lu_unpack",
            "matrix_exp",
            "ormqr",
        ),
    ),
    Gap(
        "no importer",
        "transforms to and from complex numbers, which Relay does not have",
        ("fft.hfft", "fft.hfft2", "fft.hfftn", "fft.irfft", "fft.irfft2", "fft.irfftn", "stft"),
    ),
    Gap(
        "no importer",
        "operators of training",
        (
            "_softmax_backward_data",
            "nn.functional.fractional_max_pool2d",
            "nn.functional.fractional_max_pool3d",
            "nn.functional.linear_cross_entropy:chunked",
            "nn.functional.linear_cross_entropy:chunked_none",
        ),
    ),
    Gap(
        "no importer",
        "operators that no model met so far has",
        (
            "_chunk_cat",
            "_segment_reduce:lengths",
            "_segment_reduce:offsets",
            "frexp",
            "gradient",
            "hash_tensor",
            "histogram",
            "histogramdd",
            "linalg.vander",
            "nextafter",
            "to_sparse",
            "uniform",
        ),
    ),
    Gap(
        "complex numbers",
        "Relay has no complex numbers",
        (
            "cdouble",
            "cfloat",
            "chalf",
            "complex",
            "fft.fft",
            "fft.fft2",
            "fft.fftn",
            "fft.ifft",
            "fft.ifft2",
            "fft.ifftn",
            "fft.ihfft",
            "fft.ihfft2",
            "fft.ihfftn",
            "fft.rfft",
            "fft.rfft2",
            "fft.rfftn",
            "linalg.eig",
            "linalg.eigvals",
            "polar",
            "stft",
            "view_as_complex",
        ),
    ),
    Gap(
        "differs: values",
        "nobody says which of equal elements comes first",
        (
            "argsort[bool]",
            "argsort[float16]",
            "kthvalue[int32]",
            "kthvalue[int64]",
            "mode[bool]",
            "mode[float16]",
            "mode[int32]",
            "mode[int64]",
            "sort[bool]",
            "sort[float16]",
            "topk[int32]",
            "topk[int64]",
        ),
    ),
    Gap(
        "differs: values",
        "PyTorch rounds to bfloat16 once what are several operators in Relay",
        (
            "nn.functional.bilinear[bfloat16]",
            "nn.functional.conv1d[bfloat16]",
            "nn.functional.conv2d[bfloat16]",
            "nn.functional.conv_transpose1d[bfloat16]",
            "nn.functional.cosine_similarity[bfloat16]",
            "nn.functional.linear[bfloat16]",
            "nn.functional.multi_head_attention_forward[bfloat16]",
        ),
    ),
    Gap(
        "running statistics of instances",
        "which the operator changes without saying so",
        ("nn.functional.instance_norm",),
    ),
    Gap(
        "differs: values",
        "PyTorch rounds to float16 once what are several operators in Relay",
        (
            "baddbmm[float16]",
            "native_layer_norm[float16]",
            "nn.functional.bilinear[float16]",
            "nn.functional.conv_transpose2d[float16]",
            "nn.functional.huber_loss[float16]",
            "nn.functional.layer_norm[float16]",
            "nn.functional.linear[float16]",
            "nn.functional.multi_head_attention_forward[float16]",
        ),
    ),
    Gap(
        "the polygamma function of order",
        "its derivatives are not spelled out",
        (
            "polygamma:polygamma_n_0",
            "polygamma:polygamma_n_1",
            "polygamma:polygamma_n_2",
            "polygamma:polygamma_n_3",
            "polygamma:polygamma_n_4",
            "special.polygamma:special_polygamma_n_0",
        ),
    ),
    Gap("vectors beyond the rank of a matrix", "nobody says which they are", ("linalg.svd", "svd")),
    Gap(
        "a tensor whose memory is exchanged",
        "what the new memory holds is not said",
        ("resize_", "resize_as_"),
    ),
    Gap(
        "smoothed resizing of which the corners are aligned",
        "Relay has no such resizing",
        ("_upsample_bilinear2d_aa",),
    ),
    Gap(
        "resized to # as by a factor of #",
        "Relay has no such resizing",
        ("_upsample_bilinear2d_aa",),
    ),
    Gap(
        "running statistics of instances, in training",
        "operators of training",
        ("nn.functional.instance_norm",),
    ),
    Gap("slopes that are drawn in training", "operators of training", ("nn.functional.rrelu",)),
    Gap(
        "attention that drops weights",
        "operators of training",
        ("nn.functional.scaled_dot_product_attention",),
    ),
    Gap(
        "needs a fixed number, found ?",
        "places that are an input say how many results there are",
        ("tensor_split",),
    ),
    Gap(
        "not traced",
        "PyTorch does not trace a branch on an input",
        ("nn.functional.gaussian_nll_loss",),
    ),
)
"""All gaps that are known."""


def reasons_of(name: str, dtype: str) -> list[str]:
    """Return the reasons that samples of an operator in a dtype may be refused or differ for."""
    places = {name, f"{name}[{dtype}]"}
    return [gap.reason for gap in GAPS if places.intersection(gap.names)]
