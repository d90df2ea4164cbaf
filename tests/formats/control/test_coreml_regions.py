"""Pooling of regions in ML Programs, judged by MXNet."""

from __future__ import annotations

import numpy as np
import pytest
from support.mil_executor import execute

import serde
from serde.compat import import_mxnet
from serde.coreml.model import operations

REGIONS = np.float32(
    [[0, 0, 0, 17, 11], [1, 2.5, 3, 9, 14], [0, 20, 20, 40, 44], [1, 8, 8, 6, 6], [0, -3, 1, 4, 4]]
)


@pytest.mark.wide
@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("count", [len(REGIONS), "N"], ids=["fixed", "open"])
def test_regions_are_pooled_one_after_the_other(
    count: int | str, scale: float, target: str
) -> None:
    mx = import_mxnet()
    data, rois = mx.sym.var("data"), mx.sym.var("rois")
    symbol = mx.sym.ROIPooling(data, rois, pooled_size=(3, 4), spatial_scale=scale)
    native = serde.export_model(
        symbol,
        {},
        format="coreml",
        compute_precision="float32",
        minimum_deployment_target=target,
        input_shapes={"data": (2, 3, 12, 18), "rois": (count, 5)},
    )
    assert [op.type for op in operations(native.get_spec())].count("while_loop") == 1
    image = np.random.default_rng(5).normal(size=(2, 3, 12, 18)).astype(np.float32)
    expected = mx.nd.ROIPooling(
        mx.nd.array(image), mx.nd.array(REGIONS), pooled_size=(3, 4), spatial_scale=scale
    )
    (found,) = execute(native, {"data": image, "rois": REGIONS})
    np.testing.assert_array_equal(found, expected.asnumpy())
