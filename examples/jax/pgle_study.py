#!/usr/bin/env python3
"""When does a profile help XLA's scheduler with host copies, and when does memory fencing?

Compiles small training steps for GPUs that this machine need not have, with XLA's scheduler left
alone, given the profile of `spillway plan --pgle`, and fenced; simulates each result, and prints
step time and memory side by side. docs/pgle.md has the table and what follows from it.

    python3 examples/jax/pgle_study.py --out study --spillway build/dev/cli/spillway

A quarter of an hour on two idle cores. --gpu, --program, --loop and --setting choose a part.
"""

import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python"))
from model_config import NAMES, Config
import spillway.jax as sj
from spillway.jax import aot

DEVICES = 8

PROFILE = "xla_gpu_pgle_profile_file_or_directory_path"
FENCE = "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes"
# What `plan` advises. With a threshold of the smallest array that goes to the host, the buffers
# between stay where they are, and so do the arrays.
FENCED = {FENCE: 1 << 20}

# name -> (what stands for the profile: none, ours, or one of `variants`; XLA's flags)
SETTINGS = {
    "default": (None, {}),
    "no latency hiding": (
        None,
        {
            "xla_gpu_enable_latency_hiding_scheduler": False,
            "xla_gpu_enable_analytical_sol_latency_estimator": False,
        },
    ),
    "fencing": (None, FENCED),
    "profile": ("ours", {}),
    "profile, fencing": ("ours", FENCED),
    "each copy alone": ("alone", {}),
    "kernels only": ("kernels", {}),
}
# Tried where --setting asks for them: what A100 has off by default, and flags that `plan` tries by
# simulation (docs/flags.md).
ASKED_FOR = {
    "latency hiding": (None, {"xla_gpu_enable_latency_hiding_scheduler": True}),
    "collectives 4": (None, {"xla_gpu_experimental_parallel_collective_overlap_limit": 4}),
    "async 8": (None, {"xla_gpu_experimental_parallel_async_compute_limit": 8}),
    "slop 70": (None, {"xla_gpu_memory_limit_slop_factor": 70}),
}

# Whether the link or the GPU has more to do depends on the width: a matrix product computes
# `width` times for each element of the activation that is moved.
LLAMA = dict(layers=8, batch=16, seq=8192)
PROGRAMS = {
    "mlp 2048": ("Mlp", dict(layers=12, width=2048, inner=8192, tokens=8 << 15), "layer_input inner"),
    "mlp 8192": ("Mlp", dict(layers=12, width=8192, inner=32768, tokens=8 << 14), "layer_input inner"),
    "llama, all": ("Llama", LLAMA, " ".join(NAMES)),
    "llama, q k v": ("Llama", LLAMA, " ".join(NAMES[:4])),
}  # fmt: skip

COLUMNS = ("gpu", "program", "loop", "setting", "step_ms", "exposed_copies_ms",
           "exposed_collectives_ms", "kernels_ms", "link_ms", "device_gib", "host_gib", "found",
           "missing")  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True, type=Path, help="folder for dumps and study.csv")
    parser.add_argument("--spillway", default="spillway", help="the binary (default: %(default)s)")
    for name, choices in (
        ("gpu", ("gb200", "h100", "a100")),
        ("program", tuple(PROGRAMS)),
        ("loop", ("scanned", "unrolled")),
        ("setting", (*SETTINGS, *ASKED_FOR)),
    ):
        parser.add_argument(f"--{name}", action="append", choices=choices, default=None,
                            help=f"may be repeated: {', '.join(choices)} (default: what docs/pgle.md shows)")  # fmt: skip
        parser.set_defaults(**{f"all_{name}": choices})
    parser.set_defaults(all_gpu=("gb200", "h100"), all_setting=tuple(SETTINGS))
    return parser


def start_jax():
    """JAX without the user's own XLA_FLAGS: the flags go with each compile."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.pop("XLA_FLAGS", None)
    return aot.import_compiler()


def make_step(jax, program: str, loop: str):
    """The step and its abstract arguments; compile it as often as you like."""
    import study_steps

    kind, sizes, offloaded = PROGRAMS[program]
    if kind == "Llama":
        model = study_steps.Llama(Config(**sizes))
    else:
        model = study_steps.Mlp(**sizes)
    choices = dict.fromkeys(model.names, "recompute") | dict.fromkeys(offloaded.split(), "offload")
    mesh = jax.sharding.AbstractMesh(
        (DEVICES,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,)
    )
    policy = sj.policy(choices, model.names)
    return study_steps.make_step(model, mesh, policy, unroll=loop == "unrolled")


def compile_into(step, arguments, folder: Path, gpu: str, flags: dict) -> dict:
    """Compiles, and returns what XLA's log says of the profile."""
    flags = {"xla_gpu_enable_triton_gemm": False, **flags}
    words = shlex.join(f"--{name}={value}" for name, value in flags.items())
    with tempfile.TemporaryFile() as log:
        # XLA writes to the process's stderr, past Python's.
        sys.stderr.flush()
        ours = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            sj.dump(step, *arguments, folder=folder, target=gpu, xla_flags=words)
        finally:
            os.dup2(ours, 2)
            os.close(ours)
        log.seek(0)
        return read_log(log.read().decode("utf-8", "replace"))


