"""What docs/onnx-files.md takes for granted: a checkpoint."""

from support.page_nets import write_checkpoint

write_checkpoint("net")
