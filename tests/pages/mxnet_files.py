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


class Language(mx.gluon.HybridBlock):
    """A language model of two layers, which takes its states and returns them."""

    def __init__(self):
        super().__init__(prefix="lm_")
        with self.name_scope():
            self.embed = mx.gluon.nn.Embedding(50, 64)
            self.lstm = mx.gluon.rnn.LSTM(200, num_layers=2)
            self.words = mx.gluon.nn.Dense(50, flatten=False)

    def hybrid_forward(self, _f, data, hidden, cell):
        found, states = self.lstm(self.embed(data), [hidden, cell])
        return self.words(found), *states


language = Language()
language.initialize(mx.init.Normal(0.3))
language.hybridize()
language(mx.nd.ones((3, 2)), mx.nd.zeros((2, 2, 200)), mx.nd.zeros((2, 2, 200)))
language.export("lm")
