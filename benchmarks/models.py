"""The models that are measured: real weights where they are on this machine, else random ones of the same shape.

Speed does not depend on the values of weights; scores do, so with random weights they mean nothing.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.weights.hashes import file_sha256
from rag_eval_assets.weights.registry import TOKENIZER_FILES, WEIGHTS_FILE, ModelPin
from rag_eval_assets.weights.resolve import ResolvedModel, resolve

SENTENCES = "all-MiniLM-L6-v2"
"""Lends its tokenizer to random models: its vocabulary is that of bert-base-uncased."""

SHAPES: dict[str, dict[str, Any]] = {
    "bert-base": {},  # what transformers' BertConfig says where nothing is said
    "small": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
    "tiny": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
}
LAYERS = {"bert-base": 9, "small": 4, "tiny": 2, "minilm": 6}
_HASH_FILE = "weights.sha256"
REAL = {"bert-base": "bert-base-uncased", "minilm": SENTENCES}


@dataclass(frozen=True)
class Model:
    """A model to measure: its folder, the layer that BERTScore compares, and whether its weights are random."""

    name: str
    folder: Path
    layer: int
    random: bool

    def resolved(self) -> ResolvedModel:
        """The model as scorers take it. A random one has a pin too, so it is hashed when others are, and only then."""
        if not self.random:
            return resolve(REAL[self.name], allow_download=False)
        pin = ModelPin(
            id=f"random-{self.name}",
            repo_id="none",
            revision="0" * 40,
            weights_sha256=(self.folder / _HASH_FILE).read_text(encoding="ascii"),
            weights_bytes=None,
            bertscore_layer=self.layer,
            max_seq_length=256,
            package=None,
        )
        return ResolvedModel(pin, self.folder, "folder")

    def flops_per_token(self) -> float:
        """Operations of the linear layers for one token, which is nearly all of the work."""
        from transformers import AutoConfig

        config: Any = AutoConfig.from_pretrained(self.folder)
        hidden, inner = int(config.hidden_size), int(config.intermediate_size)
        return 2.0 * self.layer * (4 * hidden * hidden + 2 * hidden * inner)


def prepare(name: str, work: Path) -> Model:
    """The model `name`, made in the folder `work` where its weights are not on this machine.

    Raises:
        ConfigurationError: the packaged MiniLM, which lends its tokenizer, is missing.
    """
    if name in REAL:
        try:
            return Model(name, resolve(REAL[name], allow_download=False).path, LAYERS[name], random=False)
        except ConfigurationError:
            if name not in SHAPES:
                raise
    folder = work / "models" / name
    if not (folder / WEIGHTS_FILE).is_file():
        _make(name, folder)
    if not (folder / _HASH_FILE).is_file():
        (folder / _HASH_FILE).write_text(file_sha256(folder / WEIGHTS_FILE), encoding="ascii")
    return Model(name, folder, LAYERS[name], random=True)


def _make(name: str, folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    BertModel(BertConfig(**SHAPES[name])).save_pretrained(folder)
    sentences = resolve(SENTENCES, allow_download=False).path
    for file in (*TOKENIZER_FILES, "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(sentences / file, folder / file)


def vocabulary() -> Path:
    """BERT's `vocab.txt`."""
    return resolve(SENTENCES, allow_download=False).path / "vocab.txt"
