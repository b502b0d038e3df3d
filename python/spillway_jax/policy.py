"""What happens to each named tensor between forward and backward.

A policy is a plain dict, name -> choice:

  keep       the tensor stays in device memory from forward to backward
  offload    it is copied to pinned host memory and back again
  recompute  it is dropped, and backward computes it once more

`jax.checkpoint` recomputes whatever nobody asked for, so a missing name means `recompute`.
"""

from collections.abc import Iterable, Mapping

from .errors import UserError

CHOICES = ("keep", "offload", "recompute")


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
            if choice not in CHOICES:
                raise UserError(
                    f"'{choice}' is no choice for '{name}': say {', '.join(CHOICES[:-1])} "
                    f"or {CHOICES[-1]}"
                )
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
    import jax

    return jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=names_with(policy, "keep"),
        names_which_can_be_offloaded=names_with(policy, "offload"),
        offload_src="device",
        offload_dst="pinned_host",
    )
