"""What docs/start.md takes for granted: a checkpoint, its labels, models, a block and images."""

from pathlib import Path

import numpy as np
from support.page_nets import draw_params, write_checkpoint, write_labels

import serde
from serde.compat import import_mxnet

mx = import_mxnet()
sym = write_checkpoint("resnet50")
params = draw_params(sym)
write_labels()
images = np.random.default_rng(3).normal(size=(2, 3, 224, 224)).astype(np.float32)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.GlobalAvgPool2D(), mx.gluon.nn.Dense(4))
net.initialize()
net(mx.nd.array(images))
for folder in ("models", "photos"):
    Path(folder).mkdir()
serde.convert("resnet50-symbol.json", "models/a.onnx", input_shapes={"data": (1, 3, 224, 224)})
np.save("photos/0.npy", images[:1])
