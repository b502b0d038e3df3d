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
import time
from importlib import metadata
from pathlib import Path

from model_config import NAMES, Config

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "python"))
from spillway_jax import aot, dump
from spillway_jax import names as checkpoint_names
from spillway_jax import policy as policies
from spillway_jax import target
from spillway_jax.errors import WRONG_INPUT, UserError

EXAMPLES = """\
examples:
  keep everything:       %(prog)s --gpu gb200 --out keep --policy {keep_all}
  offload two tensors:   %(prog)s --gpu gb200 --out mlp --set mlpwi_0=offload --set mlpwi_1=offload
  a smaller step:        %(prog)s --gpu h100 --out small --layers 4 --d-model 1024 --batch 16

names: {names}
Afterwards, with the spillway binary:  spillway inspect keep --names keep/names.json
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
    choice.add_argument("--set", action="append", default=[], metavar="NAME=CHOICE",
                        help="the same for one name; may be repeated")  # fmt: skip

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
    compiler.add_argument("--pack", choices=sorted(dump.PACKINGS),
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


def check_out(folder: Path) -> None:
    """A dump beside an older one could be taken for it, so the folder has to be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is no empty folder: name a new one, or clear it")


@dataclasses.dataclass(frozen=True)
class Request:
    """A command line that has been found to make sense."""

    out: Path
    config: Config
    policy: dict[str, str]
    gpu: target.Gpu
    devices: int
    mem_fraction: float
    memory_bytes: int  # what XLA is told the GPU has, so that the fraction holds
    target_text: str
    flags: list[str]  # what decides the program; where it is dumped is not among them
    proto: bool
    packing: str | None


def make_request(args: argparse.Namespace) -> Request:
    """Everything that can be wrong is found here, before JAX is asked to start."""
    if args.devices < 1:
        raise UserError("--devices must be at least 1")
    config = Config(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Config)})
    try:
        config.check(args.devices)
    except ValueError as error:
        raise UserError(str(error)) from None
    gemm = "" if args.gemm == "triton" else "--xla_gpu_enable_triton_gemm=false "
    flags = dump.compile_flags(gemm + args.xla_flags, args.keep_xla_remat)
    policy = policies.complete_policy(policies.parse_policy([args.policy, *args.set]), NAMES)
    gpu = target.read_profile(target.find_profile(args.gpu, REPOSITORY / "hw_profiles"))
    memory_bytes = target.memory_size_for_fraction(gpu.hbm_bytes, args.mem_fraction)
    target_text = target.target_text(gpu, memory_bytes)
    check_out(args.out)
    return Request(
        out=args.out.resolve(),
        config=config,
        policy=policy,
        gpu=gpu,
        devices=args.devices,
        mem_fraction=args.mem_fraction,
        memory_bytes=memory_bytes,
        target_text=target_text,
        flags=flags,
        proto=args.proto or args.pack == "full",
        packing=args.pack,
    )


def start_jax(request: Request):
    """JAX, set up so that XLA dumps the step into `request.out`."""
    # XLA reads its flags once, when JAX starts it.
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = dump.flags_variable(
        request.flags + dump.dump_flags(request.out, ".*train_step.*", request.proto)
    )
    jax = aot.import_jax()
    # Nothing in a dump should tell where it was made: files are named from the repository's root.
    jax.config.update(
        "jax_hlo_source_file_canonicalization_regex",
        f"^{re.escape(str(REPOSITORY))}/|^.*/site-packages/",
    )
    jax.config.update("jax_enable_compilation_cache", False)  # a cached program is not dumped
    return jax


def run(request: Request) -> None:
    """Compiles the step, completes the dump with its two sidecars, and prints a summary."""
    jax = start_jax(request)
    traced = trace_step(jax, request)
    names = checkpoint_names.collect_names(traced.jaxpr)
    if {entry["name"] for entry in names} != set(NAMES):
        raise AssertionError("model_config.NAMES no longer lists the names of train_step.py")

    request.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    try:
        compiled = traced.lower(lowering_platforms=("cuda",)).compile()
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f"XLA did not compile the step: {error}", WRONG_INPUT) from None
    seconds = time.perf_counter() - start

    truth = make_truth(request, compiled.memory_analysis())
    if request.packing:
        dump.pack(request.out, request.packing)
    checkpoint_names.write_names(request.out / "names.json", names, request.devices)
    (request.out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")

    gpus = f"{request.devices} x {request.gpu.xla_name}"
    print(f"compiled for {gpus} in {seconds:.1f} s: {request.out}")
    print_names(names, request.policy, request.devices)
    print_memory(truth)


def trace_step(jax, request: Request):
    """The step, traced for devices that compile but do not run."""
    import numpy as np

    import train_step

    if request.config.attention == "cudnn":
        aot.answer_for_target(request.gpu.compute_capability)
    mesh = jax.sharding.Mesh(
        np.array(aot.make_devices(request.target_text, request.devices)),
        ("fsdp",),
        axis_types=(jax.sharding.AxisType.Auto,),
    )
    policy = policies.make_checkpoint_policy(request.policy)
    step = train_step.make_train_step(request.config, mesh, policy)
    try:
        return step.trace(*train_step.abstract_arguments(request.config, mesh))
    except (NotImplementedError, RuntimeError) as error:
        if request.config.attention != "cudnn":
            raise
        raise UserError(
            f"cuDNN's attention does not take this step; --attention xla does. {error}"
        ) from None


def make_truth(request: Request, analysis) -> dict:
    """How the dump was made, and XLA's own numbers for it. Reads the dump before it is packed."""
    program = dump.read_text(dump.find_file(request.out, "after_optimizations.txt"))
    packages = ("jax", "jaxlib", "jax-cuda13-plugin")
    figures = [name for name in sorted(dir(analysis)) if name.endswith("_in_bytes")]
    return {
        "schema": "spillway.truth/1",
        "note": "XLA's own numbers, for one device; made by examples/jax/compile_step.py",
        "module": "jit_train_step",
        "gpu": request.gpu.id,
        "devices": request.devices,
        "config": dataclasses.asdict(request.config),
        "policy": request.policy,
        "mem_fraction": request.mem_fraction,
        "hbm_bytes": request.gpu.hbm_bytes,
        "target_device_memory_size_bytes": request.memory_bytes,
        "xla_flags": request.flags,
        "versions": {name: metadata.version(name) for name in packages},
        "memory_analysis": {name: getattr(analysis, name) for name in figures},
        "allocations": dump.allocation_summary(request.out),
        "xla_remat_clones": dump.count_remat_clones(program),
    }


def print_names(names: list[dict], policy: dict, devices: int) -> None:
    print(f"\n{'name':<22}{'choice':<12}{'GiB a device, all layers':>24}   source")
    for entry in names:
        total = checkpoint_names.bytes_per_device(entry, devices) * entry["layers"]
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
        run(make_request(args))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
