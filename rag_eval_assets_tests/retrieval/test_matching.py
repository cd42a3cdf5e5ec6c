"""When a retrieved passage counts as the ground-truth context."""

from __future__ import annotations

import itertools
import time
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.retrieval.matching import FoldedText, MatchSettings, match_passages, text_matches
from rag_eval_assets.status import MatchStatus

unhurried = settings(deadline=None)  # a busy machine is no failure

RIVER = (
    "The river rises in the northern hills, crosses three provinces and reaches the sea after four hundred "
    "kilometres. Barges carry timber and grain on its lower half. In dry summers the upper half is closed to boats "
    "and the water board rations what the farms may take."
)
BAKERY = (
    "A bakery keeps its sourdough alive by feeding it flour and water every morning. Bakers judge it by smell: "
    "a sharp note means that it is hungry, a sweet one that it was fed an hour ago."
)
SETTINGS = MatchSettings()

words = st.lists(st.text(alphabet="abcdefghijklmnop", min_size=1, max_size=6), min_size=20, max_size=80)


def matches(context: str, passage: str, settings: MatchSettings = SETTINGS) -> bool:
    return text_matches(FoldedText(context), FoldedText(passage), settings)


def passage(text: str | None = None, document_id: str | None = None) -> dict[str, object]:
    return {"id": None, "document_id": document_id, "text": text, "score": 0.5}


def distinct(items: list[str]) -> list[str]:
    """The words made distinct by position, so that no n-gram occurs twice by chance."""
    return [f"{item}{position}" for position, item in enumerate(items)]


class TestText:
    def test_a_chunk_of_the_context_matches(self) -> None:
        assert matches(RIVER, "Barges carry timber and grain on its lower half.")

    def test_a_chunk_cut_within_words_at_both_ends_matches(self) -> None:
        assert matches(RIVER, RIVER[10:85], MatchSettings(ngram_threshold=1.0))

    def test_seven_words_of_the_context_do_not_match_and_eight_do(self) -> None:
        assert not matches(RIVER, "carry timber and grain on its lower")
        assert matches(RIVER, "carry timber and grain on its lower half")

    def test_three_common_words_do_not_match(self) -> None:
        assert not matches(RIVER, "in the northern")

    def test_a_passage_that_holds_the_whole_context_matches_up_to_four_lengths(self) -> None:
        filler = " ".join(f"filler{i}" for i in range(500))
        room = 4 * len(RIVER) - len(RIVER) - 1
        assert matches(RIVER, f"{RIVER} {filler[:room]}")
        assert not matches(RIVER, f"{RIVER} {filler[: room + 1]}")

    def test_half_of_the_five_grams_match_and_fewer_do_not(self) -> None:
        # Words 1..12 of the context and k new ones after them: 8 shared 5-grams of 8 + k.
        context = [f"w{i}" for i in range(40)]
        new = [f"n{i}" for i in range(9)]
        assert matches(" ".join(context), " ".join(context[:12] + new[:8]))
        assert not matches(" ".join(context), " ".join(context[:12] + new[:9]))

    def test_other_texts_do_not_match(self) -> None:
        assert not matches(RIVER, BAKERY)
        assert not matches(BAKERY, RIVER)

    @pytest.mark.parametrize(
        "folded",
        [
            pytest.param(RIVER.upper(), id="case"),
            pytest.param(RIVER.replace(" ", "\n\t  "), id="white space"),
            pytest.param(RIVER.replace(" ", "\u00a0"), id="no-break space"),
            pytest.param("".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in RIVER), id="full width"),
            pytest.param(RIVER.replace(".", "").replace(",", ""), id="punctuation at words"),
        ],
    )
    def test_folding_takes_no_notice_of(self, folded: str) -> None:
        strict = MatchSettings(ngram_threshold=1.0)
        assert matches(RIVER, folded, strict)
        assert matches(folded, RIVER, strict)

    def test_composed_and_decomposed_accents_are_one_text(self) -> None:
        text = "Der Müller öffnet früh am Morgen die Tür der alten Mühle für späte Gäste"
        assert matches(text, unicodedata.normalize("NFD", text), MatchSettings(ngram_threshold=1.0))

    def test_characters_are_words_where_a_script_has_no_spaces(self) -> None:
        context = "東京都は日本の首都であり、世界最大級の都市圏を形成している。"
        assert matches(context, "日本の首都であり、世界最大級の都市圏")
        assert not matches(context, "日本の")

    def test_a_short_context_matches_only_as_a_whole(self) -> None:
        context = "Closed on public holidays"
        assert matches(context, "closed on public holidays.")
        assert matches(context, "Note: closed on public holidays and Sundays")
        assert not matches(context, "It is closed on public occasions and on all school holidays")
        assert not matches(context, "on public holidays")
        assert not matches(context, f"{context} {'and on many further days ' * 8}")

    def test_a_short_context_inside_longer_words_does_not_match(self) -> None:
        assert not matches("art deal", "they start dealing")

    @pytest.mark.parametrize("blank", ["", "  \n", "\u200b", "...", "- - -"])
    def test_texts_without_a_word_never_match(self, blank: str) -> None:
        assert not matches(blank, RIVER)
        assert not matches(RIVER, blank)
        assert not matches(blank, blank)


