#!/usr/bin/env python3
"""Compiles the example training step for a GPU that this machine need not have.

Writes into --out what XLA decided (program, schedule, buffers, streams), the sidecar names.json
that says which tensor is which, and truth.json with XLA's own numbers. Neither a GPU nor its
memory is needed: XLA compiles a step that does not fit as readily as one that does.
"""

import argparse
import dataclasses
import json
import os
import re
import sys
from importlib import metadata
from pathlib import Path

from model_config import NAMES, Config

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python"))
import spillway.jax as sj
from spillway.jax import aot, policies, xla_dump
from spillway.jax.ahead_of_time import prepare
from spillway.jax.sidecar import bytes_per_device

EXAMPLES = """\
examples:
  keep everything:       %(prog)s --gpu gb200 --out keep --policy {keep_all}
  offload two tensors:   %(prog)s --gpu gb200 --out mlp --set mlpwi_0=offload --set mlpwi_1=offload
  a smaller step:        %(prog)s --gpu h100 --out small --layers 4 --d-model 1024 --batch 16
  what was planned:      %(prog)s --gpu gb200 --out planned --plan plan.json

names: {names}
Before the last, with the spillway binary:
  spillway plan keep --names keep/names.json --hw gb200 --json > plan.json
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EXAMPLES.format(
            keep_all=",".join(f"{name}=keep" for name in NAMES),
            names=", ".join(NAMES),
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR",
                        help="folder for the dump; new or empty")  # fmt: skip

    machine = parser.add_argument_group("the machine")
    machine.add_argument("--gpu", default="gb200", metavar="ID|FILE",
                         help="a profile of hw_profiles/, such as gb200 or h100, or a YAML file "
                              "like those (default: %(default)s)")  # fmt: skip
    machine.add_argument("--devices", type=int, default=8, metavar="N",
                         help="GPUs that share the step (default: %(default)s)")  # fmt: skip
    machine.add_argument("--mem-fraction", type=float, default=0.75, metavar="F",
                         help="share of HBM that a live run gives XLA, its setting "
                              "XLA_PYTHON_CLIENT_MEM_FRACTION; the scheduler then works against "
                              "the same limit here as there (default: %(default)s)")  # fmt: skip

    choice = parser.add_argument_group(
        "the policy", "Each named tensor is kept, offloaded or recomputed; a name that is not "
        "given is recomputed.")  # fmt: skip
    choice.add_argument("--policy", default="", metavar="NAME=CHOICE,...",
                        help="for example query_proj=offload,mlpwi_0=keep")  # fmt: skip
    choice.add_argument("--plan", type=Path, metavar="FILE",
                        help="what spillway plan --json wrote, or a plan file")  # fmt: skip
    choice.add_argument("--set", action="append", default=[], metavar="NAME=CHOICE",
                        help="the same for one name; may be repeated, and goes before a plan")  # fmt: skip

    compiler = parser.add_argument_group("the compiler")
    compiler.add_argument("--gemm", choices=("cublas", "triton"), default="cublas",
                          help="who multiplies matrices. A live run picks by timing, most often "
                               "cublas (default: %(default)s)")  # fmt: skip
    compiler.add_argument("--xla-flags", default="", metavar="'--xla_A=B ...'",
                          help="more flags for XLA; write --xla-flags='...'. The variable "
                               "XLA_FLAGS is not read")  # fmt: skip
    compiler.add_argument("--keep-xla-remat", action="store_true",
                          help="leave XLA's own rematerialisation on, which clones work that no "
                               "policy asked for")  # fmt: skip
    compiler.add_argument("--proto", action="store_true",
                          help="dump the program as .hlo.pb too")  # fmt: skip
    compiler.add_argument("--pack", choices=sorted(xla_dump.PACKINGS),
                          help="gzip what the tests read and remove the rest; full adds the "
                               "program as .hlo.pb and the scheduler's own record")  # fmt: skip

    sizes = parser.add_argument_group("the model")
    for field in dataclasses.fields(Config):
        kind = type(field.default)
        sizes.add_argument(
            "--" + field.name.replace("_", "-"),
            type=kind,
            default=field.default,
            choices=("cudnn", "xla") if field.name == "attention" else None,
            metavar="N" if kind is int else None,
            help=f"{field.metadata['help']} (default: %(default)s)",
        )
    return parser


def check(args: argparse.Namespace) -> tuple[Config, dict[str, str], dict]:
    """Model, policy, and what `sj.dump` shall be told.

    Everything that can be wrong is found here, before JAX is asked to start.
    """
    config = Config(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Config)})
    if args.devices < 1:
        raise sj.UserError("--devices must be at least 1")
    try:
        config.check(args.devices)
    except ValueError as error:
        raise sj.UserError(str(error)) from None
    gemm = "" if args.gemm == "triton" else "--xla_gpu_enable_triton_gemm=false "
    options = {
        "folder": args.out,
        "target": args.gpu,
        "devices": args.devices,
        "mem_fraction": args.mem_fraction,
        "xla_flags": gemm + args.xla_flags,
        "keep_xla_remat": args.keep_xla_remat,
    }
    policy = make_policy(args)
    prepare(**options)
    return config, policy, options


def make_policy(args: argparse.Namespace) -> dict[str, str]:
    """Name -> choice of every name there is; what a plan has to say besides goes to stderr."""
    planned = {}
    if args.plan:
        planned, remarks = policies.checkpoint_choices(args.plan, NAMES)
        for remark in remarks:
            print(f"note: {remark}", file=sys.stderr)
    given = policies.parse_policy([args.policy, *args.set])
    return policies.complete_policy(planned | given, NAMES)


def start_jax():
    """JAX without the user's own XLA_FLAGS: they would decide the program too."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.pop("XLA_FLAGS", None)
    jax = aot.import_compiler()
    # Nothing in a dump should tell where it was made: files are named from the repository's root.
    jax.config.update(
        "jax_hlo_source_file_canonicalization_regex",
        f"^{re.escape(str(REPOSITORY))}/|^.*/site-packages/",
    )
    return jax


