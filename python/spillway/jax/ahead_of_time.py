"""An XLA dump of a step, compiled for a GPU that is not there, and its names beside it."""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import aot, tracing, xla_dump
from .errors import WRONG_INPUT, UserError
from .sidecar import Sidecar, collect_names, jaxlib_version, make_sidecar, source_line
from .sizes import size_text
from .target import Gpu, find_profile, memory_size_for_fraction, read_profile, target_text

NAMES_FILE = "names.json"


@dataclass(frozen=True)
class Dump:
    """What `dump` wrote, and XLA's own numbers for it. Bytes are those of one device."""

    folder: Path  # what `spillway` takes as PROGRAM
    names: Sidecar  # also in `names_file`
    gpu: Gpu
    devices: int
    memory_bytes: int  # what XLA was told one GPU has, so that the memory fraction holds
    xla_flags: list[str]  # those that decide the program
    memory_analysis: dict[str, int]  # XLA's CompiledMemoryStats: "temp_size_in_bytes", ...
    seconds: float  # that XLA took

    @property
    def names_file(self) -> Path:
        """What `spillway ... --names` takes."""
        return self.folder / NAMES_FILE

    def __repr__(self) -> str:
        size = {name: size_text(value) for name, value in self.memory_analysis.items()}
        return (
            f"compiled for {self.devices} x {self.gpu.xla_name} in {self.seconds:.1f} s: "
            f"{self.folder}\n"
            f"  HBM, as XLA counts: arguments {size['argument_size_in_bytes']}, temporaries "
            f"{size['temp_size_in_bytes']}\n"
            f"  host: arguments {size['host_argument_size_in_bytes']}, temporaries "
            f"{size['host_temp_size_in_bytes']}\n"
            f"  {len(self.names['names'])} checkpoint names in {NAMES_FILE}"
        )


def dump(
    step,
    *args,
    folder: str | os.PathLike,
    target: str | os.PathLike = "gb200",
    devices: int | None = None,
    kwargs: Mapping | None = None,
    save_all: bool = False,
    mem_fraction: float = 0.75,
    xla_flags: str = "",
    keep_xla_remat: bool = False,
    proto: bool = False,
) -> Dump:
    """Compiles a step for a GPU that this machine need not have, and dumps what XLA decided.

    Needs JAX with its CUDA plugin. The step is not run, and it may be far too large to run.

    step, args, kwargs  as for `names`; shapes are enough, and are global ones. Shardings may be
                    over any mesh: an `AbstractMesh` needs no devices and keeps `memory_kind`
    folder          for the dump, new or empty; `names.json` is written into it too
    target          the GPU: an id such as "gb200", or a hardware profile, a YAML file
    devices         how many GPUs share the step; None: as many as its shardings say. They are one
                    host's, one NVLink domain
    save_all        keep every named tensor on the device, whatever the step's own policies say.
                    From such a dump `spillway` derives every other policy
    mem_fraction    share of the GPU's memory that a live run gives XLA, its setting
                    XLA_PYTHON_CLIENT_MEM_FRACTION; the scheduler works against the same limit here
    xla_flags       more flags, as in XLA_FLAGS: "--xla_a=1 --xla_b=false". Those in the variable
                    count too, if it was set before JAX was first used
    keep_xla_remat  leave XLA's own rematerialisation on, which clones work that no policy asked for
    proto           dump the program as .hlo.pb too

    Raises UserError for a folder in use, an unknown target, another number of devices than the step
    is for, flags that are none, a step that calls back into Python, JAX without its CUDA plugin,
    and with XLA's words if it refuses. What JAX raises while it traces passes through.
    """
    request = prepare(folder, target, devices, mem_fraction, xla_flags, keep_xla_remat)
    aot.import_compiler()
    traced, lowered = _lower(step, args, kwargs or {}, request, save_all)
    count = aot.partitions(lowered)
    check_devices(devices, count)

    with _filled(request.folder):
        start = time.perf_counter()
        flags = request.xla_flags + xla_dump.dump_flags(request.folder, proto)
        executable = _compile(lowered, aot.make_devices(request.target_text, count), flags)
        seconds = time.perf_counter() - start
        sidecar = make_sidecar(collect_names(traced.jaxpr), count, jaxlib_version())
        sidecar.write(request.folder / NAMES_FILE)
    stats = executable.get_compiled_memory_stats()
    return Dump(
        folder=request.folder,
        names=sidecar,
        gpu=request.gpu,
        devices=count,
        memory_bytes=request.memory_bytes,
        xla_flags=request.xla_flags,
        memory_analysis={
            name: getattr(stats, name) for name in sorted(dir(stats)) if name.endswith("_in_bytes")
        },
        seconds=seconds,
    )