class TestTextProperties:
    @unhurried
    @given(words, st.data())
    def test_every_chunk_of_eight_words_matches(self, items: list[str], data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(items) - 8))
        end = data.draw(st.integers(start + 8, len(items)))
        context = " ".join(items)
        chunk = " ".join(items[start:end])
        assert matches(context, chunk)

    @settings(max_examples=25, deadline=None)
    @given(st.lists(words, min_size=8, max_size=12), st.data())
    def test_a_giant_passage_that_holds_many_contexts_matches_none(
        self, contexts: list[list[str]], data: st.DataObject
    ) -> None:
        texts = [" ".join(items) for items in contexts]
        giant = " ".join(texts)
        chosen = data.draw(st.sampled_from(texts))
        assume(len(giant) > 4 * len(chosen))
        assert not matches(chosen, giant)

    @unhurried
    @given(words, st.randoms(use_true_random=False))
    def test_a_context_in_another_word_order_does_not_match(self, items: list[str], random) -> None:
        context = distinct(items)
        shuffled = [context[i] for i in range(0, len(context), 2)] + [context[i] for i in range(1, len(context), 2)]
        random.shuffle(shuffled)
        kept = sum(context.index(b) - context.index(a) == 1 for a, b in itertools.pairwise(shuffled))
        assume(kept < len(context) // 4)
        assert not matches(" ".join(context), " ".join(shuffled))

    @unhurried
    @given(words)
    def test_case_width_and_white_space_never_change_the_judgement(self, items: list[str]) -> None:
        context = " ".join(distinct(items))
        wide = "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in context.upper())
        for chunk in (" ".join(context.split()[3:11]), " ".join(context.split()[3:10])):
            spaced = chunk.replace(" ", " \n ")
            assert matches(wide, spaced) == matches(context, chunk)

    @unhurried
    @given(words, words)
    def test_a_text_of_other_words_does_not_match(self, items: list[str], others: list[str]) -> None:
        assert not matches(" ".join(f"{item}x" for item in items), " ".join(f"{item}y" for item in others))

    def test_a_giant_passage_costs_no_more_than_its_beginning(self) -> None:
        giant = f"{RIVER} " * 100_000
        started = time.perf_counter()
        for _ in range(200):
            assert not matches(RIVER, giant)
        assert time.perf_counter() - started < 2  # folding all of it 200 times would take a minute

    def test_a_long_repetitive_passage_of_allowed_length_is_quick(self) -> None:
        context, chunk = "ab " * 200_000, "ab " * 300_000 + "c"
        started = time.perf_counter()
        matches(context, chunk)
        assert time.perf_counter() - started < 10


class TestPassages:
    def test_rank_is_the_best_rank_and_every_passage_is_judged(self) -> None:
        found = match_passages(RIVER, None, [passage(BAKERY), passage(RIVER[:90]), passage(RIVER)], SETTINGS)
        assert (found.status, found.method, found.rank) == (MatchStatus.JUDGED, "text", 2)
        assert found.matched == [False, True, True]

    @unhurried
    @given(st.lists(st.booleans(), max_size=12), st.integers(1, 12))
    def test_top_k_match_is_rank_at_most_k(self, hits: list[bool], k: int) -> None:
        passages = [passage(document_id="d1" if hit else "d2") for hit in hits]
        found = match_passages(None, "d1", passages, MatchSettings(k=k))
        assert found.matched == hits
        assert found.rank == (hits.index(True) + 1 if any(hits) else None)
        assert found.top_k_match == any(hits[:k])

    def test_ids_decide_where_both_sides_have_one(self) -> None:
        passages = [passage(RIVER, "d2"), passage(BAKERY, "d1")]
        found = match_passages(RIVER, "d1", passages, SETTINGS)
        assert (found.method, found.matched, found.rank) == ("document_id", [False, True], 2)

    def test_a_passage_without_id_is_matched_by_text_beside_others_with_one(self) -> None:
        found = match_passages(RIVER, "d1", [passage(BAKERY, "d2"), passage(RIVER)], SETTINGS)
        assert (found.method, found.matched) == ("mixed", [False, True])

    def test_texts_alone_are_compared_on_demand(self) -> None:
        passages = [passage(BAKERY, "d1"), passage(RIVER, "d2")]
        found = match_passages(RIVER, "d1", passages, MatchSettings(match_by="text"))
        assert (found.method, found.rank) == ("text", 2)

    def test_ids_alone_are_compared_on_demand(self) -> None:
        settings = MatchSettings(match_by="document_id")
        found = match_passages(RIVER, "d1", [passage(RIVER), passage(BAKERY, "d1")], settings)
        assert (found.method, found.rank) == ("document_id", 2)
        assert match_passages(RIVER, None, [passage(RIVER)], settings).status is MatchStatus.NO_CONTEXT
        assert match_passages(RIVER, "d1", [passage(RIVER)], settings).status is MatchStatus.NO_CONTEXT

    def test_an_empty_list_is_a_judged_miss(self) -> None:
        found = match_passages(RIVER, None, [], SETTINGS)
        assert (found.status, found.rank, found.top_k_match, found.matched) == (MatchStatus.JUDGED, None, False, [])

    def test_none_for_passages_is_not_judged(self) -> None:
        found = match_passages(RIVER, None, None, SETTINGS)
        assert (found.status, found.top_k_match) == (MatchStatus.NO_PASSAGES, None)

    @pytest.mark.parametrize("context", [None, "", " \n", "!?"])
    def test_an_example_without_context_is_not_judged(self, context: str | None) -> None:
        assert match_passages(context, None, [passage(RIVER)], SETTINGS).status is MatchStatus.NO_CONTEXT

    def test_nothing_comparable_is_not_a_miss(self) -> None:
        only_texts, only_ids, neither = [passage(RIVER)], [passage(None, "d1")], [passage()]
        assert match_passages(None, "d1", only_texts, SETTINGS).status is MatchStatus.NO_CONTEXT
        assert match_passages(RIVER, None, only_ids, SETTINGS).status is MatchStatus.NO_PASSAGES
        assert match_passages(RIVER, "d1", neither, SETTINGS).status is MatchStatus.NO_PASSAGES


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"match_by": "title"},
        {"min_words": 0},
        {"max_length_ratio": 0.0},
        {"max_length_ratio": float("nan")},
        {"max_length_ratio": float("inf")},
        {"ngram": 0},
        {"ngram_threshold": 0.0},
        {"ngram_threshold": 1.1},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(wrong: dict) -> None:
    with pytest.raises(ConfigurationError, match=rf"retrieval\.{next(iter(wrong))} is "):
        MatchSettings(**wrong)
