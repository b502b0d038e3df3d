"""Which tensors of a step carry a `checkpoint_name`: the `names.json` sidecar of a dump.

XLA never sees the names (`checkpoint_name` lowers to nothing), so a dump alone cannot say which
buffer is `query_proj`. The traced step can: it still holds each name, with shape and source line.

    names(step, state, batch).write("names.json")
"""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from importlib import metadata

from . import tracing

SCHEMA = "spillway.names/1"
NOTE = "global shapes, before partitioning; layers = product of enclosing scan lengths"


def collect_names(jaxpr) -> list[dict]:
    """Every distinct use of `checkpoint_name` in a jaxpr, in the order of its equations.

    `jaxpr` is a `Jaxpr`, a `ClosedJaxpr` or anything shaped like one. Each entry holds
      name    what the user called it
      shape   of the whole tensor over all devices, one layer's worth
      dtype   as JAX writes it, for example "bfloat16"
      source  "file.py:12", relative where possible (see `source_line`)
      path    the loops around it, outermost first: "" outside, "scan", "scan/scan", ...
      layers  how many times a step makes it: the product of those scans' lengths
    A step under `jax.grad` holds a name twice, in forward and again where backward recomputes
    it. Entries that agree in everything are therefore one entry.
    """
    found: list[dict] = []
    _walk(getattr(jaxpr, "jaxpr", jaxpr), (), 1, found)
    return found


def _walk(jaxpr, path: tuple[str, ...], layers: int, found: list[dict]) -> None:
    for equation in jaxpr.eqns:
        kind = equation.primitive.name
        if kind == "name":
            tensor = equation.outvars[0].aval
            entry = {
                "name": equation.params["name"],
                "shape": list(tensor.shape),
                "dtype": str(tensor.dtype),
                "source": source_line(equation),
                "path": "/".join(path),
                "layers": layers,
            }
            if entry not in found:
                found.append(entry)
        inner_path, inner_layers = path, layers
        if kind in ("scan", "while"):
            inner_path = (*path, kind)
            inner_layers = layers * equation.params.get("length", 1)
        for inner in tracing.inner_jaxprs(equation.params):
            _walk(inner, inner_path, inner_layers, found)


def source_line(equation) -> str:
    """"file:line" of the user's code that made the equation, or "" where JAX does not know.

    The file is named as the HLO dump names it, with JAX's own
    `jax_hlo_source_file_canonicalization_regex`, and then by `portable_path`.
    """
    info = getattr(equation, "source_info", None)
    if getattr(info, "traceback", None) is None:
        return ""
    import jax
    from jax._src import source_info_util

    frame = source_info_util.user_frame(info.traceback)
    if frame is None:
        return ""
    file = frame.file_name
    pattern = jax.config.jax_hlo_source_file_canonicalization_regex
    if pattern:
        file = re.sub(pattern, "", file)
    return f"{portable_path(file)}:{frame.start_line}"


def portable_path(file: str) -> str:
    """The end of a path that says which file it is without a machine's folders.

    What an installed package calls it, or else its path from the working directory, or else the
    file with its last folder. Each is the end of the path, which `spillway` compares with.
    """
    file = file.split("site-packages/")[-1]
    if not os.path.isabs(file):
        return file
    here = os.getcwd().rstrip(os.sep) + os.sep
    if here != os.sep and file.startswith(here):
        return file.removeprefix(here)
    return os.sep.join(file.split(os.sep)[-2:]).lstrip(os.sep)


class Sidecar(dict):
    """The sidecar as plain data, schema spillway.names/1; printed, a table of the names.

    `devices` is what one step is partitioned over, `jaxlib` the version that compiles it: with it
    `spillway inspect` says what is known of that version. `names` are `collect_names`'s entries.
    """

    def write(self, path: str | os.PathLike) -> None:
        """Writes what `spillway ... --names` reads."""
        with open(path, "w", encoding="utf-8") as out:
            json.dump(self, out, indent=1)
            out.write("\n")

    def __repr__(self) -> str:
        lines = [f"{len(self['names'])} checkpoint names, {self['devices']} device(s)"]
        width = max((len(entry["name"]) for entry in self["names"]), default=0)
        for entry in self["names"]:
            shape = f"{entry['dtype']}[{','.join(map(str, entry['shape']))}]"
            times = f" x {entry['layers']}" if entry["layers"] > 1 else ""
            lines.append(f"  {entry['name']:<{width}}  {shape}{times}  {entry['source']}".rstrip())
        return "\n".join(lines)


def make_sidecar(names: list[dict], devices: int, jaxlib: str = "") -> Sidecar:
    """The sidecar of `names` for a step over `devices`, compiled by a version of jaxlib."""
    version = {"jaxlib": jaxlib} if jaxlib else {}
    return Sidecar(schema=SCHEMA, note=NOTE, devices=devices, **version, names=names)


def names(step, *args, kwargs: Mapping | None = None, devices: int | None = None) -> Sidecar:
    """The checkpoint names of a step. Needs JAX; traces the step, compiles nothing.

    step     a function, a jitted one, or one that is traced already (`jax.stages.Traced`)
    args     its arguments: arrays, or `jax.ShapeDtypeStruct`s, whose shapes are global ones
    kwargs   its keyword arguments, if any
    devices  what the step is partitioned over; None finds it in the shardings, 1 without any

    Returns a `Sidecar`, a dict with a `write(path)`. What JAX raises while tracing passes through.
    """
    traced = tracing.trace(step, args, kwargs)
    count = devices or tracing.device_count(traced, (args, kwargs))
    return make_sidecar(collect_names(traced.jaxpr), count, jaxlib_version())


def listed_names(names: Mapping | Iterable) -> list[str]:
    """The names themselves, each once, of a `Sidecar`, its entries, or a list of names."""
    entries = names["names"] if isinstance(names, Mapping) else names
    texts = (entry["name"] if isinstance(entry, Mapping) else entry for entry in entries)
    return list(dict.fromkeys(texts))


def jaxlib_version() -> str:
    """The installed jaxlib's version, "" where there is none."""
    try:
        return metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        return ""


def bytes_per_device(entry: dict, devices: int) -> int:
    """Bytes of one layer of a named tensor on one device, if it is split evenly over all."""
    bits = re.search(r"\d+", entry["dtype"])  # "bfloat16", "int4"; "bool" says none and takes 8
    return math.prod(entry["shape"]) * int(bits[0] if bits else 8) // 8 // devices
