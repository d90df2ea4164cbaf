# /// script
# requires-python = "3.11"
# dependencies = ["onnx2tf"]
# ///
"""onnx2tf: writes files of float32 and float16."""

import shutil
import sys
from pathlib import Path

import onnx2tf

folder = Path(sys.argv[2] + "_folder")
onnx2tf.convert(sys.argv[1], output_folder_path=str(folder), non_verbose=True)
shutil.move(next(folder.glob("*_float32.tflite")), sys.argv[2])
