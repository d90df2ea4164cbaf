# /// script
# requires-python = "3.11"
# dependencies = [
#     "torch==2.13.0", "transformers==5.23.0", "onnx==1.23.2", "onnxscript==0.7.2",
#     "onnxruntime==1.32.0",
# ]
# ///
"""transformers.exporters: those of the package itself, for any prompt and step, fused for ORT."""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from transformers.exporters.configs import OnnxConfig
from transformers.exporters.exporter_onnx import OnnxExporter

model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
# A mask of ones alone would be left out of the graph.
ids = torch.randint(4, 200, (2, 7))
mask = torch.ones_like(ids)
mask[1, :2] = 0
inputs = {"input_ids": ids, "attention_mask": mask}
target = Path(sys.argv[2])
target.mkdir()
config = OnnxConfig(dynamic=True, ort_fusions="cpu")
exported = OnnxExporter().export_for_generation(model, inputs, config, multi_token_decode=True)
exported.save_pretrained(target)
