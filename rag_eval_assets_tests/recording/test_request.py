"""Keys compared whole with those that EvalCore gives (contract, V1 to V7, V13)."""

from __future__ import annotations

import pytest

from rag_eval_assets.recording.request import (
    canonical_request,
    chat_identity,
    compact_json,
    embeddings_identity,
    http_identity,
    reference_text,
    request_key,
)

URL, MODEL, TEXT = "https://api.openai.com/v1", "text-embedding-3-small", "Refunds are processed within 30 days."
LOCAL, EMBED = "http://127.0.0.1:8080/v1", "embed"


@pytest.mark.parametrize(
    ("url", "model", "text", "trial", "key"),
    [
        (URL, MODEL, TEXT, 0, "05eea24412e2967ba745fe46e319f730d73da98e4f01c66155909451f23a33eb"),
        (
            URL,
            "text-embedding-3-large",
            TEXT,
            0,
            "3e1670036a5680a25913299f963bf0ea6d87083862e0c774d5f00ba616dbec06",
        ),
        (URL + "/", MODEL, TEXT, 0, "a503d16c464a80d15ed421090f8f080c6b7f6edb8ceeec794974773170ff8b6d"),
        (
            LOCAL,
            EMBED,
            'He said "hi" \\ path/to\nline2\tTab',
            0,
            "f5a19f0fe771cf6c859f2a9685e0e798325dc64569d8f9c3837a660afd623e4a",
        ),
        (
            LOCAL,
            EMBED,
            "Café — 30 días 🚀",
            0,
            "fc772a9e08e7da01174b5c4c5f2a1dc23ffefce11c6aca464a2e94654b56588d",
        ),
        (URL, MODEL, TEXT, 1, "f30884506cc8102ab7c5c81596697a520a4a5ba91de4a8a187474368f6acb3df"),
        (URL, MODEL, TEXT, 2, "a800e5ceeebc52b82288f8e9a138e7330e0192cc9ad9fd543a06bdd9d2f9ceee"),
        (URL, MODEL, "", 0, "8bbca4bb85911af397fb472f2888831b934897083a4079264d986bd6dc870582"),
        (LOCAL, EMBED, "alpha", 0, "f25eb6a9d41fcd0f659994ba5f7752a5c662b642f491fc4a410f1f94e6f3fb59"),
        (LOCAL, EMBED, "beta", 0, "03331362ed924768da018e500fa5ffac618813c5d20568635f4010aa136a8b9b"),
    ],
    ids=["V1", "V1-large", "V2", "V3", "V4", "V5-trial-1", "V5-trial-2", "V7-empty", "V13-alpha", "V13-beta"],
)
def test_an_embeddings_call_has_evalcores_key(url: str, model: str, text: str, trial: int, key: str) -> None:
    assert request_key(embeddings_identity(url, model), text, trial) == key


def test_a_chat_of_the_same_url_model_and_text_has_another_key() -> None:
    key = "dc8eba763c2e0e7c24ea4276a8785796a87d7c07e53430cedce96dc659d83946"
    assert request_key(chat_identity(URL, MODEL), TEXT) == key
    assert request_key(chat_identity(URL, MODEL, params={}), TEXT) == key
    assert request_key(chat_identity(URL, MODEL, system="Be brief."), TEXT) != key


@pytest.mark.parametrize(
    ("expected", "text", "key"),
    [
        (42, "42", "a23f39e012ea063d7ece05e17adddd8a16fe4111b9cd05056423f421dd4ddb42"),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}', "c4df36d4c5f5fa4ec583401fa6c3b86f170c57a4400923af30a7eace9016eb12"),
        (
            ["yes", 1, None],
            '["yes",1,null]',
            "11467372bdcaecfd250f631ab4473e53b6081ada350a091ba4a5ae0948049259",
        ),
        (True, "true", "76fafd298db714025310931ee2cac47128c771ea71273566e929a53664b94014"),
        (1.0, "1.0", "dc8bd94a13f2315086b5a83063352db5e7f7be40205bf1edeb1df4fd03e3a3bf"),
    ],
)
def test_a_reference_that_is_no_text_is_embedded_as_compact_json(expected: object, text: str, key: str) -> None:
    assert reference_text(expected) == text
    assert request_key(embeddings_identity(URL, MODEL), text) == key


def test_texts_stand_as_they_are_and_null_is_none() -> None:
    assert reference_text(" Kept\n") == " Kept\n"
    assert reference_text(None) is None


def test_the_canonical_request_of_v1_is_149_bytes() -> None:
    canonical = compact_json(canonical_request(embeddings_identity(URL, MODEL), TEXT)).encode()
    assert len(canonical) == 149
    assert canonical == (
        b'{"identity":{"model":"text-embedding-3-small","type":"embeddings","url":"https://api.openai.com/v1"},'
        b'"input":"Refunds are processed within 30 days."}'
    )


def test_only_what_json_demands_is_escaped() -> None:
    assert compact_json('"\\/\b\t\n\f\r\x00\x1f\x7f é') == '"\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\x7f é"'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e-7, "1e-7"),
        (1e16, "1e16"),
        (1e15, "1000000000000000.0"),
        (0.00001, "0.00001"),
        (1.5e300, "1.5e300"),
        (-0.25, "-0.25"),
        (-0.0, "-0.0"),
        (123456.789, "123456.789"),
    ],
)
def test_numbers_are_spelled_as_rust_spells_them(number: float, text: str) -> None:
    assert compact_json(number) == text
    assert float(text) == number


def test_what_is_not_set_is_left_out() -> None:
    assert embeddings_identity("u", "m") == {"model": "m", "type": "embeddings", "url": "u"}
    assert embeddings_identity("u", "m", dimensions=256)["dimensions"] == 256
    assert http_identity(method="post", url="u") == {"http": {"method": "POST", "url": "u"}}


def test_of_headers_only_the_names_belong_to_an_identity() -> None:
    identity = http_identity(method="GET", url="u", headers={"X-Team": "blue", "Authorization": "Bearer abc"})
    assert identity["http"]["headers"] == ["authorization", "x-team"]
    assert "abc" not in compact_json(identity)


def test_a_number_that_is_none_and_half_a_character_have_no_key() -> None:
    with pytest.raises(ValueError, match="no JSON number"):
        request_key(chat_identity("u", "m", params={"temperature": float("nan")}), "x")
    with pytest.raises(UnicodeEncodeError):
        request_key(embeddings_identity("u", "m"), "\ud800")
