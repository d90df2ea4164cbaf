"""Recurrent Keras layers as coremltools writes them, with what TensorFlow gives for them.

Run ``make_keras.py keras.zip`` where TensorFlow 2.12 and coremltools 9.0 are installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile

import coremltools as ct
import numpy as np
import tensorflow as tf

layers = tf.keras.layers

TIMES, BATCH = ct.RangeDim(1, 12, default=5), ct.RangeDim(1, 4, default=1)
ROWS = np.random.RandomState(1).standard_normal((3, 6, 3)).astype(np.float32)
TOKENS = np.array([[3, 9, 1, 4, 4, 0, 0]], np.int32)


def sequence(*parts, shape, dtype=None):
    return tf.keras.Sequential([layers.Input(shape=shape, dtype=dtype), *parts])


NETS = {
    "last": (sequence(layers.LSTM(4), layers.Dense(2), shape=(6, 3)), (1, 6, 3), ROWS[:1]),
    "times": (
        sequence(layers.LSTM(4, return_sequences=True), layers.Dense(2), shape=(None, 3)),
        (1, TIMES, 3),
        ROWS[:1],
    ),
    "batch": (sequence(layers.LSTM(4, return_sequences=True), shape=(6, 3)), (BATCH, 6, 3), ROWS),
    "both": (
        sequence(layers.Bidirectional(layers.GRU(4, return_sequences=True)), shape=(None, 3)),
        (BATCH, TIMES, 3),
        ROWS,
    ),
    "masked": (
        sequence(
            layers.Embedding(10, 3, mask_zero=True),
            layers.LSTM(4, return_sequences=True),
            shape=(None,),
            dtype="int32",
        ),
        (1, TIMES),
        TOKENS,
    ),
}


def build(path):
    with tempfile.TemporaryDirectory() as root:
        arrays = {}
        for number, (name, (net, shape, x)) in enumerate(NETS.items()):
            draws = np.random.RandomState(number)
            net.set_weights([draws.standard_normal(each.shape) / 2 for each in net.get_weights()])
            arrays[name], arrays[f"{name}.0"] = x, net(x).numpy()
            given = ct.TensorType(name=net.inputs[0].name, shape=shape, dtype=x.dtype)
            model = ct.convert(
                net,
                source="tensorflow",
                convert_to="mlprogram",
                compute_precision=ct.precision.FLOAT32,
                inputs=[given],
            )
            model.save(os.path.join(root, f"{name}.mlpackage"))
        np.savez_compressed(os.path.join(root, "expected.npz"), **arrays)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for folder, _, names in sorted(os.walk(root)):
                for name in sorted(names):
                    whole = os.path.join(folder, name)
                    archive.write(whole, os.path.relpath(whole, root))


if __name__ == "__main__":
    build(sys.argv[1])
