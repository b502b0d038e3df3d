"""The JAX side of Spillway.

    import spillway.jax as sj

    sj.names(step, *args)                     which tensors of a step carry a checkpoint name
    sj.dump(step, *args, folder=, target=)    what XLA makes of the step for a GPU that is not there
    sj.inspect(compiled)                      what `spillway inspect` says of a step compiled here
    sj.policy(plan)                           a plan as the policy that `jax.checkpoint` takes

A mistake that the user can mend is a `UserError`. Importing this package imports no JAX, so
XLA_FLAGS and JAX_PLATFORMS can still be set afterwards.
"""

from .ahead_of_time import dump
from .errors import UserError
from .inspection import inspect
from .policies import policy
from .sidecar import names

__all__ = ["UserError", "dump", "inspect", "names", "policy"]
