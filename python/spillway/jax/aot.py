"""Compiling for devices that are not there. Needs JAX with its CUDA plugin, and no GPU."""

import contextlib

from .errors import WRONG_INPUT, UserError


def import_compiler():
    """The `jax` module with its compiler for GPUs, or a UserError that says how to install it."""
    try:
        import jax
        import jax_plugins.xla_cuda13  # noqa: F401  the compiler for GPUs
    except ImportError as error:
        raise UserError(
            f"compiling needs JAX with its CUDA 13 plugin ({error}): "
            'pip install "jax[cuda13]". Reading dumps needs neither',
            WRONG_INPUT,
        ) from None
    return jax


def make_devices(text: str, count: int) -> list:
    """`count` compile-only devices of the GPU that a target text describes.

    `text` comes from `target.target_text`. The devices are one host's, one NVLink domain.
    Raises UserError if JAX's CUDA plugin did not start, and with XLA's own words if the text is not
    accepted.
    """
    from jax.experimental import topologies

    try:
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=text, topology=f"1x1x{count}"
        )
    except Exception as error:
        if "not implemented" in str(error):
            raise UserError(
                "JAX's CUDA plugin did not start, as happens where there is no GPU: set "
                "JAX_PLATFORMS=cpu before JAX is imported",
                WRONG_INPUT,
            ) from None
        raise UserError(f"XLA does not accept the target: {error}", WRONG_INPUT) from None
    return list(topology.devices)


def lower(traced):
    """A traced step, lowered for GPUs whatever this machine has."""
    return traced.lower(lowering_platforms=("cuda",))


def concrete_mesh(mesh, text: str):
    """A context in which compile-only devices of a target text stand for an `AbstractMesh`."""
    import jax
    import numpy as np

    devices = np.array(make_devices(text, mesh.size)).reshape(mesh.axis_sizes)
    return jax.set_mesh(jax.sharding.Mesh(devices, mesh.axis_names, axis_types=mesh.axis_types))


def partitions(lowered) -> int:
    """How many devices a lowered step is partitioned over."""
    attributes = lowered.compiler_ir("stablehlo").operation.attributes
    if "mhlo.num_partitions" not in attributes:
        return 1
    return attributes["mhlo.num_partitions"].value


def compile_for(devices: list, lowered, options: dict[str, object]):
    """XLA's executable of a lowered step, compiled for compile-only devices with XLA's options.

    Whatever mesh the step was lowered for, of live devices, compile-only or abstract, only its size
    matters here. `Lowered.compile` would insist on its own devices, and compile-only devices drop
    the `memory_kind` of a sharding; so the step's StableHLO goes straight to XLA, with what JAX
    would have told it. Uses JAX's internals (0.12).

    Raises `jax.errors.JaxRuntimeError` if XLA refuses.
    """
    import numpy as np
    from jax._src.interpreters import pxla
    from jax._src.lib import _jax

    module, known = lowered.compiler_ir("stablehlo"), lowered._lowering.compile_args
    client = devices[0].client
    inputs, outputs = pxla.get_prop_to_input_output(
        known["in_shardings"], known["out_shardings"], len(known["ordered_effects"])
    )
    compile_options = pxla.create_compile_options(
        module, known["tuple_args"], inputs, outputs, client, np.array(devices), dict(options)
    )
    return client.compile(module, _jax.DeviceList(tuple(devices)), compile_options)


@contextlib.contextmanager
def answering_for(compute_capability: str):
    """While it lasts, JAX's cuDNN attention can be lowered where there is no GPU to ask.

    It asks the local GPU for its compute capability, and there is none; the target's is the
    answer. A private hook of JAX (0.12): if it moves, other attention still works.
    """
    from jax._src.cudnn import fused_attention_stablehlo as attention

    target = _version(compute_capability)
    answers = {
        "check_compute_capability": lambda wanted: target >= _version(wanted),
        "is_cuda_compute_capability_equal": lambda wanted: target == _version(wanted),
    }
    before = {name: getattr(attention, name) for name in answers if hasattr(attention, name)}
    for name in before:
        setattr(attention, name, answers[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(attention, name, value)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
