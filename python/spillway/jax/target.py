"""From a hardware profile to the text that describes a GPU to XLA (`GpuTargetConfigProto`).

XLA compiles for a GPU that is not there if it is told what the GPU is. The product's figures come
from `hw_profiles/<id>.yaml`, its generation's from `gpu_architectures`. Left out: link and fabric
speeds, which XLA has no place for.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import WRONG_INPUT, UserError
from .gpu_architectures import BY_COMPUTE_CAPABILITY, PRIMITIVE_TYPES, Architecture

# The share of `device_memory_size` that XLA's scheduler starts from when it compiles without a
# device. With a live one it takes the allocator's pool instead, the memory fraction x HBM.
# (`GetSchedulerMemoryLimit` in XLA's gpu_hlo_schedule.cc; integers there, so integers here.)
AHEAD_OF_TIME_PERCENT = 80

# The profiles of the repository, installed with this package. The variable names folders that are
# looked into first, as it does for the `spillway` binary.
PROFILES = Path(__file__).parent / "hw_profiles"
PROFILES_VARIABLE = "SPILLWAY_HW_PROFILES"

# What the compiler is told to expect on the machine. cuDNN's version decides which attention
# kernels may be called; the rest is there because XLA wants it.
DRIVER_VERSION = "13.0.0"
TOOLKIT_VERSION = "12.8.0"
CUDNN_VERSION = (9, 15, 0)

_UNITS = {
    "": 1.0,
    "kHz": 1e3, "MHz": 1e6, "GHz": 1e9,
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
    "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
    "MiB/s": 2.0**20, "GiB/s": 2.0**30, "TiB/s": 2.0**40,
}  # fmt: skip


@dataclass(frozen=True)
class Gpu:
    """The figures of one product that XLA asks for."""

    id: str
    xla_name: str  # as the driver names it: "NVIDIA GB200"
    compute_capability: str  # "10.0"
    core_count: int
    clock_ghz: float
    matrix_clock_ghz: float
    l2_bytes: int
    hbm_bytes: int
    hbm_bytes_per_second: int


def profile_folders() -> list[Path]:
    """Where ids are looked up: the folders of SPILLWAY_HW_PROFILES, then this package's own."""
    named = os.environ.get(PROFILES_VARIABLE, "").split(os.pathsep)
    return [*(Path(folder) for folder in named if folder), PROFILES]


def find_profile(name_or_path: str | os.PathLike, folders: Iterable[Path] | None = None) -> Path:
    """The profile file for `gb200`, looked up in `folders`, or for a path to a YAML file.

    `folders` are `profile_folders()` if None. Raises UserError, with the ids there are, if there
    is no such file.
    """
    name_or_path = os.fspath(name_or_path)
    folders = profile_folders() if folders is None else list(folders)
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        if not Path(name_or_path).is_file():
            raise UserError(f"there is no hardware profile {name_or_path}", WRONG_INPUT)
        return Path(name_or_path)
    for folder in folders:
        if (folder / f"{name_or_path}.yaml").is_file():
            return folder / f"{name_or_path}.yaml"
    known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
    raise UserError(
        f"there is no hardware profile '{name_or_path}' in {', '.join(map(str, folders))}; "
        + (f"there are {', '.join(known)}" if known else "there is none at all")
    )


def read_profile(path: Path) -> Gpu:
    """Reads a hardware profile. Needs PyYAML.

    Raises UserError if the file is no profile or lacks a figure, naming the file and the key.
    """
    try:
        import yaml
    except ImportError:
        raise UserError(
            "reading a hardware profile needs PyYAML: pip install PyYAML", WRONG_INPUT
        ) from None
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {error}", WRONG_INPUT) from None
    return gpu_from_profile(document, str(path))


def gpu_from_profile(document: object, where: str = "profile") -> Gpu:
    """A parsed profile (nested mappings, `device:` among them) as a `Gpu`.

    Figures are mappings whose `value` is a number with a unit, such as "2.062 GHz". A profile
    without `matrix_clock` gets its `clock`. Raises UserError; the message starts with `where`.
    """
    device = document.get("device") if isinstance(document, dict) else None
    if not isinstance(device, dict):
        raise UserError(f"{where} is no hardware profile: it has no 'device'", WRONG_INPUT)

    def text(key: str) -> str:
        if not isinstance(device.get(key), str):
            raise UserError(f"{where}: 'device.{key}' needs a text in quotes", WRONG_INPUT)
        return device[key]

    def figure(key: str, unit: str, example: str) -> float:
        entry = device.get(key)
        value = entry.get("value") if isinstance(entry, dict) else None
        number = _quantity(value, unit)
        if number is None:
            raise UserError(
                f"{where}: 'device.{key}' needs a 'value', for example \"{example}\"", WRONG_INPUT
            )
        return number

    clock = figure("clock", "Hz", "2.062 GHz")
    matrix_clock = (
        figure("matrix_clock", "Hz", "1.926 GHz") if "matrix_clock" in device else clock
    )
    return Gpu(
        id=str(document.get("id", Path(where).stem)),
        xla_name=text("xla_name"),
        compute_capability=text("compute_capability"),
        core_count=round(figure("sm_count", "", "152")),
        clock_ghz=clock / 1e9,
        matrix_clock_ghz=matrix_clock / 1e9,
        l2_bytes=round(figure("l2_capacity", "B", "135528448 B")),
        hbm_bytes=round(figure("hbm_capacity", "B", "197897748480 B")),
        hbm_bytes_per_second=round(figure("hbm_bandwidth", "B/s", "7928.064 GB/s")),
    )


