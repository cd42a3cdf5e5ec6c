"""Encoders of other architectures: transformers' forward pass over texts of equal length, on this package's linears.

A text's result depends on that text alone, as in `bert`: no padding, no mask, and products whose rows do not show how
many there are. With the library's own linear layers that fails for texts of a few tokens (ADR 0005).
"""

# transformers' signatures are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_eval_assets.scoring.encoder.kernels import filled_rows, linear
from rag_eval_assets.scoring.encoder.packing import Group
from rag_eval_assets.scoring.loading import quiet_loading
from rag_eval_assets.weights.resolve import ResolvedModel

if TYPE_CHECKING:
    from torch import Tensor

    from rag_eval_assets.scoring.encoder.kernels import Linear


class Transformer:
    """A loaded encoder, in fp32.

    Args:
        model: the model, of one of `shape.OTHER_TYPES`.
        layer: the last layer that is computed, 1-based; later ones are not built, as in bert-score.
        device: where it computes, as torch names it.
    """

    def __init__(self, model: ResolvedModel, layer: int, device: str) -> None:
        import torch

        with quiet_loading():
            from transformers import AutoConfig, AutoModel

            config: Any = AutoConfig.from_pretrained(model.path, local_files_only=True)
            config.num_hidden_layers = layer
            loaded: Any = AutoModel.from_pretrained(
                model.path, config=config, dtype=torch.float32, local_files_only=True, use_safetensors=True
            )
        if getattr(loaded, "pooler", None) is not None:
            loaded.pooler = None
        self._device = device
        self._model = loaded.eval().to(device)
        for module in self._model.modules():
            if type(module) is torch.nn.Linear:
                _replace(module)

    def forward(self, ids: Tensor, groups: Sequence[Group]) -> Tensor:
        """The last layer's rows, float32, shape (tokens, hidden), for the token ids (int64) of a batch's texts."""
        import torch

        parts: list[Tensor] = []
        start = 0
        for group in groups:
            end = start + group.texts * group.length
            texts = ids[start:end].view(group.texts, group.length).to(self._device)
            parts.append(self._model(input_ids=texts, return_dict=True).last_hidden_state.flatten(0, 1))
            start = end
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _replace(module: Any) -> None:
    """Let `module` compute with `kernels.linear`, and drop its own weights."""
    product = linear(module.weight.detach(), module.bias.detach())
    module.register_parameter("weight", None)
    module.register_parameter("bias", None)
    module.forward = _over_rows(product)


def _over_rows(product: Linear) -> Linear:
    def forward(inputs: Tensor) -> Tensor:
        import torch

        rows = inputs.reshape(-1, inputs.shape[-1])
        missing = filled_rows(len(rows), rows.dtype) - len(rows)
        made = product(torch.nn.functional.pad(rows, (0, 0, 0, missing)) if missing else rows)
        return made[: len(rows)].view(*inputs.shape[:-1], made.shape[-1])

    return forward
