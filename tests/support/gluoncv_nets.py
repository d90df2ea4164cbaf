"""The nets of gluoncv's model zoo: how each is built without a download, and what it takes.

Weights are drawn afterwards (``support.zoo``); nothing of gluoncv is copied here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]

CLASSES = ["bird", "cat", "dog"]
NOT_PRETRAINED = {"pretrained": False}
NO_BASE = {"pretrained": False, "pretrained_base": False}
CUSTOM = {"classes": CLASSES, "pretrained_base": False}

BEFORE_BOXES = {
    r"yolooutputv\d+_conv0_weight": 0.4,
    r"convpredictor\d+_conv0_weight": 1.0,
    r"rpn(head)?\d+_conv1_weight": 1.0,
    r"rpn(head)?\d+_conv2_weight": 0.2,
    r"rcnn\d+_dense0_weight": 1.0,
    r"rcnn\d+_dense1_weight": 0.2,
    r"vggatrousextractor\d+_conv0_weight": 1.0,
    r"offset_weight": 0.2,
}
"""Deviations of what is made into boxes, in whose sizes are exponentials, and into scores; of
the only detector's first layer that gets pixels and has no BatchNorm; and of offsets."""

BEFORE_PRODUCTS = {r"nonlocal\d+_conv[01]_weight": 0.05}
"""Deviations of what a softmax follows, once some 500 channels are multiplied and summed up."""

BEFORE_SPLIT_ATTENTION = {r"resnest\d*_layers\d+_conv\d*[38]_weight": 0.05}
"""Deviations of what ResNeSt's softmax over splits follows: the fourth of a block's five layers. In
front of it, a BatchNorm of averaged images enlarges what little those differ by."""


@dataclass(frozen=True)
class Recipe:
    """How a net is built, and the shapes of its inputs.

    Attributes:
        shapes: Shape of each input by name.
        options: Arguments of gluoncv's ``get_model``.
        batch: Samples to measure statistics on; 1 where the net mixes samples.
        deviations: How much layers deviate that something follows which enlarges differences, by
            expressions for the names of their weights.
    """

    shapes: Mapping[str, Shape]
    options: Mapping[str, Any] = field(default_factory=lambda: NOT_PRETRAINED)
    batch: int = 4
    deviations: Mapping[str, float] = field(default_factory=dict)


def _images(
    side: int, names: str, options: Mapping[str, Any] = NOT_PRETRAINED
) -> dict[str, Recipe]:
    recipe = Recipe({"data": (1, 3, side, side)}, options)
    return dict.fromkeys(names.split(), recipe)


def _detectors(side: int, names: str, options: Mapping[str, Any] = NO_BASE) -> dict[str, Recipe]:
    deviations = {**BEFORE_BOXES, **BEFORE_SPLIT_ATTENTION}
    recipe = Recipe({"data": (1, 3, side, side)}, options, deviations=deviations)
    return dict.fromkeys(names.split(), recipe)


def _segmentation(side: int, names: str) -> dict[str, Recipe]:
    """Nets that scale their result to a size given when they are built."""
    options = {**NO_BASE, "crop_size": side}
    recipe = Recipe({"data": (1, 3, side, side)}, options, deviations=BEFORE_SPLIT_ATTENTION)
    return dict.fromkeys(names.split(), recipe)


def _videos(frames: int, side: int, names: str) -> dict[str, Recipe]:
    shape = (1, 3, frames, side, side)
    recipe = Recipe({"data": shape}, NO_BASE, deviations=BEFORE_PRODUCTS)
    return dict.fromkeys(names.split(), recipe)


CLASSIFICATION = {
    **_images(
        32,
        "cifar_resnet20_v1 cifar_resnet20_v2 cifar_resnet56_v1 cifar_resnet56_v2 "
        "cifar_resnet110_v1 cifar_resnet110_v2 cifar_resnext29_32x4d cifar_resnext29_16x64d "
        "cifar_wideresnet16_10 cifar_wideresnet28_10 cifar_wideresnet40_8 "
        "cifar_residualattentionnet56 cifar_residualattentionnet92",
    ),
    **_images(
        64,
        "alexnet darknet53 dla34 hrnet_w18_c hrnet_w18_small_v1_c hrnet_w18_small_v2_c "
        "hrnet_w30_c hrnet_w32_c "
        "mobilenet0.25 mobilenet0.5 mobilenet0.75 mobilenet1.0 mobilenetv2_0.25 mobilenetv2_0.5 "
        "mobilenetv2_0.75 mobilenetv2_1.0 mobilenetv3_large mobilenetv3_small "
        "nasnet_4_1056 nasnet_5_1538 resnest14 resnest26 resnest50 resnest101 "
        "resnet18_v1 resnet34_v1 resnet50_v1 resnet101_v1 resnet152_v1 "
        "resnet18_v1b resnet18_v1b_0.89 resnet34_v1b resnet50_v1b resnet101_v1b resnet152_v1b "
        "resnet50_v1c resnet101_v1c resnet50_v1d resnet50_v1d_0.11 resnet50_v1d_0.37 "
        "resnet50_v1d_0.48 resnet50_v1d_0.86 resnet101_v1d resnet101_v1d_0.73 "
        "resnet101_v1d_0.76 resnet50_v1e resnet50_v1s resnet101_v1s "
        "resnet18_v2 resnet34_v2 resnet50_v2 resnet101_v2 resnet152_v2 "
        "resnext50_32x4d resnext101_32x4d se_resnet18_v1 se_resnet34_v1 se_resnet50_v1 "
        "se_resnet101_v1 se_resnet18_v2 se_resnet34_v2 se_resnet50_v2 se_resnext50_32x4d "
        "se_resnext101_32x4d shufflenet_v1 shufflenet_v2 xception xception71 "
        "vgg11 vgg13 vgg16 vgg19 vgg11_bn vgg13_bn vgg16_bn vgg19_bn",
    ),
    **_images(
        224,
        "densenet121 densenet161 densenet169 densenet201 residualattentionnet56 "
        "residualattentionnet92 squeezenet1.0 squeezenet1.1",
    ),
    **_images(224, "googlenet", NO_BASE),
    **_images(299, "inceptionv3"),
}

