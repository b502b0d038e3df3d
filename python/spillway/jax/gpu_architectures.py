"""What XLA wants to know about a GPU that its generation decides, not the single product.

A hardware profile says how many cores a GPU has and how fast they tick; this table says what one
core does in a clock, by compute capability.

Source: the device descriptions inside XLA's CUDA 13 plugin 0.12.0.1, most of which are read from
real devices. Check: cores x 4 units x operations x 2 x matrix clock is the dense peak of the data
sheet, for example 132 x 4 x 512 x 2 x 1.8295 GHz = 989 TFLOP/s for bf16 on H100 SXM. Of 12.0
(RTX PRO 6000) the plugin describes no matrix units, so neither do we.
"""

from dataclasses import dataclass, field

# Numbers of XLA's PrimitiveType, by the group whose members run equally fast.
# 35 and 36 stand for the two 6-bit floats.
PRIMITIVE_TYPES = {
    "int32": (4, 8),
    "int8": (2, 6),
    "float64": (12,),
    "float32": (11,),
    "float16": (10, 16),
    "float8": (19, 20, 23, 24, 25, 28, 29, 33, 35, 36),
    "float4": (32,),
}


@dataclass(frozen=True)
class Architecture:
    """One generation. Sizes in bytes; "operations" are multiply-adds a clock and unit."""

    name: str
    fpus_per_core: int = 128
    int32_per_core: int = 64
    float64_per_core: int = 64
    scalar_float16_operations: int = 1
    matrix_units_per_core: int = 4
    matrix_operations: dict[str, int] = field(default_factory=dict)
    threads_per_core: int = 2048
    shared_memory_per_core: int = 233472
    shared_memory_per_block_optin: int = 232448
    accelerated_features: bool = True  # the "a" of sm_90a
    nvlink_links: int = 18


BLACKWELL = Architecture(
    name="Blackwell",
    matrix_operations={
        "int8": 2048, "float64": 16, "float32": 512, "float16": 1024, "float8": 2048,
        "float4": 4096,
    },
)

BY_COMPUTE_CAPABILITY = {
    "8.0": Architecture(
        name="Ampere",
        fpus_per_core=64,
        float64_per_core=32,
        scalar_float16_operations=2,
        matrix_operations={"int8": 512, "float64": 16, "float32": 128, "float16": 256},
        shared_memory_per_core=167936,
        shared_memory_per_block_optin=166912,
        accelerated_features=False,
        nvlink_links=12,
    ),
    "9.0": Architecture(
        name="Hopper",
        scalar_float16_operations=2,
        matrix_operations={
            "int8": 1024, "float64": 32, "float32": 256, "float16": 512, "float8": 1024,
        },
    ),
    "10.0": BLACKWELL,
    "10.3": BLACKWELL,
    "10.7": Architecture(
        name="Rubin",
        float64_per_core=32,
        matrix_operations={
            "int8": 64, "float64": 8, "float32": 512, "float16": 1024, "float8": 4096,
            "float4": 8192,
        },
        threads_per_core=1024,
        nvlink_links=36,
    ),
    "12.0": Architecture(
        name="Blackwell (workstation)",
        threads_per_core=1536,
        shared_memory_per_core=131072,
        shared_memory_per_block_optin=101376,
        accelerated_features=False,
        nvlink_links=0,
    ),
}
