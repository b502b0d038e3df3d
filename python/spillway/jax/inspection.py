"""What `spillway inspect` says of a step that was compiled here."""

import json
import os
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from .ahead_of_time import Dump
from .errors import WRONG_INPUT, UserError
from .sidecar import jaxlib_version
from .sizes import size_text

VARIABLE = "SPILLWAY"


class Inspection(dict):
    """The answer of `spillway inspect --json` (schema spillway.inspect/1); printed, a summary.

    `memory` holds bytes of one device, `residuals` what the forward loop saves for backward, layer
    by layer, `transfers` what a step moves between device and host, `diagnostics` what is odd.
    """

    def __repr__(self) -> str:
        program, moved = self["program"], self["transfers"]
        size = {name: size_text(value) for name, value in self["memory"].items()}
        lines = [
            f"{program['name']}, {program['devices']} device(s), one of them:",
            f"  HBM {size['total_device_bytes']}: arguments {size['argument_bytes']}, "
            f"temporaries {size['temp_bytes']}; {size['live_peak_bytes']} live at the peak",
            f"  host {size_text(self.host_bytes)}; a step moves "
            f"{size_text(moved['d2h_bytes_per_step'])} to it and "
            f"{size_text(moved['h2d_bytes_per_step'])} back",
        ]
        names = [", ".join(each["names"]) or each["id"] for each in self["residuals"]]
        width = max(map(len, names), default=0)
        for name, each in zip(names, self["residuals"]):
            layers = f"{each['layers']} x {size_text(each['bytes_per_layer'])}"
            lines.append(f"  {name:<{width}}  {layers}  {each['placement']}")
        for each in self["diagnostics"]:
            said = f"{each['severity']} {each['code']}: {each['message']}"
            lines.append(textwrap.fill(said, 100, initial_indent="  ", subsequent_indent="    "))
        return "\n".join(lines)

    @property
    def host_bytes(self) -> int:
        """Pinned host memory of one device: temporaries, arguments, and results beside those."""
        memory = self["memory"]
        parts = (memory[f"host_{kind}_bytes"] for kind in ("temp", "argument", "output"))
        return sum(parts) - memory["host_alias_bytes"]


def inspect(
    compiled,
    names: Mapping | str | os.PathLike | None = None,
    hw: str | os.PathLike | None = None,
    spillway: str | os.PathLike | None = None,
) -> Inspection:
    """Reads the program of a compiled step as `spillway inspect` does.

    compiled   a `jax.stages.Compiled`: `jax.jit(step).lower(*args).compile()`, on any platform; or
               what `dump` returned, which brings its names along
    names      what `names` returned for the step, or its file; without it residuals are r0, r1, ...
    hw         a machine, "gb200" or a YAML file: says too whether the step fits it
    spillway   the binary; None: the variable SPILLWAY, or else `spillway` on PATH

    Raises UserError if the binary is not found, or does not take the program, with its words.
    """
    binary = find_binary(spillway)
    options = [] if hw is None else ["--hw", hw]
    if isinstance(compiled, Dump):
        names_file = ["--names", compiled.names_file] if names is None else []
        return _inspect_file(binary, compiled.folder, names, [*options, *names_file])
    if jaxlib_version():
        options += ["--jaxlib", jaxlib_version()]
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        path = Path(folder) / "step.hlo.pb"
        path.write_bytes(program_bytes(compiled))
        return _inspect_file(binary, path, names, options)


def program_bytes(compiled) -> bytes:
    """The optimised program of a `jax.stages.Compiled`, an HloModuleProto, as XLA holds it.

    Not its `as_text()`: that shortens asynchronous operations (`all-reduce-start` for a wrapped
    all-reduce) in a way that dumps do not. Raises UserError for what is no compiled step.
    """
    if not hasattr(compiled, "runtime_executable"):
        raise UserError(
            f"{type(compiled).__name__} is no compiled step: give what "
            "jax.jit(step).lower(*args).compile() returns"
        )
    modules = compiled.runtime_executable().hlo_modules()
    if len(modules) != 1:
        raise UserError(f"the compiled step holds {len(modules)} programs, not one", WRONG_INPUT)
    return modules[0].as_serialized_hlo_module_proto()


def _inspect_file(
    binary: str, program: Path, names: Mapping | str | os.PathLike | None, options: list
) -> Inspection:
    with tempfile.TemporaryDirectory(prefix="spillway-") as folder:
        if isinstance(names, Mapping):
            path = Path(folder) / "names.json"
            path.write_text(json.dumps(names), encoding="utf-8")
            names = path
        if names is not None:
            options = [*options, "--names", names]
        return Inspection(run_json([binary, "inspect", program, "--json", *options]))


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