DETECTION = {
    **_detectors(
        128,
        "ssd_300_mobilenet0.25_voc ssd_300_mobilenet0.25_coco ssd_300_mobilenet1.0_lite_coco "
        "ssd_512_mobilenet1.0_voc ssd_512_mobilenet1.0_coco ssd_512_resnet18_v1_voc "
        "ssd_512_resnet50_v1_voc ssd_512_resnet50_v1_coco ssd_512_resnet101_v2_voc "
        "yolo3_mobilenet0.25_voc yolo3_mobilenet0.25_coco yolo3_mobilenet1.0_voc "
        "yolo3_mobilenet1.0_coco yolo3_darknet53_voc yolo3_darknet53_coco",
    ),
    **_detectors(128, "ssd_300_mobilenet0.25_custom yolo3_mobilenet0.25_custom", CUSTOM),
    **_detectors(300, "ssd_300_resnet34_v1b_voc ssd_300_vgg16_atrous_voc ssd_512_vgg16_atrous_voc"),
    **_detectors(
        160,
        "faster_rcnn_resnet50_v1b_voc faster_rcnn_resnet101_v1d_voc "
        "faster_rcnn_fpn_resnet50_v1b_coco faster_rcnn_fpn_syncbn_resnet50_v1b_coco "
        "faster_rcnn_fpn_syncbn_resnest50_coco doublehead_rcnn_resnet50_v1b_voc "
        "mask_rcnn_resnet18_v1b_coco mask_rcnn_resnet50_v1b_coco "
        "mask_rcnn_fpn_resnet18_v1b_coco mask_rcnn_fpn_resnet50_v1b_coco "
        "mask_rcnn_fpn_syncbn_resnet18_v1b_coco mask_rcnn_fpn_syncbn_mobilenet1_0_coco",
    ),
    **_detectors(160, "faster_rcnn_resnet50_v1b_custom", CUSTOM),
    **_detectors(
        128,
        "center_net_resnet18_v1b_voc center_net_resnet18_v1b_dcnv2_voc "
        "center_net_resnet18_v1b_coco center_net_resnet50_v1b_voc "
        "center_net_resnet50_v1b_dcnv2_voc center_net_dla34_voc center_net_dla34_dcnv2_voc "
        "center_net_dla34_coco center_net_mobilenetv3_small_duc_voc "
        "center_net_mobilenetv3_large_duc_voc",
    ),
}

SEGMENTATION = {
    **_segmentation(
        96,
        "fcn_resnet50_voc fcn_resnet50_ade fcn_resnet101_voc fcn_resnet101_coco "
        "psp_resnet50_ade psp_resnet101_voc psp_resnet101_citys "
        "deeplab_resnet50_ade deeplab_resnet50_citys deeplab_resnet101_voc "
        "deeplab_resnet152_voc deeplab_resnest50_ade deeplab_resnest101_ade "
        "deeplab_v3b_plus_wideresnet_citys "
        "danet_resnet50_citys danet_resnet101_citys",
    ),
    **_segmentation(128, "icnet_resnet50_citys icnet_resnet50_mhpv1"),
    **_segmentation(192, "fastscnn_citys"),
    **_images(64, "hrnet_w18_small_v1_s hrnet_w18_small_v2_s"),
}

POSE_AND_DEPTH = {
    **_images(
        64,
        "alpha_pose_resnet101_v1b_coco simple_pose_resnet18_v1b simple_pose_resnet50_v1b "
        "simple_pose_resnet50_v1d simple_pose_resnet101_v1b simple_pose_resnet101_v1d "
        "simple_pose_resnet152_v1b mobile_pose_mobilenet1.0 mobile_pose_mobilenetv2_1.0 "
        "mobile_pose_mobilenetv3_large mobile_pose_mobilenetv3_small mobile_pose_resnet18_v1b "
        "mobile_pose_resnet50_v1b",
        NO_BASE,
    ),
    **_images(64, "monodepth2_resnet18_kitti_mono_640x192", NO_BASE),
    **_images(64, "monodepth2_resnet18_kitti_stereo_640x192", NO_BASE),
    **_images(64, "monodepth2_resnet18_posenet_kitti_mono_640x192", NO_BASE),
}

