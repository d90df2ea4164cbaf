"""ONNX as a target of Relay: what a toolchain takes, the parts that go to it, and their run."""
