"""One training step of a Llama-like model, in plain JAX: the program the examples compile.

    state, metrics = step(state, tokens)        step = make_train_step(config, mesh, policy)

Grouped-query attention, SwiGLU, RMSNorm, rotary positions, one `lax.scan` over the layers, AdamW.

Where things live. Weights and AdamW's two moments are float32 and are split over all devices
along one axis, "fsdp"; activations are split over the same axis by batch. XLA therefore gathers a
layer's weights before the layer uses them and scatters their gradient after. Weights are float32
because one AdamW update is smaller than the 8 bits of a bfloat16 weight can hold; arithmetic and
gathers are bfloat16.

What may move. `checkpoint_name` marks six tensors of a layer. Each layer runs under
`jax.checkpoint`, so what backward needs is either a marked tensor that the policy saves, in device
or in host memory, or it is computed again.

Left out: dropout, learning-rate schedule, data loading, anything that prints.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from model_config import Config

COMPUTE = jnp.bfloat16
ROPE_BASE = 500_000.0
RMS_EPSILON = 1e-6

LEARNING_RATE, BETA_1, BETA_2, ADAM_EPSILON = 3e-4, 0.9, 0.95, 1e-8
WEIGHT_DECAY, CLIP_NORM = 0.1, 1.0


class TrainState(NamedTuple):
    """Everything a step reads and replaces; its buffers are donated."""

    params: dict
    mean: dict  # AdamW's first moment, shaped like params
    square: dict  # AdamW's second moment
    count: jax.Array  # steps done, int32


class Weight:
    """How one weight looks before it exists. `split` is the axis that is divided over devices."""

    def __init__(self, shape: tuple[int, ...], split: int | None, gain: bool = False):
        self.shape, self.split, self.gain = shape, split, gain

    def sharding(self, mesh: Mesh | AbstractMesh) -> NamedSharding:
        axes = [None] * len(self.shape)
        if self.split is not None:
            axes[self.split] = "fsdp"
        return NamedSharding(mesh, PartitionSpec(*axes))


def weights(c: Config) -> dict:
    """The model's weights. Those of a layer carry the layer as axis 0, which `scan` walks."""
    layer = {
        "attention_norm": Weight((c.layers, c.d_model), None, gain=True),
        "query": Weight((c.layers, c.d_model, c.heads, c.head_dim), 1),
        "key": Weight((c.layers, c.d_model, c.kv_heads, c.head_dim), 1),
        "value": Weight((c.layers, c.d_model, c.kv_heads, c.head_dim), 1),
        "out": Weight((c.layers, c.heads, c.head_dim, c.d_model), 3),
        "mlp_norm": Weight((c.layers, c.d_model), None, gain=True),
        "gate": Weight((c.layers, c.d_model, c.ff), 1),
        "up": Weight((c.layers, c.d_model, c.ff), 1),
        "down": Weight((c.layers, c.ff, c.d_model), 2),
    }
    return {
        "embedding": Weight((c.vocab, c.d_model), 1),
        "layers": layer,
        "final_norm": Weight((c.d_model,), None, gain=True),
        "head": Weight((c.d_model, c.vocab), 0),
    }


# --- forward ---------------------------------------------------------------------------------


def rms_norm(x, gain):
    """Scales each token to unit mean square, in float32, then by `gain`."""
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + RMS_EPSILON)
    return (wide * scale).astype(COMPUTE) * gain.astype(COMPUTE)


def rotate(x):
    """Rotary positions on [batch, seq, heads, head_dim]: pairs (i, i + head_dim/2) are turned."""
    half = x.shape[-1] // 2
    frequency = ROPE_BASE ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * frequency
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)


def project(x, weight, equation):
    """A matmul in bfloat16. Casting before the product lets XLA gather 2 bytes a weight, not 4."""
    return jnp.einsum(equation, x, weight.astype(COMPUTE))


def decoder_layer(c: Config, x, w):
    """One layer; `x` is [batch, seq, d_model]. The comments give the shapes of named tensors."""
    x = checkpoint_name(x, "decoder_layer_input")  # [batch, seq, d_model]

    h = rms_norm(x, w["attention_norm"])
    q = rotate(project(h, w["query"], "bsd,dhk->bshk"))
    k = rotate(project(h, w["key"], "bsd,dhk->bshk"))
    v = project(h, w["value"], "bsd,dhk->bshk")
    q = checkpoint_name(q, "query_proj")  # [batch, seq, heads, head_dim]
    k = checkpoint_name(k, "key_proj")  # [batch, seq, kv_heads, head_dim]
    v = checkpoint_name(v, "value_proj")  # [batch, seq, kv_heads, head_dim]
    context = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=c.attention)
    x = x + project(context, w["out"], "bshk,hkd->bsd")

    h = rms_norm(x, w["mlp_norm"])
    gate = checkpoint_name(project(h, w["gate"], "bsd,df->bsf"), "mlpwi_0")  # [batch, seq, ff]
    up = checkpoint_name(project(h, w["up"], "bsd,df->bsf"), "mlpwi_1")  # [batch, seq, ff]
    return x + project(jax.nn.silu(gate) * up, w["down"], "bsf,fd->bsd")


