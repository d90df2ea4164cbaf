"""Operators of the domain ai.onnx.ml: linear models, support vectors, trees, and what prepares.

They are read only: what they mean is said in Relay, and written as ONNX's own operators. Where
the text of ONNX leaves something open, the meaning is that of ONNX Runtime; where ONNX Runtime
and ONNX's reference implementation contradict each other, the model is refused.
"""
