"""ONNX: written at versions 11 to 28 of the default operator set.

The IR version is the lowest that carries the operator set, so that older
runtimes accept the file.
"""
