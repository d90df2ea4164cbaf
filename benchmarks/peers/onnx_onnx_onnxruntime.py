# /// script
# requires-python = "3.11"
# dependencies = ["onnxruntime==1.32.0"]
# ///
"""ONNX Runtime, basic optimiser: a session that writes the graph which it would run."""

import sys

import onnxruntime

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = sys.argv[2]
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
