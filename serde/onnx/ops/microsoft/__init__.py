"""Operators that ONNX Runtime adds in the domain com.microsoft, by category.

They are read only: what they mean is said in Relay, and written as ONNX's own operators.
"""