SEGMENTS = 3
CLASSES_OF = {"kinetics400": 400, "sthsthv2": 174, "ucf101": 101, "hmdb51": 51}


def _segments(side: int, names: str) -> dict[str, Recipe]:
    """Temporal segment networks: nets of images that average over the segments of a video."""
    options = {**NO_BASE, "num_segments": SEGMENTS}
    return dict.fromkeys(
        names.split(), Recipe({"data": (2 * SEGMENTS, 3, side, side)}, options, batch=1)
    )


VIDEO = {
    **_segments(
        64,
        "resnet18_v1b_kinetics400 resnet34_v1b_kinetics400 resnet50_v1b_kinetics400 "
        "resnet101_v1b_kinetics400 resnet152_v1b_kinetics400 resnet18_v1b_sthsthv2 "
        "resnet34_v1b_sthsthv2 resnet50_v1b_sthsthv2 resnet101_v1b_sthsthv2 "
        "resnet152_v1b_sthsthv2 resnet50_v1b_ucf101 resnet50_v1b_hmdb51",
    ),
    **_segments(
        224,
        "vgg16_ucf101 vgg16_hmdb51 vgg16_kinetics400 vgg16_sthsthv2 inceptionv1_ucf101 "
        "inceptionv1_hmdb51 inceptionv1_kinetics400 inceptionv1_sthsthv2",
    ),
    **_segments(
        299, "inceptionv3_ucf101 inceptionv3_hmdb51 inceptionv3_kinetics400 inceptionv3_sthsthv2"
    ),
    **_videos(16, 64, "p3d_resnet50_kinetics400"),
    **_videos(16, 112, "c3d_kinetics400"),
    **_videos(
        8,
        64,
        "i3d_inceptionv1_kinetics400 i3d_resnet50_v1_kinetics400 i3d_resnet50_v1_sthsthv2 "
        "i3d_resnet101_v1_kinetics400 i3d_nl5_resnet50_v1_kinetics400 "
        "i3d_nl10_resnet50_v1_kinetics400 i3d_slow_resnet101_f16s4_kinetics700 "
        "r2plus1d_resnet18_kinetics400 r2plus1d_resnet34_kinetics400 "
        "r2plus1d_resnet50_kinetics400",
    ),
    **_videos(8, 96, "i3d_inceptionv3_kinetics400"),
    **_videos(36, 64, "slowfast_4x16_resnet50_kinetics400"),
    **_videos(40, 64, "slowfast_8x8_resnet50_kinetics400 slowfast_8x8_resnet101_kinetics400"),
}

TRACKING = {
    "siamrpn_alexnet_v2_otb15": Recipe(
        {"template": (1, 3, 127, 127), "search": (1, 3, 287, 287)}, NO_BASE, batch=1
    )
}

RECIPES: dict[str, Recipe] = {
    **CLASSIFICATION,
    **DETECTION,
    **SEGMENTATION,
    **POSE_AND_DEPTH,
    **VIDEO,
    **TRACKING,
}


@contextlib.contextmanager
def _numpy_of_its_time() -> Iterator[None]:
    """Answer ``numpy.float`` and ``numpy.int``, which gluoncv asks for while it builds nets."""
    missing = {
        name: kind for name, kind in (("float", float), ("int", int)) if name not in vars(np)
    }
    for name, kind in missing.items():
        setattr(np, name, kind)
    try:
        yield
    finally:
        for name in missing:
            delattr(np, name)


def build(name: str) -> Any:
    """The block of a net, not initialised."""
    from gluoncv.model_zoo import get_model

    with _numpy_of_its_time():
        if "num_segments" in RECIPES[name].options:
            return _segment_network(name)
        return get_model(name, **RECIPES[name].options)


def _segment_network(name: str) -> Any:
    """A net by its class; ``get_model`` would download or want weights of what it starts from."""
    from gluoncv.model_zoo.action_recognition import (
        actionrec_inceptionv1,
        actionrec_inceptionv3,
        actionrec_resnetv1b,
        actionrec_vgg16,
    )

    family, _, dataset = name.rpartition("_")
    given = {"nclass": CLASSES_OF[dataset], "pretrained_base": False, "num_segments": SEGMENTS}
    makers = {
        "vgg16": actionrec_vgg16.ActionRecVGG16,
        "inceptionv1": actionrec_inceptionv1.ActionRecInceptionV1,
        "inceptionv3": actionrec_inceptionv3.ActionRecInceptionV3,
    }
    if family in makers:
        return makers[family](**given)
    depth = int(family.removeprefix("resnet").removesuffix("_v1b"))
    return actionrec_resnetv1b.ActionRecResNetV1b(depth=depth, **given)
