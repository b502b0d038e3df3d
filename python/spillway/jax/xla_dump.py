"""XLA's dump of one program: the flags that make it, and the numbers read back from it.

Reading needs neither JAX nor XLA. The totals here come from XLA's own text, so that what Spillway
computes from the instructions can be compared with them.
"""

import gzip
import re
import shlex
from pathlib import Path

from .errors import WRONG_INPUT, UserError

# A live run tunes its kernels by timing them; without a GPU there is nothing to time.
NO_AUTOTUNING = ("--xla_gpu_autotune_level=0", "--xla_gpu_shard_autotuning=false")

# XLA's memory space numbers, as buffer assignment colours: host memory is 5, the others are HBM.
HOST_COLOR = 5

# What a packed dump keeps: the program, its allocations, their sums, and the streams.
LEAN = (
    "after_optimizations.txt",
    "after_optimizations-buffer-assignment.txt",
    "after_optimizations-memory-usage-report.txt",
    "thunk_sequence.txt",
)
# The same program as a protobuf, and what the latency-hiding scheduler was given and chose.
FULL = (*LEAN, "after_optimizations.hlo.pb", ".schedule.txt")
PACKINGS = {"lean": LEAN, "full": FULL}


def compile_flags(extra: str = "", keep_xla_remat: bool = False) -> list[str]:
    """The flags that decide what XLA compiles, `extra` last because the last one wins.

    Unless `keep_xla_remat`, XLA's rematerialisation pass is off. It takes host buffers for HBM,
    finds too little memory, and recomputes work that no policy asked for.

    Raises UserError if `extra` holds anything but words that start with "--".
    """
    try:
        words = shlex.split(extra)
    except ValueError as error:
        raise UserError(f"the XLA flags cannot be read: {error}") from None
    for word in words:
        if not word.startswith("--"):
            raise UserError(f"'{word}' is no XLA flag: one looks like --xla_name=value")

    disable = "--xla_disable_hlo_passes="
    disabled = [name for word in words if word.startswith(disable)
                for name in word.removeprefix(disable).split(",")]  # fmt: skip
    if not keep_xla_remat and "rematerialization" not in disabled:
        disabled.append("rematerialization")
    flags = [*NO_AUTOTUNING, *(word for word in words if not word.startswith(disable))]
    return flags + ([disable + ",".join(disabled)] if disabled else [])


def dump_flags(folder: Path, proto: bool = False) -> list[str]:
    """The flags that write a dump of what is compiled into a folder, if `proto` as .hlo.pb too."""
    return [
        f"--xla_dump_to={folder}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_latency_hiding_schedule",
        *(["--xla_dump_hlo_as_proto"] if proto else []),
    ]


def compiler_options(flags: list[str]) -> dict[str, str | bool]:
    """The flags as `compiler_options` of one compile, which need no restart as XLA_FLAGS does.

    A flag without a value is switched on. XLA takes true and false for a flag here, and texts for
    everything else.
    """
    words = {"true": True, "false": False}
    options: dict[str, str | bool] = {}
    for flag in flags:
        name, equals, value = flag.removeprefix("--").partition("=")
        options[name] = words.get(value.lower(), value) if equals else True
    return options


def find_file(folder: Path, suffix: str) -> Path:
    """The one file of a dump that ends in `suffix`, plain or gzipped."""
    found = sorted(folder.glob(f"*{suffix}")) + sorted(folder.glob(f"*{suffix}.gz"))
    if len(found) != 1:
        what = ", ".join(path.name for path in found) or "none"
        raise UserError(f"{folder} should hold one file *{suffix}, and holds {what}", WRONG_INPUT)
    return found[0]


def read_text(path: Path) -> str:
    """A text file, gunzipped if it begins as a gzip file does."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")


def allocated_bytes(buffer_assignment: str) -> dict[int, int]:
    """Colour -> sum of its allocations in bytes, from the text of `*buffer-assignment.txt`.

    A line is `allocation 3: size 512, color 5, ...`; the colour is left out when it is 0.
    """
    totals: dict[int, int] = {}
    lines = re.finditer(
        r"^allocation \d+: size (\d+),(?: color (\d+),)?", buffer_assignment, re.MULTILINE
    )
    for size, color in (line.groups() for line in lines):
        totals[int(color or 0)] = totals.get(int(color or 0), 0) + int(size)
    return totals


def reported_bytes(memory_usage_report: str) -> dict[int, int]:
    """Colour -> "Total bytes" from the text of `*memory-usage-report.txt`."""
    sections = re.findall(r"\(color=(\d+)\)\nTotal bytes: (\d+)", memory_usage_report)
    return {int(color): int(total) for color, total in sections}


def allocation_summary(folder: Path) -> dict[str, int]:
    """What one device must provide: `device_bytes` and `host_bytes`, sums of all allocations.

    Read twice, from the assignment and from XLA's report. Raises UserError if the two disagree.
    """
    totals = allocated_bytes(read_text(find_file(folder, "buffer-assignment.txt")))
    reported = reported_bytes(read_text(find_file(folder, "memory-usage-report.txt")))
    if totals != reported:
        raise UserError(
            f"{folder}: the allocations sum to {totals} by colour, but XLA reports {reported}",
            WRONG_INPUT,
        )
    host = totals.pop(HOST_COLOR, 0)
    return {"device_bytes": sum(totals.values()), "host_bytes": host}


def count_remat_clones(hlo: str) -> int:
    """Instructions that XLA's rematerialisation pass cloned: their names end in `.remat`."""
    return len(re.findall(r"^\s*(?:ROOT )?%\S+\.remat\d*(?:\.\d+)? = ", hlo, re.MULTILINE))


def pack(folder: Path, packing: str) -> None:
    """Leaves in a fresh dump only the files of a packing ("lean", "full"), gzipped.

    The counter that XLA puts before the module's name goes too, and the gzip files hold neither
    name nor time: the same program gives the same bytes. Raises UserError, before anything is
    removed, if a file is missing.
    """
    wanted = [find_file(folder, suffix) for suffix in PACKINGS[packing]]
    for path in sorted(folder.iterdir()):
        if path in wanted:
            name = re.sub(r"^module_\d+\.", "", path.name)
            packed = gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
            (folder / f"{name}.gz").write_bytes(packed)
        path.unlink()
