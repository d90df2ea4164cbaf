"""What docs/coreml-files.md takes for granted: packages, one of a detector, and a checkpoint."""

import runpy
from pathlib import Path

from support.page_nets import draw_params, write_checkpoint
from support.pages import ROOT

import serde

sym = write_checkpoint("m")
params = draw_params(sym)
shapes = {"data": (1, 3, 224, 224)}
serde.convert("m-symbol.json", "net.mlpackage", input_shapes=shapes)
pipelines = runpy.run_path(str(ROOT / "tests" / "formats" / "files" / "test_coreml_pipelines.py"))
pipelines["detection"](Path("yolo.mlpackage"))
