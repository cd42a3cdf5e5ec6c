"""JSON pointers, and what lies where an answer should be."""

from __future__ import annotations

from typing import Any

import pytest

from rag_eval_assets.suite.targets import PassagePointers, Prices, ResponsePointers
from rag_eval_assets.targets.base import Answer, Passage
from rag_eval_assets.targets.pointers import ShapeError, priced, read_answer, read_passages, resolve

# The example document of RFC 6901, section 5.
RFC = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_pointers_lead_where_the_rfc_says(pointer: str, value: Any) -> None:
    assert resolve(RFC, pointer) == value


@pytest.mark.parametrize("pointer", ["/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/0/0", "/nowhere", "/foo/٣"])
def test_a_pointer_that_leads_nowhere_says_what_is_there_instead(pointer: str) -> None:
    with pytest.raises(ShapeError, match="has nothing at"):
        resolve(RFC, pointer)


def test_a_missing_part_is_told_with_the_names_beside_it_and_without_texts() -> None:
    with pytest.raises(ShapeError) as caught:
        resolve({"data": {"reply": "a secret text", "id": 1}}, "/data/answer")
    assert str(caught.value) == "has nothing at '/data/answer': /data is an object with id, reply"


def test_an_answer_is_taken_apart_where_the_suite_points() -> None:
    pointers = ResponsePointers(
        answer="/out/text",
        generator="/out/by",
        passages=PassagePointers(list="/hits", id="/key", document_id="/meta/doc", text="/body", score="/rank"),
        input_tokens="/usage/in",
        output_tokens="/usage/out",
        cost_usd="/usage/usd",
    )
    document = {
        "out": {"text": "On Mondays.", "by": "model-7"},
        "hits": [{"key": 12, "meta": {"doc": "ferry"}, "body": "The ferry", "rank": 0.5}],
        "usage": {"in": 11, "out": 3, "usd": 0.25},
    }
    passage = Passage("12", "ferry", "The ferry", 0.5)
    assert read_answer(document, pointers) == Answer("On Mondays.", (passage,), "model-7", 11, 3, 0.25)


def test_what_a_service_leaves_out_of_its_usage_costs_no_answer() -> None:
    pointers = ResponsePointers(answer="/a", generator="/g", input_tokens="/usage/in", cost_usd="/usd")
    assert read_answer({"a": "yes", "usage": None, "usd": "free", "g": 3}, pointers) == Answer("yes")


def test_null_is_an_empty_answer_and_another_type_is_none() -> None:
    assert read_answer({"a": None}, ResponsePointers(answer="/a")).text is None
    with pytest.raises(ShapeError, match="no text at '/a' but a list of 1"):
        read_answer({"a": ["yes"]}, ResponsePointers(answer="/a"))


def test_passages_may_be_texts_or_objects_with_the_usual_names() -> None:
    found = read_passages({"p": ["one", {"id": "x", "text": "two", "score": 1}, {}]}, PassagePointers(list="/p"))
    assert found == (Passage(text="one"), Passage("x", None, "two", 1.0), Passage())


def test_a_pointer_into_passages_that_the_suite_names_must_lead_somewhere() -> None:
    with pytest.raises(ShapeError, match="in passage 1 has nothing at '/txt'"):
        read_passages({"p": [{"txt": "one"}, {"text": "two"}]}, PassagePointers(list="/p", text="/txt"))


@pytest.mark.parametrize("passages", [{}, "text", 3])
def test_passages_are_a_list_or_null(passages: Any) -> None:
    assert read_passages({"p": None}, PassagePointers(list="/p")) is None
    with pytest.raises(ShapeError, match="no list of passages"):
        read_passages({"p": passages}, PassagePointers(list="/p"))


def test_a_price_counts_where_the_answer_names_no_cost_of_its_own() -> None:
    prices = Prices(input_usd_per_million_tokens=2.0, output_usd_per_million_tokens=8.0)
    assert priced(Answer("a", input_tokens=1000, output_tokens=100), prices) == 0.0028
    assert priced(Answer("a", input_tokens=1, output_tokens=0), prices) == 0.000002
    assert priced(Answer("a", input_tokens=1000, cost_usd=0.5), prices) == 0.5
    assert priced(Answer("a"), prices) is None
    assert priced(Answer("a", input_tokens=1000), None) is None