@dataclass(frozen=True)
class Request:
    """What a dump is made with, once it has been found to make sense."""

    folder: Path
    gpu: Gpu
    memory_bytes: int
    target_text: str
    xla_flags: list[str]


def prepare(
    folder: str | os.PathLike,
    target: str | os.PathLike = "gb200",
    devices: int | None = None,
    mem_fraction: float = 0.75,
    xla_flags: str = "",
    keep_xla_remat: bool = False,
) -> Request:
    """Everything about a dump that can be wrong before JAX is asked to start. See `dump`."""
    folder = Path(folder).resolve()
    flags = xla_dump.compile_flags(xla_flags, keep_xla_remat)
    if devices is not None and devices < 1:
        raise UserError("devices must be at least 1")
    gpu = read_profile(find_profile(target))
    memory_bytes = memory_size_for_fraction(gpu.hbm_bytes, mem_fraction)
    text = target_text(gpu, memory_bytes)
    # A dump beside an older one could be taken for it.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is no empty folder: name a new one, or clear it")
    return Request(folder, gpu, memory_bytes, text, flags)


def check_devices(wanted: int | None, found: int) -> None:
    """Raises UserError, and says what to do, if the step is for another number of devices."""
    if wanted is None or wanted == found:
        return
    raise UserError(
        f"the step is for {found} device(s), not {wanted}: its arguments' shardings decide. Give "
        f"ShapeDtypeStructs a NamedSharding over a mesh of {wanted}, for example "
        f'jax.sharding.AbstractMesh(({wanted},), ("fsdp",), axis_types=(AxisType.Auto,)), which '
        "needs no devices"
    )


def check_no_callbacks(jaxpr) -> None:
    """Raises UserError if the step calls back into Python, which only a live device can."""
    found = tracing.callbacks(jaxpr)
    if found:
        lines = dict.fromkeys(f"{each.primitive.name} at {source_line(each)}" for each in found)
        raise UserError(
            f"the step calls back into Python ({', '.join(lines)}), which a GPU that is not there "
            "cannot: leave that out of the step for the dump"
        )


def _lower(step, args: tuple, kwargs: Mapping, request: Request, save_all: bool):
    """The step, traced and lowered. JAX lowers for an abstract mesh, except what asks for devices,
    as cuDNN's attention does; there compile-only devices take the mesh's place."""
    with aot.answering_for(request.gpu.compute_capability):
        traced = _trace(step, args, kwargs, save_all)
        try:
            return traced, aot.lower(traced)
        except ValueError as error:
            mesh = tracing.abstract_mesh(traced, (args, kwargs))
            if mesh is None or "require devices" not in str(error):
                raise
        with aot.concrete_mesh(mesh, request.target_text):
            traced = _trace(step, args, kwargs, save_all)
            return traced, aot.lower(traced)


def _trace(step, args: tuple, kwargs: Mapping, save_all: bool):
    with tracing.every_name_saved() if save_all else contextlib.nullcontext():
        traced = tracing.trace(step, args, kwargs)
    if save_all:
        tracing.check_every_name_saved(traced.jaxpr)
    check_no_callbacks(traced.jaxpr)
    return traced


def _compile(lowered, devices: list, flags: list[str]):
    import jax

    try:
        return aot.compile_for(devices, lowered, xla_dump.compiler_options(flags))
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f"XLA did not compile the step: {error}", WRONG_INPUT) from None


@contextlib.contextmanager
def _filled(folder: Path):
    """A folder to be filled, made if need be, and then removed again if nothing came of it."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise
