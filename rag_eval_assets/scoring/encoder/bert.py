"""The forward pass of a BERT encoder over a packed batch: Devlin et al., 2018, arXiv:1810.04805, up to some layer.

Every operation works on each row, or each text, alone. That, and not luck, is why a text's result does not depend on
what else is in the batch; whoever changes an operation runs the property tests of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_assets.scoring.encoder.kernels import filled_rows, linear
from rag_eval_assets.scoring.encoder.packing import Group
from rag_eval_assets.scoring.encoder.shape import BertShape
from rag_eval_assets.scoring.encoder.weights import Tensors, open_tensors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rag_eval_assets.scoring.encoder.kernels import Linear


@dataclass(frozen=True)
class _Norm:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, rows: Tensor) -> Tensor:
        import torch

        return torch.layer_norm(rows, (rows.shape[1],), self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class _Layer:
    queries_keys_values: Linear
    attended: Linear
    attended_norm: _Norm
    widened: Linear
    narrowed: Linear
    narrowed_norm: _Norm


class Bert:
    """A loaded encoder.

    Args:
        file: the weights.
        shape: the model's shape.
        layer: the last layer that is computed, 1-based; later ones are not read.
        dtype: what it computes in.
        device: where it computes, as torch names it.
    """

    def __init__(self, file: Path, shape: BertShape, layer: int, dtype: torch.dtype, device: str) -> None:
        self._shape = shape
        self._dtype = dtype
        self._device = device
        self._layers: list[_Layer] = []
        for number in range(layer):
            # Opened for each layer: its pages then leave memory before the next one's enter.
            with open_tensors(file) as tensors:
                self._layers.append(self._read_layer(tensors, f"encoder.layer.{number}."))
        # This one stays mapped: of the words only those in use enter memory.
        with open_tensors(file) as tensors:
            self._words = tensors.get("embeddings.word_embeddings.weight").to(device)
            positions = tensors.get("embeddings.position_embeddings.weight").float()
            # One segment: its embedding is the same for every token.
            segment = tensors.get("embeddings.token_type_embeddings.weight")[0].float()
            self._positions = (positions + segment).to(device)
            weight, bias = (tensors.get(f"embeddings.LayerNorm.{part}").float() for part in ("weight", "bias"))
            self._norm = _Norm(weight.to(device), bias.to(device), shape.epsilon)

    def forward(self, ids: Tensor, groups: Sequence[Group]) -> Tensor:
        """The last layer's rows, float32, shape (tokens, hidden), for the token ids (int64) of a batch's texts."""
        import torch

        tokens = len(ids)
        ids = torch.nn.functional.pad(ids, (0, filled_rows(tokens, self._dtype) - tokens))
        rows = self._embed(ids, groups).to(self._dtype)
        for layer in self._layers:
            attended = layer.attended(self._attend(layer.queries_keys_values(rows), groups))
            rows = layer.attended_norm(attended.add_(rows))
            rows = layer.narrowed_norm(layer.narrowed(layer.widened(rows)).add_(rows))
        return rows[:tokens].float()

    def _embed(self, ids: Tensor, groups: Sequence[Group]) -> Tensor:
        rows = self._words[ids.to(self._device)].float()
        start = 0
        for group in groups:
            end = start + group.texts * group.length
            texts = rows[start:end].view(group.texts, group.length, -1)
            texts += self._positions[: group.length]
            start = end
        return self._norm(rows)

    def _attend(self, projected: Tensor, groups: Sequence[Group]) -> Tensor:
        """Attention within each text; `projected` holds queries, keys and values side by side."""
        import torch

        shape = self._shape
        size = shape.hidden // shape.heads
        attended = projected.new_empty((len(projected), shape.hidden))
        start = 0
        for group in groups:
            end = start + group.texts * group.length
            parts = projected[start:end].view(group.texts, group.length, 3, shape.heads, size).permute(2, 0, 3, 1, 4)
            mixed = torch.nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            attended[start:end].view(group.texts, group.length, shape.heads, size).copy_(mixed.transpose(1, 2))
            start = end
        attended[start:].zero_()
        return attended

    def _read_layer(self, tensors: Tensors, at: str) -> _Layer:
        import torch

        parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
        weight = torch.cat([tensors.get(f"{part}.weight") for part in parts])
        bias = torch.cat([tensors.get(f"{part}.bias") for part in parts])
        return _Layer(
            queries_keys_values=linear(weight.to(self._device, self._dtype), self._placed(bias)),
            attended=self._read_linear(tensors, f"{at}attention.output.dense"),
            attended_norm=self._read_norm(tensors, f"{at}attention.output.LayerNorm"),
            widened=self._read_linear(tensors, f"{at}intermediate.dense", gelu=True),
            narrowed=self._read_linear(tensors, f"{at}output.dense"),
            narrowed_norm=self._read_norm(tensors, f"{at}output.LayerNorm"),
        )

    def _read_linear(self, tensors: Tensors, name: str, *, gelu: bool = False) -> Linear:
        weight, bias = tensors.get(f"{name}.weight"), tensors.get(f"{name}.bias")
        return linear(weight.to(self._device, self._dtype), self._placed(bias), gelu=gelu)

    def _read_norm(self, tensors: Tensors, name: str) -> _Norm:
        weight, bias = self._placed(tensors.get(f"{name}.weight")), self._placed(tensors.get(f"{name}.bias"))
        return _Norm(weight, bias, self._shape.epsilon)

    def _placed(self, tensor: Tensor) -> Tensor:
        # A copy, for what is mapped from the file would hold all of its pages.
        return tensor.to(self._device, self._dtype, copy=True)
