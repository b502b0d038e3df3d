"""The JAX side of Spillway: compile a step without its GPU, and say which tensors may move.

policy   name=keep|offload|recompute  ->  a `jax.checkpoint` policy
names    a traced step                ->  the `names.json` sidecar
target   a hardware profile           ->  the text that describes a GPU to XLA
aot      that text                    ->  devices that compile but do not run
dump     XLA's flags and reports      ->  a tidy dump folder and its `truth.json`

Only `aot`, and the functions of `policy` and `names` that say so, need JAX. Nothing here imports
it at module level, so XLA_FLAGS can still be set after importing this package.
"""
