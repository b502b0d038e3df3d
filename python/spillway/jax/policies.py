"""What happens to each named tensor between forward and backward.

A policy is a plain dict, name -> choice:

  keep       the tensor stays in device memory from forward to backward
  offload    it is copied to pinned host memory and back again
  recompute  it is dropped, and backward computes it once more

`jax.checkpoint` recomputes whatever nobody asked for, so a missing name means `recompute`.
"""

import os
import warnings
from collections.abc import Iterable, Mapping

from . import plans
from .errors import UserError, import_jax
from .sidecar import listed_names

CHOICES = plans.CHOICES

# What a plan may move that no checkpoint policy decides: where arguments of the step live.
STATE = ("optimizer", "params")


def policy(plan: Mapping | str | os.PathLike, names: Mapping | Iterable | None = None):
    """A plan as the policy that `jax.checkpoint(layer, policy=)` takes. Needs JAX.

    plan   name -> keep, offload or recompute; or the answer of `spillway plan --json`, or a plan
           file (YAML or JSON with a `policy`), read or as a path
    names  what `names` returned for the step, or a list of names. With it a name that the step
           does not have is an error; JAX would ignore it without a word, and move nothing

    A name that the plan does not hold is recomputed. Offloaded tensors go to pinned host memory.
    Warns if the plan says that it does not fit, or if it moves optimizer state or parameters, which
    is for `jax.device_put` to do and not for a checkpoint policy.

    Raises UserError for a file that cannot be read or is no plan, a choice that does not exist, an
    unknown name, and a plan that was made without names (it calls tensors r0, r1, ...).
    """
    known = None if names is None else listed_names(names)
    choices, remarks = checkpoint_choices(plan, known or ())
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return make_checkpoint_policy(choices if known is None else complete_policy(choices, known))


def checkpoint_choices(
    plan: Mapping | str | os.PathLike, known: Iterable[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """What of a plan is for a checkpoint policy, and what its reader should be told of the rest."""
    read, remarks = plans.read_plan(plan), []
    if not read.fits:
        remarks.append("this plan does not fit its budget; it is the one that misses it least")
    choices = dict(read.choices)
    for name in STATE:
        if name not in known and choices.pop(name, None) == "offload":
            remarks.append(
                f"'{name}' on the host is not part of a checkpoint policy: keep it there with "
                "shardings of memory_kind='pinned_host', and jax.device_put around its use"
            )
    return choices, remarks


def parse_policy(texts: Iterable[str]) -> dict[str, str]:
    """`["a=keep,b=offload", "c=recompute"]` -> `{"a": "keep", "b": "offload", "c": "recompute"}`.

    Each text holds assignments with commas between them; blanks around a word are ignored.

    Raises UserError for a word that is no assignment, a choice that does not exist, and a name
    that is given two different choices.
    """
    policy: dict[str, str] = {}
    for text in texts:
        for word in filter(None, (part.strip() for part in text.split(","))):
            name, equals, choice = (part.strip() for part in word.partition("="))
            if not equals or not name:
                raise UserError(f"'{word}' is not name=choice, for example query_proj=offload")
            plans.check_choice(name, choice)
            if policy.setdefault(name, choice) != choice:
                raise UserError(f"'{name}' is given both {policy[name]} and {choice}")
    return policy


def complete_policy(policy: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The policy with every known name in it, in the order of `known`.

    Raises UserError if the policy names a tensor that is not known. JAX itself ignores such a
    name without a word, and that is the commonest reason why an offload changes nothing.
    """
    known = list(known)
    unknown = [name for name in policy if name not in known]
    if unknown:
        raise UserError(
            f"the step has no checkpoint name {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(known)}"
        )
    return {name: policy.get(name, "recompute") for name in known}


def names_with(policy: Mapping[str, str], choice: str) -> list[str]:
    """The names that were given this choice, in the policy's order."""
    return [name for name, given in policy.items() if given == choice]


def make_checkpoint_policy(policy: Mapping[str, str]):
    """The policy as the callable that `jax.checkpoint(..., policy=)` takes. Needs JAX.

    Offloaded tensors go from `device` memory to `pinned_host`.
    """
    jax = import_jax()
    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=names_with(policy, "keep"),
        names_which_can_be_offloaded=names_with(policy, "offload"),
        offload_src="device",
        offload_dst="pinned_host",
    )
