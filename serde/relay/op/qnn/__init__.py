"""Arithmetic of quantised tensors, exact in integers.

A quantised number q stands for (q - zero_point) * scale. Scales are float32 and zero
points int32, one for the whole tensor or one for each index of an axis.
"""
