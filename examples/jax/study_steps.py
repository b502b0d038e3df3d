"""Training steps for studies of XLA's scheduler: small, of known shape, scanned or unrolled.

Each is a gradient step of a stack of layers under `jax.checkpoint` with a policy. `llama` is the
decoder layer of train_step.py; `mlp` is two matrix products, so that the width alone decides how
much there is to compute for each byte that is moved.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

import train_step
from model_config import Config

COMPUTE = jnp.bfloat16


@dataclasses.dataclass(frozen=True)
class Mlp:
    """x + relu(x w_in) w_out, `layers` times. The inner activation is the one that may move."""

    layers: int
    width: int
    inner: int
    tokens: int  # over all devices

    names = ("layer_input", "inner")

    def weights(self):
        return {"in": ((self.width, self.inner), 0), "out": ((self.inner, self.width), 1)}

    def tokens_shape(self):
        return (self.tokens, self.width)

    def layer(self, x, w):
        x = checkpoint_name(x, "layer_input")
        h = checkpoint_name(jax.nn.relu(x @ w["in"]), "inner")
        return x + h @ w["out"]


@dataclasses.dataclass(frozen=True)
class Llama:
    """The decoder layer of train_step.py, without embedding and head."""

    config: Config

    names = ("decoder_layer_input", "query_proj", "key_proj", "value_proj", "mlpwi_0", "mlpwi_1")

    @property
    def layers(self):
        return self.config.layers

    def weights(self):
        layers = train_step.weights(self.config)["layers"]
        return {
            name: (weight.shape[1:], None if weight.split is None else weight.split - 1)
            for name, weight in layers.items()
        }

    def tokens_shape(self):
        return (self.config.batch, self.config.seq, self.config.d_model)

    def layer(self, x, w):
        return train_step.decoder_layer(self.config, x, w)


def make_step(model, mesh, policy, unroll: bool):
    """(step, its abstract arguments). The step returns the loss and the updated weights, whose
    buffers are donated; unrolled, each layer has weights of its own, as MaxText has them."""
    split = NamedSharding(mesh, PartitionSpec("fsdp"))

    # Without barriers XLA would merge an unrolled layer with its own recomputation, and drop the
    # round trip through the host without a word.
    @functools.partial(jax.checkpoint, policy=policy, prevent_cse=unroll)
    def body(x, w):
        return model.layer(jax.lax.with_sharding_constraint(x, split), w)

    def loss(weights, x):
        if unroll:
            for w in weights:
                x = body(x, w)
        else:
            x, _ = jax.lax.scan(lambda x, w: (body(x, w), None), x, weights)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def study_step(weights, x):
        value, gradient = jax.value_and_grad(loss)(weights, x)
        return value, jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradient)

    def leaf(entry, stacked):
        shape, axis = entry
        axes = [None] * len(shape)
        if axis is not None:
            axes[axis] = "fsdp"
        if stacked:
            shape, axes = (model.layers, *shape), [None, *axes]
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(shape, COMPUTE,
                                    sharding=sharding)  # fmt: skip

    entries = model.weights()
    one = {name: leaf(entry, not unroll) for name, entry in entries.items()}
    weights = [one] * model.layers if unroll else one
    x = jax.ShapeDtypeStruct(model.tokens_shape(), COMPUTE, sharding=split)
    shardings = jax.tree.map(lambda w: w.sharding, weights)
    everywhere = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(study_step, donate_argnums=0, out_shardings=(everywhere, shardings))
    return step, (weights, x)
