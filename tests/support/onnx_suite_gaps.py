"""Cases of onnx's backend suite that are not converted, or not right, each with its reason.

A case whose operators have no importer at all is no gap: it joins with the importer.
"""

from __future__ import annotations

_OPTIONAL = "an optional sequence that may be absent"

_HALF = "MXNet multiplies no matrices of float16 on a CPU"
_FMOD_MXNET = "MXNet's remainder of infinities differs"

_IMPORT = {
    "attention_4d_causal_fp16_expanded": "two elements of float16 are rounded the other way",
    "cast_e8m0_FLOAT16_to_FLOAT8E8M0": "a cast to float8_e8m0fnu rounds up",
    "cast_e8m0_FLOAT_to_FLOAT8E8M0": "a cast to float8_e8m0fnu rounds up",
    "identity_opt": _OPTIONAL,
    "if_opt": _OPTIONAL,
    "loop13_seq": "a sequence that is declared to hold scalars takes vectors",
    "loop16_seq_none": _OPTIONAL,
    "optional_get_element_optional_sequence": _OPTIONAL,
    "squeezenet": "logits of 1e10 before a softmax must be equal to the last bit",
}
"""What import refuses or gets wrong."""

_CORNERS = "ONNX Runtime aligns the corners of the whole length, not of the length times the scale"

_ROUNDED = "ONNX Runtime's DFT is off by more than the case allows around zero"

_EXPORT = {
    "attention_4d_causal_fp16": "ONNX Runtime rounds an element of the model as it is so, too",
    "dft": _ROUNDED,
    "dft_axis": _ROUNDED,
    "dft_axis_opset19": _ROUNDED,
    "dft_inverse": _ROUNDED,
    "dft_inverse_opset19": _ROUNDED,
    "dft_irfft": _ROUNDED,
    "dft_irfft_opset19": _ROUNDED,
    "dft_opset19": _ROUNDED,
    "dft_rfft": _ROUNDED,
    "dft_rfft_opset19": _ROUNDED,
    "stft": _ROUNDED,
    "stft_with_window": _ROUNDED,
    "resize_downsample_scales_cubic_align_corners": _CORNERS,
    "resize_downsample_scales_linear_align_corners": _CORNERS,
    "range_bfloat16_type_positive_delta_expanded": "a loop is not exported",
}
"""What export refuses or gets wrong of models that are imported."""

_MXNET = {
    "attention_4d_causal_fp16": _HALF,
    "attention_4d_causal_fp16_expanded": _HALF,
    "attention_4d_fp16": _HALF,
    "attention_4d_gqa_causal_nonpad_decode_fp16": _HALF,
    "attention_4d_gqa_with_past_and_present_fp16": _HALF,
    "attention_4d_fp16_expanded": _HALF,
    "attention_4d_gqa_with_past_and_present_fp16_expanded": _HALF,
    "loop11": "a stack of tensors of unknown length",
    "mish_expanded": "its activations differ by 1e-5 near 0",
    "mod_float_edge_cases_fmod_0_float16": _FMOD_MXNET,
    "mod_float_edge_cases_fmod_0_float32": _FMOD_MXNET,
    "mod_float_edge_cases_fmod_0_float64": _FMOD_MXNET,
}
"""What MXNet gets wrong or fails at."""

SUITE_GAPS: dict[tuple[str, str], str] = {
    **{("onnx-import", name): reason for name, reason in _IMPORT.items()},
    **{("onnx-import-frozen", name): reason for name, reason in _IMPORT.items()},
    **{
        ("onnx-again", name): reason
        for name, reason in {**_IMPORT, **_EXPORT}.items()
        if name not in ("squeezenet", "attention_4d_causal_fp16_expanded")
    },
    **{
        ("onnx-mxnet", name): reason
        for name, reason in {**_IMPORT, **_MXNET}.items()
        if name != "squeezenet"
    },
}
