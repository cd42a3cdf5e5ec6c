"""How much each token counts in BERTScore's means: all alike, or by inverse document frequency; special ones never."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag_eval_assets.scoring.encoder.tokens import Ids, Tokenizer


class EqualWeights:
    """Weight 1 for every token but the framing ones, wherever they stand."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._framing = np.array([tokenizer.first, tokenizer.last])

    def of(self, ids: Ids) -> NDArray[np.float64]:
        """The weight of each token, shape (tokens,)."""
        return (~np.isin(ids, self._framing)).astype(np.float64)


class InverseFrequencies:
    """log((n + 1) / (m + 1)) for a token that m of n references hold, as in bert-score.

    Framing tokens, which all references hold, so have weight 0.

    Args:
        references: token ids of every reference, cut as the model sees them; one that stands twice counts twice.
    """

    def __init__(self, references: Sequence[Ids]) -> None:
        counts = Counter(token for ids in references for token in set(ids.tolist()))
        documents = len(references) + 1
        self._weights = {token: math.log(documents / (count + 1)) for token, count in counts.items()}
        self._unseen = math.log(documents)

    def of(self, ids: Ids) -> NDArray[np.float64]:
        """The weight of each token, shape (tokens,)."""
        return np.array([self._weights.get(token, self._unseen) for token in ids.tolist()], np.float64)
