"""Texts to token ids with the `tokenizers` library itself: the only module that talks to it.

A text is cut into tokens once, whole; every limit is applied afterwards, so that users with other limits share it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.scoring.loading import read_json
from rag_eval_assets.scoring.stores import MemoryStore
from rag_eval_assets.weights.resolve import ResolvedModel

Ids = NDArray[np.int32]
"""Token ids of one text, special tokens included."""

_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Whole tokens wherever a text holds them, as in BERT's own tokenizer."""

_KEPT_IDS = 1_500_000
"""Token ids that are kept, of the newest texts: 6 MB. A window of pairs (`WINDOW_PAIRS`) asks twice for each text."""

_OVERHEAD_IDS = 64
"""What a kept text takes besides its ids, in ids."""

_KEY_BYTES = 16

_TEXTS_AT_ONCE = 256
"""Texts that are cut into tokens together: until they are done, the library holds some 100 bytes for every token."""


class Tokenizer:
    """A model's word pieces; safe to call from several threads.

    Attributes:
        first: id of the token that opens every text ([CLS]).
        last: id of the token that closes it ([SEP]).
        specials: how many tokens are added to a text.
    """

    specials = 2

    def __init__(self, model: ResolvedModel) -> None:
        self._tokenizer = _load(model)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        empty: list[int] = self._tokenizer.encode("").ids
        if len(empty) != self.specials:
            raise ConfigurationError(f"Model {model.pin.id!r}: its tokenizer frames texts with {len(empty)} tokens")
        self.first, self.last = empty
        self._kept: MemoryStore[Ids] = MemoryStore(_KEPT_IDS, lambda ids: len(ids) + _OVERHEAD_IDS)
        self._lock = threading.Lock()

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of each whole text; a text without tokens has the special ones alone.

        Raises:
            TypeError: a text is no Unicode.
        """
        parts = (texts[start : start + _TEXTS_AT_ONCE] for start in range(0, len(texts), _TEXTS_AT_ONCE))
        return [ids for part in parts for ids in self._ids(part)]

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        keys = [blake2b(text.encode("utf-8"), digest_size=_KEY_BYTES).digest() for text in texts]
        with self._lock:
            found = self._kept.get_many(keys)
        new = {key: text for key, text, ids in zip(keys, texts, found, strict=True) if ids is None}
        if not new:
            return [ids for ids in found if ids is not None]
        encodings: list[Any] = self._tokenizer.encode_batch_fast(list(new.values()))
        made = {key: np.array(entry.ids, np.int32) for key, entry in zip(new, encodings, strict=True)}
        with self._lock:
            self._kept.put_many(made)
        return [ids if ids is not None else made[key] for key, ids in zip(keys, found, strict=True)]

    def cut(self, ids: Ids, most: int) -> Ids:
        """The first `most` ids, the last of them being the closing one, as every BERT tokenizer truncates."""
        return ids if len(ids) <= most else np.append(ids[: most - 1], ids[-1])


def _load(model: ResolvedModel) -> Any:
    from tokenizers import Tokenizer as Loaded

    file: Path = model.path / "tokenizer.json"
    if file.is_file():
        return Loaded.from_file(str(file))
    return _from_vocabulary(model)


def _from_vocabulary(model: ResolvedModel) -> Any:
    """The word piece tokenizer of BERT, from `vocab.txt` and the settings beside it."""
    from tokenizers import Tokenizer as Loaded
    from tokenizers import models
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import BertProcessing

    settings = read_json(model, "tokenizer_config.json")
    word_piece: Any = models.WordPiece
    made: Any = Loaded(word_piece.from_file(str(model.path / "vocab.txt"), unk_token=_SPECIALS[1]))
    made.add_special_tokens(list(_SPECIALS))
    made.normalizer = BertNormalizer(
        lowercase=bool(settings.get("do_lower_case", True)),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    made.pre_tokenizer = BertPreTokenizer()
    first, last = _SPECIALS[2:4]
    made.post_processor = BertProcessing((last, made.token_to_id(last)), (first, made.token_to_id(first)))
    return made


@cache
def load_tokenizer(model: ResolvedModel) -> Tokenizer:
    """The tokenizer of `model`, loaded once per process."""
    return Tokenizer(model)
