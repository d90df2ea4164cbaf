# /// script
# requires-python = "3.11"
# dependencies = [
#     "torch==2.13.0", "optimum-onnx==0.1.0", "transformers==4.57.6", "onnxruntime==1.32.0",
# ]
# ///
"""optimum: ``optimum-cli export onnx``, with a config as transformers 4 writes it."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.pop(0)  # This file is called as the package is.
from optimum.exporters.onnx import main_export

with tempfile.TemporaryDirectory() as place:
    folder = Path(place, "source")
    shutil.copytree(sys.argv[1], folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters", None) or {}
    config["rope_scaling"] = None
    if "rope_theta" in rope:
        config["rope_theta"] = rope["rope_theta"]
    elif rope:  # One for each kind of layer.
        config["rope_theta"] = rope["full_attention"]["rope_theta"]
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    path.write_text(json.dumps(config))
    main_export(str(folder), sys.argv[2], task="text-generation-with-past", do_validation=False)
