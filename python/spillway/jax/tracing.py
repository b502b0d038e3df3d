"""A step as JAX traces it: its equations, its shardings, and how to have every name saved."""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping

from .errors import WRONG_INPUT, UserError, import_jax


def trace(step, args: tuple, kwargs: Mapping | None = None):
    """A `jax.stages.Traced` of a function, a jitted one, or one that is traced already. Needs JAX.

    Raises UserError for what cannot be called. What JAX itself raises passes through.
    """
    if hasattr(step, "jaxpr") and hasattr(step, "lower"):
        if args or kwargs:
            raise UserError("the step is traced already, so it takes no more arguments")
        return step
    if not callable(step):
        raise UserError(f"{step!r} is no step: give a function, jitted or not, and its arguments")
    jax = import_jax()
    _hide_own_frames()
    jitted = step if hasattr(step, "trace") else jax.jit(step)
    return jitted.trace(*args, **(kwargs or {}))


@functools.cache
def _hide_own_frames() -> None:
    """An equation comes from the step's code, and not from ours that called it."""
    from jax._src import source_info_util

    source_info_util.register_exclusion(os.path.dirname(__file__))


def inner_jaxprs(params: Mapping) -> Iterator:
    """The jaxprs among an equation's parameters: bodies of loops, branches, called functions."""
    for value in params.values():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            item = getattr(item, "jaxpr", item)
            if hasattr(item, "eqns"):
                yield item


def equations(jaxpr) -> Iterator:
    """Every equation of a jaxpr, those of the jaxprs inside it too."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for inner in inner_jaxprs(equation.params):
            yield from equations(inner)


def shardings(traced, arguments=()) -> Iterator:
    """Shardings and meshes of the arguments, of what `jit` was told, and of the step's inside."""
    import jax

    for leaf in jax.tree.leaves(arguments):
        yield getattr(leaf, "sharding", None)
    for params in (getattr(traced, "_params", {}), *(e.params for e in equations(traced.jaxpr))):
        for key in ("in_shardings", "out_shardings", "sharding", "mesh"):
            yield from jax.tree.leaves(params.get(key))


def callbacks(jaxpr) -> list:
    """The equations that call back into Python: jax.debug.print, pure_callback, io_callback."""
    return [
        equation
        for equation in equations(jaxpr)
        if "callback" in equation.primitive.name or equation.primitive.name == "debug_print"
    ]


def device_count(traced, arguments=()) -> int:
    """How many devices a traced step is partitioned over: as many as its largest sharding has.

    1 if nothing is sharded.
    """
    counts = (
        getattr(each, "num_devices", None) or getattr(each, "size", None)
        for each in shardings(traced, arguments)
    )
    return max((count for count in counts if isinstance(count, int)), default=1)


def abstract_mesh(traced, arguments=()):
    """The `AbstractMesh` of a traced step, the largest there is; None if it has none."""
    import jax

    meshes = (getattr(each, "mesh", each) for each in shardings(traced, arguments))
    abstract = [mesh for mesh in meshes if isinstance(mesh, jax.sharding.AbstractMesh)]
    return max(abstract, key=lambda mesh: mesh.size, default=None)


@functools.lru_cache(maxsize=None)
def saving_names(policy):
    """A `jax.checkpoint` policy that saves every named tensor, and else does what `policy` says."""

    def saves_every_name(primitive, *args, **params):
        if primitive.name == "name":
            return True
        return policy(primitive, *args, **params) if policy else False

    return saves_every_name


@contextlib.contextmanager
def every_name_saved():
    """While it lasts, whatever JAX traces under `jax.checkpoint` keeps every named tensor.

    Neither the step nor its policies need be built anew, and nothing that was traced before or is
    traced afterwards is affected: it is part of the key of JAX's caches while it lasts. The place
    where it takes hold is private to JAX (0.8 to 0.12); `check_every_name_saved` finds out
    whether it did.
    """
    from jax._src import ad_checkpoint

    primitive, bind = ad_checkpoint.remat_p, ad_checkpoint.remat_p.bind
    own_bind = "bind" in vars(primitive)
    remat3 = getattr(ad_checkpoint, "remat3", None)

    def bind_saving(*args, policy, **params):
        return bind(*args, policy=_saving(policy), **params)

    def remat3_saving(fun=None, /, policy=None, **params):
        return remat3(fun, policy=_saving(policy), **params)

    primitive.bind = bind_saving
    if remat3:
        ad_checkpoint.remat3 = remat3_saving
    try:
        with _cache_context()(True):
            yield
    finally:
        if own_bind:
            primitive.bind = bind
        else:
            del primitive.bind
        if remat3:
            ad_checkpoint.remat3 = remat3


def _saving(policy):
    return policy if _is_saving(policy) else saving_names(policy)


def _is_saving(policy) -> bool:
    return getattr(policy, "__name__", "") == "saves_every_name"


@functools.cache
def _cache_context():
    """A context that JAX's caches tell apart, made once: JAX keeps each for good."""
    import jax

    if not hasattr(jax, "make_user_context"):
        raise UserError(
            f"save_all needs JAX 0.8 or later, and this is {jax.__version__}: give the step a "
            "policy that keeps every name, and leave save_all out",
            WRONG_INPUT,
        )
    return jax.make_user_context(default_value=False)


def check_every_name_saved(jaxpr) -> None:
    """Raises UserError if a policy of the step escaped `every_name_saved`."""
    for equation in equations(jaxpr):
        if "policy" in equation.params and not _is_saving(equation.params["policy"]):
            raise UserError(
                "the policies of this step cannot be replaced by one that saves every name: give "
                "the step a policy that keeps every name, and leave save_all out",
                WRONG_INPUT,
            )
