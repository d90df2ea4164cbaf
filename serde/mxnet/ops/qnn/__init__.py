"""Quantised tensors: MXNet's own operators, and those of Relay spelled out for it.

The spelling is in integers, and in floats that hold them exactly. Products and convolutions run
in float64: as long as the sum of the greatest products of levels stays below 2**53, none is
rounded. The levels are bounded by dtypes and constant zero points.
"""