def mean_loss(c: Config, x, head, targets):
    """Mean cross-entropy of [batch, seq, d_model] against [batch, seq] token ids.

    The logits of a whole sequence would be the largest tensor of the step by far and hide what the
    example is about. So a scan makes them for one slice of the sequence at a time, and backward
    makes them again.
    """

    def chunk_loss(total, part):
        x, targets = part
        logits = project(x, head, "bsd,dv->bsv").astype(jnp.float32)
        picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return total + jnp.sum(jax.nn.logsumexp(logits, axis=-1) - picked), None

    def chunked(a):  # [batch, seq, ...] -> [chunks, batch, seq/chunks, ...]
        parts = a.reshape(c.batch, c.loss_chunks, c.seq // c.loss_chunks, *a.shape[2:])
        return jnp.swapaxes(parts, 0, 1)

    total, _ = jax.lax.scan(
        jax.checkpoint(chunk_loss, prevent_cse=False), 0.0, (chunked(x), chunked(targets))
    )
    return total / targets.size


def model_loss(c: Config, batch_sharding, policy, params, tokens):
    """Loss of [batch, seq + 1] token ids: each token but the last predicts the next one."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]

    # A scan's body is compiled once and cannot be merged with its own recomputation, so the
    # barriers that prevent_cse would add are not needed.
    @functools.partial(jax.checkpoint, policy=policy, prevent_cse=False)
    def body(x, w):
        x = jax.lax.with_sharding_constraint(x, batch_sharding)
        return decoder_layer(c, x, w), None

    x = params["embedding"].astype(COMPUTE)[inputs]
    x, _ = jax.lax.scan(body, x, params["layers"])
    return mean_loss(c, rms_norm(x, params["final_norm"]), params["head"], targets)


# --- update ----------------------------------------------------------------------------------


def adamw(c: Config, state: TrainState, gradient: dict):
    """Clips the gradient by its global norm, then AdamW. Returns (new state, norm)."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradient)))
    clip = CLIP_NORM / jnp.maximum(norm, CLIP_NORM)
    count = state.count + 1
    bias_1 = 1 - BETA_1 ** count.astype(jnp.float32)
    bias_2 = 1 - BETA_2 ** count.astype(jnp.float32)

    def update(weight, p, g, mean, square):
        g = g * clip
        mean = BETA_1 * mean + (1 - BETA_1) * g
        square = BETA_2 * square + (1 - BETA_2) * jnp.square(g)
        change = (mean / bias_1) / (jnp.sqrt(square / bias_2) + ADAM_EPSILON)
        decay = 0.0 if weight.gain else WEIGHT_DECAY
        return p - LEARNING_RATE * (change + decay * p), mean, square

    shape = weights(c)
    new = jax.tree.map(update, shape, state.params, gradient, state.mean, state.square)
    params, mean, square = jax.tree.transpose(
        jax.tree.structure(shape), jax.tree.structure((0, 0, 0)), new
    )
    return TrainState(params, mean, square, count), norm


# --- the step and its arguments --------------------------------------------------------------


def make_train_step(c: Config, mesh: Mesh | AbstractMesh, policy):
    """The jitted step for a mesh with one axis, "fsdp".

    `policy` is what `jax.checkpoint` takes. The step maps (TrainState, tokens) to (TrainState,
    {"loss", "gradient_norm"}); tokens are int32 [batch, seq + 1], and the state is donated.
    """
    batch_sharding = NamedSharding(mesh, PartitionSpec("fsdp"))
    loss = functools.partial(model_loss, c, batch_sharding, policy)

    def train_step(state: TrainState, tokens):
        value, gradient = jax.value_and_grad(loss)(state.params, tokens)
        state, norm = adamw(c, state, gradient)
        return state, {"loss": value, "gradient_norm": norm}

    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.jit(
        train_step, donate_argnums=0, out_shardings=(state_shardings(c, mesh), everywhere)
    )


def state_shardings(c: Config, mesh: Mesh | AbstractMesh) -> TrainState:
    """Where each leaf of the state lives."""
    split = jax.tree.map(lambda weight: weight.sharding(mesh), weights(c))
    return TrainState(split, split, split, NamedSharding(mesh, PartitionSpec()))


def abstract_arguments(c: Config, mesh: Mesh | AbstractMesh):
    """(state, tokens) as shapes: enough to trace and compile the step, nothing is allocated."""

    def leaf(weight):
        return jax.ShapeDtypeStruct(weight.shape, jnp.float32, sharding=weight.sharding(mesh))

    params = jax.tree.map(leaf, weights(c))
    count = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec()))
    tokens = jax.ShapeDtypeStruct(
        (c.batch, c.seq + 1), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec("fsdp"))
    )
    return TrainState(params, params, params, count), tokens


def init_state(c: Config, key) -> TrainState:
    """A state to start training from: gains 1, weights normal with deviation 0.02."""
    leaves, tree = jax.tree.flatten(weights(c))
    keys = jax.random.split(key, len(leaves))
    params = tree.unflatten(
        jnp.ones(weight.shape) if weight.gain else 0.02 * jax.random.normal(key, weight.shape)
        for weight, key in zip(leaves, keys)
    )
    zeros = functools.partial(jax.tree.map, jnp.zeros_like)
    return TrainState(params, zeros(params), zeros(params), jnp.int32(0))