def _quantity(value: object, unit: str) -> float | None:
    """"2 GHz" in the base unit (Hz, B, B/s or none); None if it is not such a quantity."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) *([A-Za-z/]*)", str(value))
    if not match or match[2] not in _UNITS:
        return None
    fits = match[2].endswith(unit) if unit else not match[2]
    if unit == "B" and match[2].endswith("/s") or not fits or float(match[1]) <= 0:
        return None
    return float(match[1]) * _UNITS[match[2]]


def memory_size_for_fraction(hbm_bytes: int, fraction: float) -> int:
    """The `device_memory_size` that gives an ahead-of-time compile the limit of a live one.

    A live JAX client hands XLA its pool, `fraction` x HBM (`XLA_PYTHON_CLIENT_MEM_FRACTION`,
    0.75 unless set). Ahead of time XLA takes 80 % of `device_memory_size`. This returns the
    smallest size whose 80 % is that pool, to the byte.
    """
    if not 0 < fraction <= 1:
        raise UserError(f"a memory fraction of {fraction:g} is not above 0 and at most 1")
    pool = int(hbm_bytes * fraction)
    return -(-pool * 100 // AHEAD_OF_TIME_PERCENT)


def target_text(gpu: Gpu, memory_bytes: int | None = None) -> str:
    """`GpuTargetConfigProto` text for `jax.experimental.topologies`.

    `memory_bytes` is the memory XLA shall believe in; the GPU's own if None. Raises UserError for
    a compute capability whose generation `gpu_architectures` does not describe.
    """
    architecture = BY_COMPUTE_CAPABILITY.get(gpu.compute_capability)
    if architecture is None:
        raise UserError(
            f"compute capability {gpu.compute_capability} of {gpu.id} is not described; "
            f"described are {', '.join(BY_COMPUTE_CAPABILITY)}",
            WRONG_INPUT,
        )
    memory = gpu.hbm_bytes if memory_bytes is None else memory_bytes
    major, minor = gpu.compute_capability.split(".")
    suffix = "a" if architecture.accelerated_features else ""
    feature = "ACCELERATED_FEATURES" if architecture.accelerated_features else "NONE"
    cudnn = ".".join(map(str, CUDNN_VERSION))
    return f"""\
gpu_device_info {{
  name: "{gpu.xla_name}"
  model_str: "sm_{gpu.compute_capability}{suffix} with {memory}B RAM, {gpu.core_count} cores"
  device_vendor: "NVIDIA Corporation"
  platform_version: "Compute Capability {gpu.compute_capability}{suffix}"
  cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {feature} }}
  core_count: {gpu.core_count}
  clock_rate_ghz: {gpu.clock_ghz:.9g}
  fpus_per_core: {architecture.fpus_per_core}
  device_memory_size: {memory}
  memory_bandwidth: {gpu.hbm_bytes_per_second}
  l2_cache_size: {gpu.l2_bytes}
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: {architecture.shared_memory_per_block_optin}
  shared_memory_per_core: {architecture.shared_memory_per_core}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: {architecture.threads_per_core}
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  device_address_bits: 64
  ecc_enabled: true
  scalar_unit_description {{
{_scalar_rates(gpu, architecture)}
  }}
  matrix_unit_description {{
{_matrix_rates(gpu, architecture)}
  }}
  device_interconnect_info {{ active_links: {architecture.nvlink_links} }}
  collective_memory_granularity: 2097152
  driver_version: "{DRIVER_VERSION}"
  runtime_version: "{TOOLKIT_VERSION}"
  compile_time_toolkit_version: "{TOOLKIT_VERSION}"
  dnn_version: "{cudnn}"
}}
platform_name: "CUDA"
dnn_version_info {{ major: {CUDNN_VERSION[0]} minor: {CUDNN_VERSION[1]} }}
device_description_str: "{gpu.xla_name}"
"""


def _scalar_rates(gpu: Gpu, architecture: Architecture) -> str:
    fpus = architecture.fpus_per_core
    per_group = {
        "int32": (architecture.int32_per_core, 1),
        "float32": (fpus, 1),
        "float64": (architecture.float64_per_core, 1),
        "float16": (fpus, architecture.scalar_float16_operations),
    }
    return "\n".join(
        _rate(key, gpu.clock_ghz, units, operations)
        for group, (units, operations) in per_group.items()
        for key in PRIMITIVE_TYPES[group]
    )


def _matrix_rates(gpu: Gpu, architecture: Architecture) -> str:
    """float64 runs at the core's clock; everything else at the clock under matrix load."""
    return "\n".join(
        _rate(
            key,
            gpu.clock_ghz if group == "float64" else gpu.matrix_clock_ghz,
            architecture.matrix_units_per_core,
            operations,
        )
        for group, operations in architecture.matrix_operations.items()
        for key in PRIMITIVE_TYPES[group]
    )


def _rate(key: int, clock_ghz: float, units: int, operations: int) -> str:
    return (
        f"    rate_infos {{ key: {key} value {{ clock_rate_ghz: {clock_ghz:.9g} "
        f"units_per_core: {units} ops_per_clock: {operations} }} }}"
    )
