"""BERTScore on the packed encoder: one block of pairs is matched while the next one is being encoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.scoring.blocks import ReadyPair
from rag_eval_assets.scoring.encoder.encoder import Encoded, PackedEncoder, Pending, Wanted
from rag_eval_assets.scoring.encoder.fingerprint import ids_key
from rag_eval_assets.scoring.encoder.tokens import Ids, Tokenizer
from rag_eval_assets.scoring.matching import NAMES, Side, best, match
from rag_eval_assets.scoring.stores import Stores

if TYPE_CHECKING:
    from torch import Tensor

    from rag_eval_assets.scoring.threads import Workers

_BLOCK_PAIRS_PER_WORKER = 32
"""Pairs of a block: with 2 workers and usual answers some 10,000 tokens, or 30 MB of rows at 768 dimensions. Two blocks
are in memory at a time, one being encoded and one being matched."""


class Weights(Protocol):
    """How much each token of a text counts."""

    def of(self, ids: Ids) -> NDArray[np.float64]:
        """The weight of each token, shape (tokens,)."""
        ...


@dataclass(frozen=True)
class _Planned:
    """A pair by its place among the caller's, and its texts by theirs among the distinct ones."""

    place: int
    candidate: int
    references: tuple[int, ...]

    @property
    def texts(self) -> tuple[int, ...]:
        return (self.candidate, *self.references)


class PackedBertScore:
    """The engine that computes BERTScore with this package's encoders.

    Args:
        encoder: the model up to the layer whose rows are compared.
        tokenizer: the model's tokenizer.
        max_tokens: tokens of a text that the model sees, special ones included.
        weights: how much each token counts.
        digest: digest of the encoder's fingerprint.
        stores: where rows of references are looked up and kept, and sentence vectors are left for others.
        baseline: precision, recall and F1 of unrelated texts, by which values are rescaled; None where they are not.
        vectors: whether the mean of these rows is the model's sentence vector too.
    """

    def __init__(
        self,
        encoder: PackedEncoder,
        tokenizer: Tokenizer,
        max_tokens: int,
        weights: Weights,
        digest: bytes,
        stores: Stores | None,
        *,
        baseline: Sequence[float] | None,
        vectors: bool,
    ) -> None:
        self._encoder = encoder
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._weights = weights
        self._digest = digest
        self._stores = stores
        self._baseline = baseline
        self._vectors = vectors and stores is not None

    @property
    def most_tokens(self) -> int:
        """Tokens of a text that the model sees, without special tokens."""
        return self._max_tokens - self._tokenizer.specials

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each whole text, without special tokens."""
        return [len(ids) - self._tokenizer.specials for ids in self._ids(texts)]

    def compute(self, pairs: Sequence[ReadyPair]) -> Iterator[tuple[int, dict[str, float]]]:
        """Place and values of each pair, in whatever order they are done."""
        texts, planned = self._plan(pairs)
        # By the longer side, so that a block's texts are of like length and are dropped with it.
        planned.sort(key=lambda pair: -max(len(texts[index]) for index in pair.texts))
        with self._encoder.workers() as workers:
            size = _BLOCK_PAIRS_PER_WORKER * workers.count
            blocks = [planned[start : start + size] for start in range(0, len(planned), size)]
            run = _Run(self, texts, blocks, workers)
            try:
                run.begin(0)
                for number in range(len(blocks)):
                    run.begin(number + 1)
                    yield from run.finish(number)
            finally:
                run.cancel()

    def _plan(self, pairs: Sequence[ReadyPair]) -> tuple[list[Ids], list[_Planned]]:
        distinct = list(dict.fromkeys(text for pair in pairs for text in (pair.candidate, *pair.references)))
        cut = [self._tokenizer.cut(ids, self._max_tokens) for ids in self._ids(distinct)]
        texts: list[Ids] = []
        places: dict[bytes, int] = {}
        place_of: dict[str, int] = {}
        for text, ids in zip(distinct, cut, strict=True):
            place = place_of[text] = places.setdefault(ids.tobytes(), len(texts))
            if place == len(texts):
                texts.append(ids)
        return texts, [
            _Planned(number, place_of[pair.candidate], tuple(place_of[text] for text in pair.references))
            for number, pair in enumerate(pairs)
        ]

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        # Stripped as bert-score does it: tokenizers of other families see blanks that BERT's does not.
        return self._tokenizer.ids([text.strip() for text in texts])

    def start(self, workers: Workers, texts: Sequence[Ids], *, last: bool) -> list[Pending]:
        """Begin to encode a block's texts."""
        return self._encoder.submit(workers, texts, Wanted(rows=True, vectors=self._vectors), last=last)

    def kept_rows(self, texts: Sequence[Ids]) -> list[Tensor | None]:
        """Rows of references that an earlier run has kept."""
        if self._stores is None or self._stores.tokens is None or not texts:
            return [None] * len(texts)
        import torch

        found = self._stores.tokens.get_many([ids_key(self._digest, "tokens", ids) for ids in texts])
        # Copied into a tensor's own memory: products over memory that begins elsewhere may round otherwise.
        return [None if rows is None else torch.tensor(rows) for rows in found]

    def keep(self, encoded: Sequence[tuple[Ids, Encoded]], references: Sequence[bool]) -> None:
        """Keep what others may ask for: rows of references, sentence vectors of all texts."""
        if self._stores is None:
            return
        if self._vectors:
            self._stores.vectors.put_many(
                {
                    ids_key(self._digest, "sentence", ids): entry.vector
                    for ids, entry in encoded
                    if entry.vector is not None
                }
            )
        if self._stores.tokens is not None:
            self._stores.tokens.put_many(
                {
                    ids_key(self._digest, "tokens", ids): entry.rows.cpu().numpy()
                    for (ids, entry), reference in zip(encoded, references, strict=True)
                    if reference and entry.rows is not None
                }
            )

    def values(self, candidate: tuple[Ids, Tensor], references: Sequence[tuple[Ids, Tensor]]) -> dict[str, float]:
        """The maximum of each value over a pair's references."""
        side = Side(candidate[1], self._weights.of(candidate[0]))
        rows = [match(side, Side(rows, self._weights.of(ids))) for ids, rows in references]
        values = best(rows)
        if self._baseline is not None:
            values = tuple((value - base) / (1 - base) for value, base in zip(values, self._baseline, strict=True))
        return dict(zip(NAMES, values, strict=True))


