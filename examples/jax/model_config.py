"""How big the example step is, and which of its tensors have names. Needs no JAX."""

import dataclasses

# The checkpoint names of the step, in the order in which a layer makes them. MaxText has the same
# names for the same tensors. train_step.py says at each one what it is.
NAMES = (
    "decoder_layer_input",
    "query_proj",
    "key_proj",
    "value_proj",
    "mlpwi_0",
    "mlpwi_1",
)


def _size(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True)
class Config:
    """The step's sizes. The defaults: Llama 3.1 8B, 8 sequences of 8192 on each of 8 GPUs."""

    layers: int = _size(32, "decoder layers, one iteration of the scan each")
    d_model: int = _size(4096, "width of the residual stream")
    heads: int = _size(32, "query heads")
    kv_heads: int = _size(8, "key and value heads; each serves heads/kv_heads query heads")
    head_dim: int = _size(128, "width of one head")
    ff: int = _size(14336, "width of the MLP's two inner projections")
    vocab: int = _size(128256, "tokens in the vocabulary")
    batch: int = _size(64, "sequences in one step, over all devices")
    seq: int = _size(8192, "tokens in one sequence")
    loss_chunks: int = _size(16, "slices of the sequence whose logits exist at a time")
    attention: str = _size("cudnn", "cudnn: one fused kernel; xla: plain einsum and softmax")

    def check(self, devices: int) -> None:
        """Raises ValueError, naming the sizes that clash, if the step cannot be built."""
        for field in dataclasses.fields(self):
            if field.type in (int, "int") and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1")
        for whole, part in (
            ("batch", "devices"),
            ("d_model", "devices"),
            ("heads", "kv_heads"),
            ("seq", "loss_chunks"),
            ("head_dim", "2"),
        ):
            size = getattr(self, whole)
            parts = {"devices": devices, "2": 2}.get(part) or getattr(self, part)
            if size % parts:
                raise ValueError(
                    f"{whole} ({size}) must be a multiple of {part}"
                    + ("" if part == "2" else f" ({parts})")
                )
