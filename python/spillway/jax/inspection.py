"""What `spillway inspect` says of a step that was compiled here."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import WRONG_INPUT, UserError
from .sidecar import jaxlib_version

VARIABLE = "SPILLWAY"
GIB = 2**30


class Inspection(dict):
    """The answer of `spillway inspect --json` (schema spillway.inspect/1); printed, a summary.

    `memory` holds bytes of one device, `residuals` what the forward loop saves for backward, layer
    by layer, `transfers` what a step moves between device and host, `diagnostics` what is odd.
    """

    def __repr__(self) -> str:
        program, memory, moved = self["program"], self["memory"], self["transfers"]
        gib = lambda size: f"{size / GIB:.2f} GiB"
        host = sum(memory[f"host_{kind}_bytes"] for kind in ("temp", "argument", "output"))
        host -= memory["host_alias_bytes"]
        lines = [
            f"{program['name']}, {program['devices']} device(s), one of them:",
            f"  HBM {gib(memory['total_device_bytes'])}: arguments "
            f"{gib(memory['argument_bytes'])}, temporaries {gib(memory['temp_bytes'])}; "
            f"{gib(memory['live_peak_bytes'])} live at the peak",
            f"  host {gib(host)}; a step moves {gib(moved['d2h_bytes_per_step'])} to it and "
            f"{gib(moved['h2d_bytes_per_step'])} back",
        ]
        names = [", ".join(each["names"]) or each["id"] for each in self["residuals"]]
        width = max(map(len, names), default=0)
        for name, each in zip(names, self["residuals"]):
            lines.append(f"  {name:<{width}}  {each['layers']} x {gib(each['bytes_per_layer'])}  "
                         f"{each['placement']}")  # fmt: skip
        for each in self["diagnostics"]:
            lines.append(f"  {each['severity']} {each['code']}: {each['message']}")
        return "\n".join(lines)


def inspect(
    compiled,
    names: Mapping | str | os.PathLike | None = None,
    hw: str | os.PathLike | None = None,
    spillway: str | os.PathLike | None = None,
) -> Inspection:
    """Reads the program of a compiled step as `spillway inspect` reads a dump.

    compiled   a `jax.stages.Compiled`: `jax.jit(step).lower(*args).compile()`, on any platform
    names      what `names` returned for the step, or its file; without it residuals are r0, r1, ...
    hw         a machine, "gb200" or a YAML file: says too whether the step fits it
    spillway   the binary; None: the variable SPILLWAY, or else `spillway` on PATH

    Raises UserError if the binary is not found, or does not take the program, with its words.
    """
    binary = find_binary(spillway)
    try:
        program = compiled.as_text()
    except AttributeError:
        raise UserError(
            f"{type(compiled).__name__} is no compiled step: give what "
            "jax.jit(step).lower(*args).compile() returns"
        ) from None
    if not program:
        raise UserError("JAX has no program text for this compiled step", WRONG_INPUT)
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        path = Path(folder) / "step_after_optimizations.txt"
        path.write_text(program, encoding="utf-8")
        command = [binary, "inspect", path, "--json"]
        if names is not None:
            command += ["--names", _names_file(names, Path(folder))]
        if hw is not None:
            command += ["--hw", hw]
        if jaxlib_version():
            command += ["--jaxlib", jaxlib_version()]
        return Inspection(run_json(command))


def find_binary(spillway: str | os.PathLike | None = None) -> str:
    """The path of the binary: the argument, else the variable SPILLWAY, else what PATH has.

    Raises UserError that says which of them was tried.
    """
    given = os.fspath(spillway or os.environ.get(VARIABLE) or "spillway")
    found = shutil.which(given)
    if found:
        return found
    if spillway:
        where = f"spillway={given!r} is no program"
    elif os.environ.get(VARIABLE):
        where = f"the variable {VARIABLE} says {given!r}, which is no program"
    else:
        where = "there is no spillway on PATH"
    raise UserError(
        f"{where}: build it (README.md of the repository), and give its path as spillway= or in "
        f"the variable {VARIABLE}",
        WRONG_INPUT,
    )


def run_json(command: list) -> dict:
    """The JSON that a spillway command writes. Raises UserError with what it says instead."""
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode > 1 or not done.stdout:  # 1: the answer is no, a step that does not fit
        said = done.stderr.strip() or f"it ended with {done.returncode} and said nothing"
        raise UserError(f"{command[0]} does not take this: {said}", WRONG_INPUT)
    return json.loads(done.stdout)


def _names_file(names: Mapping | str | os.PathLike, folder: Path) -> str | os.PathLike:
    if not isinstance(names, Mapping):
        return names
    path = folder / "names.json"
    path.write_text(json.dumps(names), encoding="utf-8")
    return path
