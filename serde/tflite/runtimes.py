"""Which runtimes have which versions of operators, by LiteRT's ``runtime_version.cc``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["least_runtime"]

_FACTS: Final = """
ABS 1.13 2.4 2.5 2.6 2.12; ADD 1.5 1.14 2.4 2.6 2.13; ARG_MAX 1.9 1.14 2.9; ARG_MIN 1.9 1.14 2.9;
ATAN2 2.10; AVERAGE_POOL_2D 1.5 1.14 2.3; BATCH_MATMUL 2.3 2.3 2.4 2.5; BITWISE_XOR 2.13;
BROADCAST_TO 2.5 2.5 2.5; CAST 1.5 2.7 2.8 2.9 2.12; CEIL 1.14; CONCATENATION 1.5 1.14 2.3 2.14;
CONV_2D 1.5 1.14 1.14 2.3 2.4 2.9 2.11 2.15; CONV_3D 2.5; COS 1.14; CUMSUM 2.4;
DEPTH_TO_SPACE 2.1 2.5; DEPTHWISE_CONV_2D 1.5 1.12 1.14 2.2 2.3 2.3 2.11;
DEQUANTIZE 1.13.1 1.14 1.15 2.2 2.7 2.18; DIV 1.6 2.3; DYNAMIC_UPDATE_SLICE 2.9 2.17; ELU 1.14;
EQUAL 1.14 1.14 2.3 2.13; EXP 1.7 2.12; EXPAND_DIMS 1.10; FILL 1.13 2.3 2.5; FLOOR 1.9;
FLOOR_DIV 1.14 1.14 2.13; FLOOR_MOD 1.13 2.13;
FULLY_CONNECTED 1.5 1.10 1.14 1.14 2.0 2.1 2.3 2.3 2.3 2.11 2.15 2.17;
GATHER 1.6 1.14 1.15 2.4 2.5 2.13 2.15; GATHER_ND 1.14 2.3 2.5 2.13 2.16; GELU 2.9 2.9;
GREATER 1.14 1.14; GREATER_EQUAL 1.14 1.14 2.13; HARD_SWISH 1.15; IF 1.15;
L2_NORMALIZATION 1.5 1.14; LEAKY_RELU 1.13.1 2.3; LESS 1.14 1.14 2.13; LESS_EQUAL 1.14 1.14;
LOCAL_RESPONSE_NORMALIZATION 1.5; LOG 1.14 2.15; LOGICAL_AND 1.11; LOGICAL_NOT 1.11;
LOGICAL_OR 1.11; LOGISTIC 1.14 1.14 2.3; LOG_SOFTMAX 1.14 1.14; MAX_POOL_2D 1.5 1.14 2.3;
MAXIMUM 1.14 1.14 2.3 2.3; MEAN 1.6 1.14 2.4; MINIMUM 1.14 1.14 2.3 2.3;
MIRROR_PAD 1.13.1 2.3 2.12; MUL 1.5 1.14 1.15 2.3 2.6 2.11 2.13; NEG 1.9;
NOT_EQUAL 1.14 1.14 2.3; ONE_HOT 1.11; PACK 1.11 1.14 2.3 2.13; PAD 1.5 1.14 2.4 2.6 2.20;
PADV2 1.9 1.14 2.4 2.6 2.20; POW 1.10; PRELU 1.8; QUANTIZE 1.14 1.15 2.7; RANGE 1.13 2.14;
RANK 1.14; REDUCE_ALL 2.6; REDUCE_ANY 1.11; REDUCE_MAX 1.11 1.14 2.5; REDUCE_MIN 1.11 1.14 2.5;
REDUCE_PROD 1.11 2.6; RELU 1.5 2.1 2.5; RELU6 1.5 1.14 2.5; RELU_N1_TO_1 1.5; RESHAPE 1.5;
RESIZE_BILINEAR 1.7 1.14 2.2 2.5; RESIZE_NEAREST_NEIGHBOR 1.13.1 1.14 2.3 2.4;
REVERSE_SEQUENCE 1.14; REVERSE_V2 1.14 2.2 2.5; RIGHT_SHIFT 2.13; ROUND 1.14; RSQRT 1.10 2.5 2.15;
SCATTER_ND 2.1; SELECT_V2 2.2 2.12; SHAPE 1.10; SIGN 2.11 2.12; SIN 1.9;
SLICE 1.14 1.14 1.14 2.4 2.5 2.14; SOFTMAX 1.5 1.14 2.3; SPACE_TO_DEPTH 1.5 1.14;
SPLIT 1.5 1.14 1.14 2.3; SPLIT_V 1.13.1 2.3; SQRT 1.10; SQUARED_DIFFERENCE 1.13.1 2.5;
SQUEEZE 1.6 2.5; STRIDED_SLICE 1.6 1.14 2.1 2.2 2.5 2.6 2.14 2.14; SUB 1.6 1.14 2.3 2.4 2.4;
SUM 1.10 1.15; TANH 1.14 1.14 2.3; TILE 1.10.1 2.2 2.8; TOPK_V2 1.7 1.14 2.13;
TRANSPOSE 1.6 1.14 1.15 2.3 2.4 2.12; TRANSPOSE_CONV 1.9 2.2 2.3 2.13 2.15;
UNIDIRECTIONAL_SEQUENCE_LSTM 1.13.1 1.14 2.3 2.12; UNPACK 1.11 1.14 2.2 2.3; WHERE 1.14 2.8;
WHILE 1.15; ZEROS_LIKE 1.12
"""
"""Of each operator that is written the runtimes that came with its versions, from the first on."""

_RUNTIMES: Final = {op: found for op, *found in map(str.split, _FACTS.split(";"))}


def least_runtime(versions: Iterable[tuple[str, int]]) -> str:
    """Return the first runtime that has operators in some versions, as three numbers."""
    found = [[1, 5]]
    for op, version in versions:
        for text in _RUNTIMES.get(op, [])[version - 1 : version]:
            found.append([int(part) for part in text.split(".")])
    return ".".join(map(str, [*max(found), 0][:3]))
