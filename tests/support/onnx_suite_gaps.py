"""Cases of onnx's backend suite that are not converted, or not right, each with its reason.

A case whose operators have no importer at all is no gap: it joins with the importer.
"""

from __future__ import annotations

_SHIFTS = "a shift of integers is not exported"
_FMOD = "Relay's floor_mod of floats is exported as a difference, which loses infinities"

_IMPORT = {
    "cast_e8m0_FLOAT16_to_FLOAT8E8M0": "a cast to float8_e8m0fnu rounds up",
    "cast_e8m0_FLOAT_to_FLOAT8E8M0": "a cast to float8_e8m0fnu rounds up",
    "identity_opt": "an input is an optional",
    "identity_sequence": "an input is a sequence",
}
"""What import refuses or gets wrong."""

_EXPORT = {
    "bitshift_left_int16": _SHIFTS,
    "bitshift_left_int32": _SHIFTS,
    "bitshift_left_int32_negative_shift": _SHIFTS,
    "bitshift_left_int32_overflow": _SHIFTS,
    "bitshift_left_int32_shift_ge_width": _SHIFTS,
    "bitshift_left_int64": _SHIFTS,
    "bitshift_left_int8": _SHIFTS,
    "bitshift_left_int8_negative_shift": _SHIFTS,
    "bitshift_left_int8_overflow": _SHIFTS,
    "bitshift_left_int8_shift_ge_width": _SHIFTS,
    "bitshift_left_uint16": _SHIFTS,
    "bitshift_left_uint32": _SHIFTS,
    "bitshift_left_uint64": _SHIFTS,
    "bitshift_left_uint8": _SHIFTS,
    "bitshift_right_int16": _SHIFTS,
    "bitshift_right_int32": _SHIFTS,
    "bitshift_right_int32_negative_input": _SHIFTS,
    "bitshift_right_int32_negative_shift": _SHIFTS,
    "bitshift_right_int32_shift_ge_width": _SHIFTS,
    "bitshift_right_int64": _SHIFTS,
    "bitshift_right_int8": _SHIFTS,
    "bitshift_right_int8_negative_input": _SHIFTS,
    "bitshift_right_int8_negative_shift": _SHIFTS,
    "bitshift_right_int8_shift_ge_width": _SHIFTS,
    "bitshift_right_uint16": _SHIFTS,
    "bitshift_right_uint32": _SHIFTS,
    "bitshift_right_uint64": _SHIFTS,
    "bitshift_right_uint8": _SHIFTS,
    "if": "an If is not exported",
    "mod_float_edge_cases_fmod_0_float16": _FMOD,
    "mod_float_edge_cases_fmod_0_float32": _FMOD,
    "mod_float_edge_cases_fmod_0_float64": _FMOD,
}
"""What export refuses or gets wrong of models that are imported."""

SUITE_GAPS: dict[tuple[str, str], str] = {
    **{(s, n): r for s in ("onnx-import", "onnx-import-frozen") for n, r in _IMPORT.items()},
    **{("onnx-again", name): reason for name, reason in {**_IMPORT, **_EXPORT}.items()},
}
