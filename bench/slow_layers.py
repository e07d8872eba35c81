"""Reasons why layers are slower than in another library, one for each, as a person found them."""

import re

#: (pattern of a layer's name, reason). The first pattern that matches the whole name counts.
REASONS = (
    (r"resnext50_3.*", "8 channels per group: at least 30 % of the run time goes into copying windows of the input"),
    (
        r"resnext50_4_stride2",
        "16 channels per group, stride 2: sums of 16 to 64 terms are too short for the register tile",
    ),
    (
        r"deeplab_aspp.*",
        "dilation 12: the filter (19 MB) and a part of the input for each tap are copied, for few positions of y",
    ),
    (
        r"mobilenet_.*|mamba_conv1d",
        "bound by memory: few products for each byte, and the input is read more slowly than by a plain copy",
    ),
    (r"unet_classes", "two channels of y: bound by memory, because x is read and transposed for few products"),
    (r"unet_down1_1", "three channels of x: bound by memory; the speedup differs from run to run"),
    (r"fcn8s_up8", "16×16 taps: a window of the input holds four of 21 channels, so the input is read six times"),
    (r"fcn32s", "64×64 taps: a window of the input holds one of 21 channels, so most of each cache line is unused"),
    (r"dcgan_g_code|unet3d_classes|rows_of_8_taps_50", "a call of less than 0.3 ms: fixed costs dominate"),
)
NOT_KNOWN = "not known"


def reason(layer):
    """The reason why a layer is slow."""
    return next((text for pattern, text in REASONS if re.fullmatch(pattern, layer)), NOT_KNOWN)
