"""The identity of an encoder, and the cache keys made from it. Computed from files and versions; torch is not imported.

Two encoders with equal fingerprints give equal bits for equal texts, which is what makes their values storable.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_eval_assets.canonical import canonical_json
from rag_eval_assets.scoring.base import Pair, library_versions
from rag_eval_assets.scoring.encoder.device import Device
from rag_eval_assets.scoring.encoder.shape import bert_shape
from rag_eval_assets.weights.hashes import file_sha256
from rag_eval_assets.weights.registry import TOKENIZER_FILES
from rag_eval_assets.weights.resolve import ResolvedModel

if TYPE_CHECKING:
    from rag_eval_assets.scoring.encoder.tokens import Ids

ENGINE_VERSION = "1"
"""Raised whenever the same text would get other bits: kernels, their order, precision, pooling, normalisation."""

_KEY_BYTES = 16
_SETTINGS = ("config.json", "tokenizer_config.json", "modules.json", "1_Pooling/config.json")


@dataclass(frozen=True)
class Fingerprint:
    """All that an encoder's output for a text depends on, except the text.

    Attributes:
        weights_sha256: hash of the weights' file.
        layer: 1-based layer whose output it is.
        precision: fp32 or bf16.
        files: hash by name of the files that settings and vocabulary come from.
        device: kind of device.
        device_name: instruction sets, or the GPU's name.
        libraries: versions of the libraries that compute.
        engine: version of this code.
    """

    weights_sha256: str
    layer: int
    precision: str
    files: tuple[tuple[str, str], ...]
    device: str
    device_name: str
    libraries: tuple[tuple[str, str], ...]
    engine: str = ENGINE_VERSION

    def describe(self) -> dict[str, Any]:
        """The parts, as JSON."""
        parts = asdict(self)
        return {**parts, "files": dict(self.files), "libraries": dict(self.libraries)}

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 over all parts."""
        return hashlib.sha256(canonical_json(self.describe())).digest()


def fingerprint(model: ResolvedModel, *, layer: int, precision: str, device: Device) -> Fingerprint:
    """The fingerprint of an encoder. Its token limit is no part of it: vectors belong to a text's tokens as cut."""
    names = (*_SETTINGS, *TOKENIZER_FILES)
    files = tuple((name, file_sha256(model.path / name)) for name in names if (model.path / name).is_file())
    others = () if bert_shape(model) is not None else ("transformers",)
    return Fingerprint(
        weights_sha256=model.pin.weights_sha256,
        layer=layer,
        precision=precision,
        files=files,
        device=device.kind,
        device_name=device.name,
        libraries=tuple(library_versions("torch", "tokenizers", *others).items()),
    )


def pair_key(scorer: bytes, pair: Pair) -> bytes:
    """Key of what the scorer with the digest `scorer` makes of `pair`, whose texts are all Unicode."""
    digest = hashlib.blake2b(scorer, digest_size=_KEY_BYTES)
    for text in (pair.candidate, *pair.references):
        encoded = (text or "").encode("utf-8")
        # Lengths first, so that borders between texts cannot shift.
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.digest()


def ids_key(encoder: bytes, kind: str, ids: Ids) -> bytes:
    """Key of the vectors (`kind`: tokens or sentence) of a text that was cut into the token ids `ids`."""
    digest = hashlib.blake2b(encoder, digest_size=_KEY_BYTES, person=kind.encode("ascii"))
    digest.update(ids.tobytes())
    return digest.digest()
