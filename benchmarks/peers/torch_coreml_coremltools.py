# /// script
# requires-python = "3.11"
# dependencies = ["torch==2.13.0", "coremltools==9.0", "numpy<2.4"]
# ///
"""coremltools: from an exported program, in float32."""

import sys

import coremltools
import torch

program = torch.export.load(sys.argv[1]).run_decompositions({})
coremltools.convert(
    program,
    minimum_deployment_target=coremltools.target.iOS15,
    compute_precision=coremltools.precision.FLOAT32,
    skip_model_load=True,
).save(sys.argv[2])