def run(args: argparse.Namespace) -> None:
    """Compiles the step, puts truth.json beside the dump, and prints a summary."""
    config, policy, options = check(args)
    jax = start_jax()
    import train_step

    # A mesh of no devices in particular; the shardings say how the step is split.
    mesh = jax.sharding.AbstractMesh(
        (args.devices,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,)
    )
    step = train_step.make_train_step(config, mesh, sj.policy(policy, NAMES))
    arguments = train_step.abstract_arguments(config, mesh)
    try:
        dump = sj.dump(step, *arguments, proto=args.proto or args.pack == "full", **options)
    except (NotImplementedError, RuntimeError) as error:
        if config.attention != "cudnn":
            raise
        raise sj.UserError(
            f"cuDNN's attention does not take this step; --attention xla does. {error}"
        ) from None
    if {entry["name"] for entry in dump.names["names"]} != set(NAMES):
        raise AssertionError("model_config.NAMES no longer lists the names of train_step.py")

    truth = make_truth(dump, config, policy, args.mem_fraction)
    if args.pack:
        xla_dump.pack(dump.folder, args.pack)
        dump.names.write(dump.names_file)
    text = json.dumps(truth, indent=1) + "\n"
    (dump.folder / "truth.json").write_text(text, encoding="utf-8")
    print(dump)
    print_names(dump.names, policy)
    print_memory(truth)


def make_truth(dump, config: Config, policy: dict, mem_fraction: float) -> dict:
    """How the dump was made, and XLA's own numbers for it. Reads the dump before it is packed."""
    program = xla_dump.read_text(xla_dump.find_file(dump.folder, "after_optimizations.txt"))
    packages = ("jax", "jaxlib", "jax-cuda13-plugin")
    return {
        "schema": "spillway.truth/1",
        "note": "XLA's own numbers, for one device; made by examples/jax/compile_step.py",
        "module": "jit_train_step",
        "gpu": dump.gpu.id,
        "devices": dump.devices,
        "config": dataclasses.asdict(config),
        "policy": policy,
        "mem_fraction": mem_fraction,
        "hbm_bytes": dump.gpu.hbm_bytes,
        "target_device_memory_size_bytes": dump.memory_bytes,
        "xla_flags": dump.xla_flags,
        "versions": {name: metadata.version(name) for name in packages},
        "memory_analysis": dump.memory_analysis,
        "allocations": xla_dump.allocation_summary(dump.folder),
        "xla_remat_clones": xla_dump.count_remat_clones(program),
    }


def print_names(sidecar: dict, policy: dict) -> None:
    print(f"\n{'name':<22}{'choice':<12}{'GiB a device, all layers':>24}   source")
    for entry in sidecar["names"]:
        total = bytes_per_device(entry, sidecar["devices"]) * entry["layers"]
        print(f"{entry['name']:<22}{policy[entry['name']]:<12}{total / 2**30:>24.2f}   "
              f"{entry['source']}")  # fmt: skip


def print_memory(truth: dict) -> None:
    analysis, allocations = truth["memory_analysis"], truth["allocations"]
    pool = int(truth["hbm_bytes"] * truth["mem_fraction"])
    print(f"\n{'one device':<44}{'bytes':>16}{'GiB':>10}")
    for label, size in (
        *((key.removesuffix("_in_bytes"), size) for key, size in analysis.items() if size),
        ("all device allocations", allocations["device_bytes"]),
        ("all host allocations", allocations["host_bytes"]),
        (f"pool of a live run at {truth['mem_fraction']:g} of HBM", pool),
    ):
        print(f"{label:<44}{size:>16}{size / 2**30:>10.2f}")


def main() -> int:
    args = make_parser().parse_args()
    try:
        run(args)
    except sj.UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
