"""What docs/mxnet-files.md takes for granted: checkpoints, one of them Gluon's ResNet-50."""

import numpy as np
from support.page_nets import write_checkpoint

from serde.compat import import_mxnet

mx = import_mxnet()
# A machine without a graphics card runs the same lines.
mx.gpu = mx.cpu
write_checkpoint("m")
write_checkpoint("net")
net = mx.gluon.model_zoo.vision.resnet50_v1()
net.initialize()
net(mx.nd.array(np.zeros((1, 3, 224, 224), np.float32)))
net.save_parameters("resnet50.params")