class _Run:
    """One pass over the blocks; holds the rows of the texts that are still needed, and no others."""

    def __init__(
        self, engine: PackedBertScore, texts: Sequence[Ids], blocks: Sequence[Sequence[_Planned]], workers: Workers
    ) -> None:
        self._engine = engine
        self._texts = texts
        self._blocks = blocks
        self._workers = workers
        self._references = {index for block in blocks for pair in block for index in pair.references}
        self._last_use = {index: n for n, block in enumerate(blocks) for pair in block for index in pair.texts}
        self._rows: dict[int, Tensor] = {}
        self._pending: list[dict[int, Pending]] = []

    def begin(self, number: int) -> None:
        """Begin to encode the texts of block `number`, where there is one, that nobody has begun."""
        if number >= len(self._blocks):
            return
        begun = {*self._rows, *(index for pending in self._pending for index in pending)}
        needed = dict.fromkeys(index for pair in self._blocks[number] for index in pair.texts if index not in begun)
        known = [index for index in needed if index in self._references]
        kept = self._engine.kept_rows([self._texts[index] for index in known])
        self._rows.update({index: rows for index, rows in zip(known, kept, strict=True) if rows is not None})
        new = [index for index in needed if index not in self._rows]
        last = number == len(self._blocks) - 1
        tasks = self._engine.start(self._workers, [self._texts[index] for index in new], last=last)
        self._pending.append(dict(zip(new, tasks, strict=True)))

    def cancel(self) -> None:
        """Begin nothing more; what is being computed ends by itself."""
        for pending in self._pending:
            for task in pending.values():
                task.batch.cancel()

    def finish(self, number: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Match the pairs of block `number` and drop what no later block needs."""
        encoded = {index: task.result() for index, task in self._pending[0].items()}
        del self._pending[0]
        self._engine.keep(
            [(self._texts[index], entry) for index, entry in encoded.items()],
            [index in self._references for index in encoded],
        )
        self._rows.update({index: entry.rows for index, entry in encoded.items() if entry.rows is not None})
        del encoded
        for pair in self._blocks[number]:
            candidate, *references = [(self._texts[index], self._rows[index]) for index in pair.texts]
            yield pair.place, self._engine.values(candidate, references)
        # What lives on gets memory of its own: a view would keep its whole batch.
        self._rows = {
            index: rows.clone() if rows.untyped_storage().nbytes() > rows.nbytes else rows
            for index, rows in self._rows.items()
            if self._last_use[index] > number
        }
