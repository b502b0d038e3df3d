"""Devices that compile but do not run. Needs JAX with its CUDA plugin, and no GPU."""

from .errors import WRONG_INPUT, UserError


def import_jax():
    """The `jax` module, or a UserError that says how to install it."""
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
    Raises UserError with XLA's own words if the text is not accepted.
    """
    from jax.experimental import topologies

    try:
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=text, topology=f"1x1x{count}"
        )
    except Exception as error:
        raise UserError(f"XLA does not accept the target: {error}", WRONG_INPUT) from None
    return list(topology.devices)


def answer_for_target(compute_capability: str) -> None:
    """Lets JAX's cuDNN attention be lowered where there is no GPU to ask.

    It asks the local GPU for its compute capability, and there is none; from here on the target's
    is the answer. A private hook of JAX (0.12): if it moves, attention="xla" still works.
    """
    from jax._src.cudnn import fused_attention_stablehlo as attention

    target = _version(compute_capability)
    attention.check_compute_capability = lambda wanted: target >= _version(wanted)
    attention.is_cuda_compute_capability_equal = lambda wanted: target == _version(wanted)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
