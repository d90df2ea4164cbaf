"""Twelve nets as one version of coremltools writes them, and what PyTorch says that they give.

Run ``make.py build coremltools-7.2.zip`` where that coremltools is installed (5.2 to 9.0, with a
NumPy before 2) and ``make.py judge expected.npz`` where PyTorch is. Weights are the same in all
versions; those that are compressed are such that compression changes none.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile

import numpy as np

COMPRESSED = ("iOS16", "iOS18")
"""Targets of the compressed net, of which a version takes the newest that it knows."""


def draw(seed, *shape):
    """Normally distributed float32 numbers."""
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def weight(seed, *shape):
    """Weights that keep the deviation of what they are applied to."""
    return draw(seed, *shape) / np.float32(np.sqrt(np.prod(shape[1:])))


def steps(seed, rows, columns, most):
    """Whole numbers up to `most`, which each row has, times a power of two."""
    found = np.random.RandomState(seed).randint(-most, most + 1, (rows, columns))
    found[:, ::16], found[:, 1::16] = most, -most
    return (found / 2.0 ** (most.bit_length() + 1)).astype(np.float32)


def sparse(seed, rows, columns):
    """Weights of which two thirds are zero."""
    found = weight(seed, rows, columns)
    return np.where(np.random.RandomState(seed + 1).rand(rows, columns) < 2 / 3, 0, found).astype(
        np.float32
    )


IMAGE = np.random.RandomState(8).randint(0, 256, (1, 3, 12, 12)).astype(np.float32)
CONV = [weight(1, 6, 3, 3, 3), draw(2, 6), weight(3, 8, 6, 3, 3), draw(4, 8), weight(5, 10, 72)]
MOMENTS = [draw(6, 6) / 2, np.abs(draw(7, 6)) + 0.5, draw(8, 6) / 2 + 1, draw(9, 6) / 2]
BLOCK = [weight(10, 4, 3, 3, 3), weight(11, 4, 4, 3, 3), weight(12, 4, 4, 3, 3), weight(13, 5, 4)]
LSTM = [weight(14, 24, 5), weight(15, 24, 6), draw(16, 24) / 4]
GRU = [weight(17, 18, 5), weight(18, 18, 6), draw(19, 18) / 4]
ATTENTION = [weight(20 + i, 8, 8) for i in range(4)] + [weight(24, 16, 8), weight(25, 8, 16)]
DENSE = [weight(26, 6, 20), draw(27, 6)]
PACKED = [steps(28, 32, 32, 127), steps(29, 32, 32, 7), sparse(30, 32, 32)]
INPUTS = {
    "conv_float16": draw(31, 2, 3, 12, 12),
    "conv_float32": draw(31, 2, 3, 12, 12),
    "resnet": draw(32, 1, 3, 10, 10),
    "lstm": draw(33, 7, 2, 5),
    "gru": draw(34, 7, 2, 5),
    "attention": draw(35, 2, 6, 8),
    "classifier": draw(36, 1, 20),
    "image": IMAGE,
    "compressed": draw(37, 3, 32),
    "flexible": draw(38, 2, 3, 14, 12),
    "multi_output": draw(39, 2, 20),
    "network": draw(40, 3, 12, 12),
}


def mil_conv(mb, x):
    w1, b1, w2, b2, w3 = CONV
    mean, variance, gamma, beta = MOMENTS
    y = mb.conv(x=x, weight=w1, bias=b1, pad_type="same")
    y = mb.batch_norm(x=y, mean=mean, variance=variance, gamma=gamma, beta=beta)
    y = mb.max_pool(x=mb.relu(x=y), kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
    y = mb.conv(x=y, weight=w2, bias=b2, strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1])
    y = mb.reshape(x=mb.leaky_relu(x=y, alpha=0.25), shape=[2, 72])
    return mb.softmax(x=mb.linear(x=y, weight=w3), axis=-1, name="out")


def mil_resnet(mb, x):
    w1, w2, w3, w4 = BLOCK
    y = mb.relu(x=mb.conv(x=x, weight=w1, strides=[2, 2], pad_type="same"))
    z = mb.relu(x=mb.conv(x=y, weight=w2, pad_type="same"))
    y = mb.relu(x=mb.add(x=y, y=mb.conv(x=z, weight=w3, pad_type="same")))
    y = mb.reduce_mean(x=y, axes=[2, 3], keep_dims=False)
    return mb.linear(x=y, weight=w4, name="out")


def mil_lstm(mb, x):
    zero = np.zeros((2, 6), np.float32)
    w, r, b = LSTM
    found = mb.lstm(
        x=x, initial_h=zero, initial_c=zero, weight_ih=w, weight_hh=r, bias=b, output_sequence=True
    )
    return mb.identity(x=found[0], name="out")


def mil_gru(mb, x):
    w, r, b = GRU
    found = mb.gru(
        x=x,
        initial_h=np.zeros((2, 6), np.float32),
        weight_ih=w,
        weight_hh=r,
        bias=b,
        output_sequence=True,
    )
    return mb.identity(x=found[0], name="out")


def mil_attention(mb, x):
    def project(y, w):
        return mb.linear(x=y, weight=w)

    wq, wk, wv, wo, wu, wd = ATTENTION

    def heads(y):
        return mb.transpose(x=mb.reshape(x=y, shape=[2, 6, 2, 4]), perm=[0, 2, 1, 3])

    q, k, v = (heads(project(x, w)) for w in (wq, wk, wv))
    scores = mb.mul(x=mb.matmul(x=q, y=k, transpose_y=True), y=np.float32(0.5))
    y = mb.matmul(x=mb.softmax(x=scores, axis=-1), y=v)
    y = mb.reshape(x=mb.transpose(x=y, perm=[0, 2, 1, 3]), shape=[2, 6, 8])
    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    y = mb.layer_norm(
        x=mb.add(x=x, y=project(y, wo)), axes=[2], gamma=ones, beta=zeros, epsilon=1e-5
    )
    z = project(mb.gelu(x=project(y, wu), mode="EXACT"), wd)
    return mb.add(x=y, y=z, name="out")


def mil_dense(mb, x):
    w, b = DENSE
    return mb.softmax(x=mb.linear(x=x, weight=w, bias=b), axis=-1, name="out")


def mil_image(mb, x):
    return mb.relu(x=mb.conv(x=x, weight=CONV[0], bias=CONV[1], pad_type="same"), name="out")


def mil_compressed(mb, x):
    one, two, three = PACKED
    y = mb.relu(x=mb.linear(x=x, weight=one, name="eight_bits"))
    y = mb.relu(x=mb.linear(x=y, weight=two, name="palette"))
    return mb.linear(x=y, weight=three, name="sparse")


def mil_flexible(mb, x):
    y = mb.relu(x=mb.conv(x=x, weight=CONV[0], bias=CONV[1], pad_type="same"))
    y = mb.avg_pool(x=y, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid")
    return mb.reduce_max(x=y, axes=[3], keep_dims=False, name="out")


def mil_multi_output(mb, x):
    w, b = DENSE
    y = mb.linear(x=x, weight=w, bias=b)
    left, right = mb.split(x=y, num_splits=2, axis=1)
    return mb.tanh(x=left, name="left"), mb.sigmoid(x=right, name="right")


BUILDERS = {
    "conv_float16": mil_conv,
    "conv_float32": mil_conv,
    "resnet": mil_resnet,
    "lstm": mil_lstm,
    "gru": mil_gru,
    "attention": mil_attention,
    "classifier": mil_dense,
    "image": mil_image,
    "compressed": mil_compressed,
    "flexible": mil_flexible,
    "multi_output": mil_multi_output,
}


def program(ct, name):
    """A net as a program of MIL, made by hand."""
    from coremltools.converters.mil.mil import Builder, get_new_symbol

    shape = list(INPUTS[name].shape)
    if name == "flexible":
        shape[0], shape[2] = get_new_symbol(), get_new_symbol()
    more = {}
    if name == "compressed" and not before(ct, 6):
        more["opset_version"] = target(ct, name)

    @Builder.program(input_specs=[Builder.TensorSpec(shape=tuple(shape))], **more)
    def made(x):
        return BUILDERS[name](Builder, x)

    return made


def before(ct, major):
    return int(ct.__version__.split(".")[0]) < major


def target(ct, name):
    known = [each for each in COMPRESSED if hasattr(ct.target, each)]
    return getattr(ct.target, known[-1] if name == "compressed" and known else "iOS15")


def converted(ct, name):
    """A net as an ML Program."""
    more = {}
    if name == "classifier":
        labels = [f"label{i}" for i in range(6)]
        more["classifier_config"] = ct.ClassifierConfig(labels)
    if name == "image":
        more["inputs"] = [
            ct.ImageType(name="x", shape=IMAGE.shape, scale=1 / 64, bias=[-2.0, -1.5, -1.0])
        ]
    if name == "flexible":
        lengths = ct.RangeDim(1, 4), 3, ct.RangeDim(8, 32), 12
        more["inputs"] = [ct.TensorType(name="x", shape=ct.Shape(lengths))]
    half = name in ("conv_float16", "classifier", "image")
    precision = ct.precision.FLOAT16 if half else ct.precision.FLOAT32
    model = ct.convert(
        program(ct, name),
        source="milinternal",
        convert_to="mlprogram",
        compute_precision=precision,
        minimum_deployment_target=target(ct, name),
        **more,
    )
    return compressed(ct, model) if name == "compressed" else model


def compressed(ct, model):
    """The model with 8 bits, a palette and zeros left out; before coremltools 6 as it is."""
    if before(ct, 6):
        return model
    if before(ct, 7):
        from coremltools import compression_utils as tools

        def each(number):
            return lambda op: np.array_equal(op.val.val, PACKED[number])

        model = tools.affine_quantize_weights(model, "linear_symmetric", each(0))
        model = tools.palettize_weights(model, None, "unique", each(1))
        return tools.sparsify_weights(model, "threshold_based", 0.0, None, each(2))
    import coremltools.optimize.coreml as tools

    new = target(ct, "compressed").name == "iOS18"
    blocks = {"dtype": "int8", "granularity": "per_block", "block_size": 16} if new else {}
    eight = tools.OpLinearQuantizerConfig("linear_symmetric", weight_threshold=0, **blocks)
    palette = tools.OpPalettizerConfig("unique", weight_threshold=0)
    zeros = tools.OpThresholdPrunerConfig(threshold=0.0, weight_threshold=0)
    for name, config, compress in (
        ("eight_bits", eight, tools.linear_quantize_weights),
        ("palette", palette, tools.palettize_weights),
        ("sparse", zeros, tools.prune_weights),
    ):
        chosen = tools.OptimizationConfig(op_name_configs={name: config})
        model = compress(model, chosen)
    return model


def network(ct):
    """A convolutional net as a NeuralNetwork."""
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder

    w1, b1, w2, b2, _ = CONV
    mean, variance, gamma, beta = MOMENTS
    features = [("x", datatypes.Array(3, 12, 12))], [("out", datatypes.Array(8, 3, 3))]
    net = NeuralNetworkBuilder(*features)

    def conv(name, w, b, stride, border, source, target):
        net.add_convolution(
            name,
            w.shape[1],
            w.shape[0],
            3,
            3,
            stride,
            stride,
            border,
            1,
            w.transpose(2, 3, 1, 0),
            b,
            True,
            input_name=source,
            output_name=target,
        )

    conv("conv1", w1, b1, 1, "same", "x", "a")
    net.add_batchnorm("norm", 6, gamma, beta, mean, variance, input_name="a", output_name="b")
    net.add_activation("relu", "RELU", "b", "c")
    net.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "c", "d")
    conv("conv2", w2, b2, 2, "same", "d", "e")
    net.add_activation("leaky", "LEAKYRELU", "e", "out", params=[0.25])
    return ct.models.MLModel(net.spec)


def build(path):
    import coremltools as ct

    with tempfile.TemporaryDirectory() as root:
        for name in INPUTS:
            model = network(ct) if name == "network" else converted(ct, name)
            suffix = "mlmodel" if name == "network" else "mlpackage"
            model.save(os.path.join(root, f"{name}.{suffix}"))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for folder, _, names in sorted(os.walk(root)):
                for name in sorted(names):
                    whole = os.path.join(folder, name)
                    archive.write(whole, os.path.relpath(whole, root))


def judged(torch, name, x):
    """What PyTorch gives for a net, as a list of tensors."""
    f, t = torch.nn.functional, torch.from_numpy
    w1, b1, w2, b2, w3 = map(t, CONV)
    w, b = map(t, DENSE)
    x = t(x)
    if name in ("conv_float16", "conv_float32", "network"):
        y = f.conv2d(x if x.ndim == 4 else x[None], w1, b1, padding=1)
        mean, variance, gamma, beta = map(t, MOMENTS)
        y = f.max_pool2d(f.relu(f.batch_norm(y, mean, variance, gamma, beta, eps=1e-5)), 2)
        if name == "network":
            # Of "same", the lesser part of the padding comes first.
            return [f.leaky_relu(f.conv2d(f.pad(y, (0, 1, 0, 1)), w2, b2, stride=2), 0.25)[0]]
        y = f.leaky_relu(f.conv2d(y, w2, b2, stride=2, padding=1), 0.25)
        return [f.softmax(y.reshape(2, 72) @ w3.T, -1)]
    if name == "resnet":
        k1, k2, k3, k4 = map(t, BLOCK)
        y = f.relu(f.conv2d(f.pad(x, (0, 1, 0, 1)), k1, stride=2))
        z = f.conv2d(f.relu(f.conv2d(y, k2, padding=1)), k3, padding=1)
        return [f.relu(y + z).mean((2, 3)) @ k4.T]
    if name == "lstm":
        return [lstm(torch, x)]
    if name == "gru":
        return [gru(torch, x)]
    if name == "attention":
        wq, wk, wv, wo, wu, wd = map(t, ATTENTION)
        q, k, v = ((x @ each.T).reshape(2, 6, 2, 4).transpose(1, 2) for each in (wq, wk, wv))
        y = f.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 6, 8)
        y = f.layer_norm(x + y @ wo.T, (8,), eps=1e-5)
        return [y + f.gelu(y @ wu.T) @ wd.T]
    if name == "classifier":
        return [f.softmax(x @ w.T + b, -1)]
    if name == "image":
        bias = torch.tensor([-2.0, -1.5, -1.0]).reshape(3, 1, 1)
        return [f.relu(f.conv2d(x / 64 + bias, w1, b1, padding=1))]
    if name == "compressed":
        one, two, three = map(t, PACKED)
        return [f.relu(f.relu(x @ one.T) @ two.T) @ three.T]
    if name == "flexible":
        return [f.avg_pool2d(f.relu(f.conv2d(x, w1, b1, padding=1)), 2).amax(3)]
    left, right = (x @ w.T + b).split(3, 1)
    return [torch.tanh(left), torch.sigmoid(right)]


def lstm(torch, x):
    """PyTorch's own; of the four gates MIL has the candidate last, PyTorch third."""
    w, r, b = (np.concatenate([np.split(each, 4)[i] for i in (0, 1, 3, 2)]) for each in LSTM)
    given = {"weight_ih": w, "weight_hh": r, "bias_ih": b, "bias_hh": np.zeros_like(b)}
    net = torch.nn.LSTM(5, 6)
    with torch.no_grad():
        for name, value in given.items():
            getattr(net, f"{name}_l0").copy_(torch.from_numpy(value))
        return net(x)[0]


def gru(torch, x):
    """Step by step: MIL resets the state before its product, PyTorch's own GRU after it."""
    (wr, wo, wz), (rr, ro, rz), (br, bo, bz) = (
        [torch.from_numpy(part) for part in np.split(each, 3)] for each in GRU
    )
    h, rows = torch.zeros(2, 6), []
    for row in x:
        reset = torch.sigmoid(row @ wr.T + h @ rr.T + br)
        update = torch.sigmoid(row @ wz.T + h @ rz.T + bz)
        output = torch.tanh(row @ wo.T + (reset * h) @ ro.T + bo)
        h = (1 - update) * output + update * h
        rows.append(h)
    return torch.stack(rows)


def judge(path):
    import torch

    found = {}
    for name, x in INPUTS.items():
        found[name] = x
        for i, each in enumerate(judged(torch, name, x)):
            found[f"{name}.{i}"] = each.detach().numpy()
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    {"build": build, "judge": judge}[sys.argv[1]](sys.argv[2])
