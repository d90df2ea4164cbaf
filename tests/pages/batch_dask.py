"""What docs/batch-dask.md takes for granted: a folder of nets."""

from pathlib import Path

from support.batch_outcomes import CHAINS, write_net

Path("models").mkdir()
for kind in ("small", "deep", "drawn"):
    write_net(Path("models") / f"{kind}.onnx", CHAINS[kind])