def read_log(text: str) -> dict:
    """How many instructions had a cost, and which had none. Starts and dones have none on purpose:
    a start's is found under what it wraps, or is XLA's constant."""
    found = re.search(r"Found (\d+) instructions from the profile", text)
    if not found:
        return {"found": "", "missing": ""}
    missing = re.findall(r"profile_guided_latency_estimator\.cc:\d+\] +(\S+)$", text, re.MULTILINE)
    real = [name for name in missing if not re.search(r"-(start|done)(\.|$)", name)]
    return {"found": int(found[1]), "missing": len(real)}


def run_json(spillway: str, *arguments) -> dict:
    done = subprocess.run([spillway, *arguments, "--json"], capture_output=True, check=False)
    if done.returncode > 1:  # 1: the answer is no, a step that does not fit
        raise SystemExit(done.stderr.decode())
    return json.loads(done.stdout)


def measure(spillway: str, folder: Path, gpu: str) -> dict:
    step = run_json(spillway, "simulate", folder, "--hw", gpu)
    memory = run_json(spillway, "inspect", folder)["memory"]
    milliseconds = lambda *keys: round(sum(step[key] for key in keys) * 1e3, 2)
    return {
        "step_ms": milliseconds("step_seconds"),
        "exposed_copies_ms": milliseconds("exposed_d2h_seconds", "exposed_h2d_seconds"),
        "exposed_collectives_ms": milliseconds("exposed_collective_seconds"),
        "kernels_ms": milliseconds("compute_busy_seconds"),
        "link_ms": max(milliseconds("d2h_busy_seconds"), milliseconds("h2d_busy_seconds")),
        "device_gib": round(memory["total_device_bytes"] / 2**30, 2),
        "host_gib": round(memory["host_temp_bytes"] / 2**30, 2),
    }


def variants(profile: Path) -> dict[str, Path]:
    """Beside the profile itself: with every copy under its own name at what it takes alone, and
    with no copy at all; both in microseconds, as a profile of a real run would be."""
    text = profile.read_text()
    scale = re.search(r"microseconds x ([0-9.e+-]+)", text)
    scale = float(scale[1]) if scale else 1.0
    copies = dict(re.findall(r"^# host copy (\S+) takes (\S+) us", text, re.MULTILINE))
    costs = {
        name: float(cost) / scale
        for name, cost in re.findall(r'name: "([^"]*)" cost_us: (\S+)', text)
        if name not in copies
    }
    made = {"kernels": costs, "alone": costs | {name: float(us) for name, us in copies.items()}}
    paths = {"ours": profile}
    for kind, entries in made.items():
        paths[kind] = profile.with_name(f"{kind}.pbtxt")
        lines = (f'costs {{ name: "{n}" cost_us: {us:.3f} }}\n' for n, us in entries.items())
        paths[kind].write_text("".join(lines))
    return paths


def study_program(jax, args, gpu: str, program: str, loop: str):
    """Rows of one program. The default is always compiled: the profile has its names."""
    step, arguments = make_step(jax, program, loop)
    folder = args.out / f"{gpu} {program} {loop}".replace(",", "").replace(" ", "_")
    profiles = {}
    for setting, (profile, flags) in (SETTINGS | ASKED_FOR).items():
        if setting != "default" and setting not in args.setting:
            continue
        into = folder / setting.replace(",", "").replace(" ", "_")
        into.mkdir(parents=True)
        if profile:
            flags = flags | {PROFILE: str(profiles[profile])}
        log = compile_into(step, arguments, into, gpu, flags)
        if setting == "default":
            ours = folder / "ours.pbtxt"
            pgle = run_json(args.spillway, "plan", into, "--hw", gpu, "--pgle", ours)["pgle"]
            print(f"  {pgle['text']}")
            profiles = variants(ours)
        row = {"gpu": gpu, "program": program, "loop": loop, "setting": setting}
        yield row | measure(args.spillway, into, gpu) | log


def main() -> int:
    args = make_parser().parse_args()
    for name in ("gpu", "program", "loop", "setting"):
        setattr(args, name, getattr(args, name) or getattr(args, f"all_{name}"))
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SPILLWAY_HW_PROFILES", str(REPOSITORY / "hw_profiles"))
    jax = start_jax()
    with open(args.out / "study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for gpu in args.gpu:
            for program in args.program:
                for loop in args.loop:
                    print(f"\n{program}, {loop}, {DEVICES} x {gpu}: step, copies and collectives "
                          "exposed (ms), device, host (GiB)")  # fmt: skip
                    for row in study_program(jax, args, gpu, program, loop):
                        table.writerow(row)
                        file.flush()
                        print_row(row)
    return 0


def print_row(row: dict) -> None:
    log = f"   {row['found']} costs found, {row['missing']} missing" if row["found"] else ""
    print(f"  {row['setting']:<20}{row['step_ms']:>9.2f}{row['exposed_copies_ms']:>9.2f}"
          f"{row['exposed_collectives_ms']:>8.2f}{row['device_gib']:>8.2f}"
          f"{row['host_gib']:>8.2f}{log}", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
