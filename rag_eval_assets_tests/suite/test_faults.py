"""What a person reads whose suite file is wrong: the file, the path of the fault in it, the value, the nearest name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.suite.load import read_suite
from rag_eval_assets.suite.patterns import WORDS
from rag_eval_assets.suite.schema import suite_json_schema

Write = Callable[..., Path]


def fault(path: Path) -> str:
    """The message for the suite in `path`, without its beginning, which names the file."""
    with pytest.raises(ConfigurationError) as caught:
        read_suite(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:"), message
    assert "\n" not in message
    return message.removeprefix(f"{path}:").strip()


def test_the_suite_of_these_tests_is_valid_as_it_is(write_suite: Write) -> None:
    assert read_suite(write_suite()).suite.targets["pipeline"].top_k == 5


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("datsets", "[]", "suite: unknown key 'datsets' (did you mean 'datasets'?)"),
        (
            "datasets",
            "[{sample: builtin}, {file: a.csv, colums: {}}]",
            "datasets[1]: unknown key 'colums' (did you mean 'columns'?)",
        ),
        (
            "datasets",
            "[{file: a.csv, columns: {questoin: q}}]",
            "datasets[0].columns: unknown key 'questoin' (did you mean 'question'?)",
        ),
        (
            "datasets",
            "[{huggingface: a/b, revison: main}]",
            "datasets[0]: unknown key 'revison' (did you mean 'revision'?)",
        ),
        ("corpus", "{sorce: sample}", "corpus: unknown key 'sorce' (did you mean 'source'?)"),
        (
            "targets",
            "{pipeline: {type: embedded}, other: {type: embedded, topk: 3}}",
            "targets.other: unknown key 'topk' (did you mean 'top_k'?)",
        ),
        (
            "targets",
            "{pipeline: {type: embedded, chunking: {max_word: 90}}}",
            "targets.pipeline.chunking: unknown key 'max_word' (did you mean 'max_words'?)",
        ),
        (
            "scorers",
            "[{type: sentence_cosine}, {type: bertscore, layr: 9}]",
            "scorers[1]: unknown key 'layr' (did you mean 'layer'?)",
        ),
        ("run", "{concurency: 2}", "run: unknown key 'concurency' (did you mean 'concurrency'?)"),
        ("retrieval", "{ngrams: 5}", "retrieval: unknown key 'ngrams' (did you mean 'ngram'?)"),
        ("report", "{enviroment: qa}", "report: unknown key 'enviroment' (known keys: env, max_examples, s3)"),
        ("report", "{s3: {buckt: x}}", "report.s3: unknown key 'buckt' (did you mean 'bucket'?)"),
        ("models", "{some-model: {foldr: x}}", "models.some-model: unknown key 'foldr' (did you mean 'folder'?)"),
    ],
)
def test_an_unknown_key_is_named_with_its_place_and_the_nearest_known_one(
    write_suite: Write, key: str, value: str, message: str
) -> None:
    assert fault(write_suite(**{key: value})) == message


@pytest.mark.parametrize(
    ("key", "value", "beginning", "end"),
    [
        ("name", "3", "name: ", "got 3"),
        ("name", "2026-01-01", "name: ", "got '2026-01-01'"),
        ("name", "''", "name: ", "got ''"),
        ("owners", "[nobody]", "owners: ", "owner 'nobody' is neither an e-mail address nor 'team:<name>'"),
        ("owners", "['team:']", "owners: ", "owner 'team:' is neither an e-mail address nor 'team:<name>'"),
        ("datasets", "[]", "datasets: ", "at least 1 item after validation, not 0"),
        ("datasets", "sample", "datasets: ", "got 'sample'"),
        ("datasets", "[{file: 3}]", "datasets[0].file: ", "got 3"),
        ("datasets", "[{file: a, format: xml}]", "datasets[0].format: ", "(known: parquet, jsonl, csv)"),
        ("datasets", "[{huggingface: nobody}]", "datasets[0].huggingface: ", "got 'nobody'"),
        ("datasets", "[{huggingface: a/b, split: null}]", "datasets[0].split: ", "got None"),
        ("datasets", "[{name: x}]", "datasets[0]: ", "needs one of the keys 'file', 'huggingface', 'sample'"),
        ("targets", "{}", "targets: ", "at least 1 item after validation, not 0"),
        ("targets", "{1: {type: embedded}}", "targets[1]: ", "got 1"),
        ("targets", "{p: embedded}", "targets.p: ", "got 'embedded'"),
        ("targets", "{p: {}}", "targets.p: ", "the key 'type' is missing"),
        ("targets", "{p: {type: embeded}}", "targets.p.type: ", "(did you mean 'embedded'?)"),
        ("targets", "{p: {type: embedded, top_k: 0}}", "targets.p.top_k: ", "got 0"),
        ("targets", "{p: {type: embedded, top_k: '5'}}", "targets.p.top_k: ", "got '5'"),
        ("targets", "{p: {type: embedded, top_k: true}}", "targets.p.top_k: ", "got True"),
        ("targets", "{p: {type: embedded, chunking: {max_words: 7}}}", "targets.p.chunking.max_words: ", "got 7"),
        ("scorers", "[]", "scorers: ", "at least 1 item after validation, not 0"),
        ("scorers", "[{model: x}]", "scorers[0]: ", "the key 'type' is missing"),
        ("scorers", "[bertscore]", "scorers[0]: ", "got 'bertscore'"),
        ("scorers", "[{type: bert_score}]", "scorers[0].type: ", "(did you mean 'bertscore'?)"),
        ("scorers", "[{type: bertscore, layer: 99}]", "scorers[0].layer: ", "got 99"),
        ("run", "null", "run: ", "got None"),
        ("run", "{max_error_rate: 1.5}", "run.max_error_rate: ", "got 1.5"),
        ("run", "{start_date: '2026-02-30'}", "run.start_date: ", "got '2026-02-30'"),
        ("retrieval", "{match_by: texts}", "retrieval.match_by: ", "(did you mean 'text'?)"),
        ("report", "{env: QA}", "report.env: ", "got 'QA'"),
        ("report", "{s3: {bucket: My_Bucket}}", "report.s3.bucket: is no name of a bucket", "got 'My_Bucket'"),
        ("report", "{s3: {bucket: 10.0.0.1}}", "report.s3.bucket: is no name of a bucket", "got '10.0.0.1'"),
        ("report", "{s3: {bucket: x--x-s3}}", "report.s3.bucket: is no name of a bucket", "got 'x--x-s3'"),
        ("report", "{s3: {endpoint: 'http://h/p'}}", "report.s3.endpoint: is no endpoint", "got 'http://h/p'"),
        ("report", "{s3: {endpoint: 'http://u:p@h'}}", "report.s3.endpoint: is no endpoint", "got 'http://u:p@h'"),
        ("report", "{s3: {addressing: host}}", "report.s3.addressing: ", "(known: auto, path, virtual)"),
        ("report", "{s3: {region: EU}}", "report.s3.region: is no name of a region", "got 'EU'"),
        ("models", "{m: {folder: ''}}", "models.m.folder: ", "got ''"),
        ("corpus", "{source: file}", "corpus: ", "'file' goes with 'source: file', and only with it"),
        ("corpus", "{source: sample, file: a}", "corpus: ", "'file' goes with 'source: file', and only with it"),
    ],
)
def test_a_value_of_the_wrong_type_or_range_is_named_with_its_place(
    write_suite: Write, key: str, value: str, beginning: str, end: str
) -> None:
    message = fault(write_suite(**{key: value}))
    assert message.startswith(beginning)
    assert message.endswith(end)


HTTP = "{{p: {{type: http, url: 'http://h/', body: '{{question}}', response: {{answer: {}}}}}}}"
SIMILARITY = "[{{type: similarity, url: 'http://h/', model: m, {}}}]"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "targets",
            HTTP.format("answer"),
            "targets.p.response.answer: is no JSON pointer; its parts begin with '/', as in /answer or "
            "/choices/0/text, and '~' is written '~0', got 'answer'",
        ),
        (
            "datasets",
            "[{huggingface: nobody}]",
            "datasets[0].huggingface: is no id of a data set on the hub, owner/name, got 'nobody'",
        ),
        (
            "scorers",
            SIMILARITY.format("name: My-Own"),
            "scorers[0].name: is no name of a scorer (lower-case letters, digits and underscores, a letter first, at "
            "most 63), got 'My-Own'",
        ),
        ("scorers", SIMILARITY.format("references: [' ']"), "scorers[0].references[0]: is blank, got ' '"),
        (
            "corpus_sensor",
            "{watch: {url: ftp://h}}",
            "corpus_sensor.watch.url: is no address that begins with http:// or https://, got 'ftp://h'",
        ),
        (
            "corpus_sensor",
            "{watch: {s3: bucket/prefix}}",
            "corpus_sensor.watch.s3: is no place on S3, s3://bucket or s3://bucket/prefix, got 'bucket/prefix'",
        ),
        # What stands there by mistake may be the secret itself.
        (
            "notify",
            "{kind: slack, url_env: 'https://hooks.example/secret'}",
            "notify.url_env: is no name of an environment variable (letters, digits and underscores, no digit first)",
        ),
        (
            "report",
            "{env: QA}",
            "report.env: is no label of an environment (1 to 32 lower-case letters, digits and hyphens, no hyphen "
            "first), got 'QA'",
        ),
    ],
)
def test_a_value_of_the_wrong_form_is_told_the_form_in_words(
    write_suite: Write, key: str, value: str, message: str
) -> None:
    assert fault(write_suite(**{key: value})) == message


def test_there_are_words_for_every_pattern_of_a_suite() -> None:
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\\\]|\\\\.)*")', json.dumps(suite_json_schema())))
    assert {json.loads(pattern) for pattern in patterns} == set(WORDS)


def test_a_header_that_is_a_secret_is_told_how_it_is_written(write_suite: Write) -> None:
    target = "{p: {type: http, url: 'http://h/', headers: {Authorization: Bearer abc}, response: {answer: /a}}}"
    advice = "name an environment variable: Authorization: {env: MY_VARIABLE}"
    assert fault(write_suite(targets=target)).endswith(advice)


def test_all_faults_of_a_file_are_listed_at_once(write_suite: Write) -> None:
    message = fault(write_suite(run="{concurrency: 0}", retrieval="{k: 0, ngram: 99}"))
    assert [part.split(":")[0] for part in message.split("; ")] == ["retrieval.k", "retrieval.ngram", "run.concurrency"]


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run", "{{max_error_rate: {}}}"),
        ("retrieval", "{{max_length_ratio: {}}}"),
        ("retrieval", "{{ngram_threshold: {}}}"),
        ("retrieval", "{{k: {}}}"),
        ("report", "{{max_examples: {}}}"),
        ("targets", "{{p: {{type: embedded, top_k: {}}}}}"),
    ],
)
def test_no_number_is_nan_or_infinite(write_suite: Write, key: str, value: str, number: str) -> None:
    assert number.strip("-.") in fault(write_suite(**{key: value.format(number)}))


def test_a_scorer_is_listed_once(write_suite: Write) -> None:
    twice = "[{type: bertscore}, {type: bertscore, model: all-MiniLM-L6-v2}]"
    assert fault(write_suite(scorers=twice)) == "suite: scorer 'bertscore' is listed twice"


def test_an_embedded_target_needs_a_corpus(write_suite: Write) -> None:
    message = fault(write_suite(corpus=None))
    assert message == "suite: an embedded target needs 'corpus' (such as 'corpus: {source: contexts}')"


@pytest.mark.parametrize("kind", ["trace", "trajectory", "json-schema", "subprocess", "accuracy", "macro_f1"])
def test_types_that_other_tools_evaluate_are_refused_as_out_of_scope(write_suite: Write, kind: str) -> None:
    refusal = f"type {kind!r} is outside what this project evaluates"
    assert fault(write_suite(scorers=f"[{{type: {kind}}}]")) == f"scorers[0].type: {refusal}"
    assert fault(write_suite(targets=f"{{p: {{type: {kind}}}}}")) == f"targets.p.type: {refusal}"


def test_a_key_that_stands_twice_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: a\ntargets:\n  p:\n    type: embedded\n    top_k: 3\n    top_k: 4\n")
    assert fault(path) == "line 6 key 'top_k' stands twice"


def test_a_merged_mapping_may_override_keys_at_any_depth(write_suite: Write) -> None:
    # The second merge takes from a mapping that is itself a merge and lies deeper than the place it goes to.
    path = write_suite(
        models="{a: &a {folder: x}, b: &b {<<: *a, folder: y}}",
        targets="{p: {type: embedded, chunking: {<<: {max_words: 10}, max_words: 20}}}",
        report="{env: qa}",
    )
    text = path.read_text() + "run: &r {concurrency: 2}\n"
    path.write_text(text)
    suite = read_suite(path).suite
    assert (suite.models["b"].folder, suite.targets["p"].chunking.max_words) == ("y", 20)
    path.write_text(text + "unknown: {<<: *b, folder: z}\n")
    assert fault(path).startswith("suite: unknown key 'unknown'")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: [1", "line 1 "),
        (b"name:\n\t- a\n", "line 2 "),
        (b"- a\n- b\n", "a suite is a mapping of keys to values"),
        (b"", "a suite is a mapping of keys to values"),
        (b"# nothing but this\n", "a suite is a mapping of keys to values"),
        (b"just text", "a suite is a mapping of keys to values"),
        (b"name: \xff\xfe", "cannot be read"),
        ("name: ü".encode("utf-16"), "cannot be read"),
        (b"name: a\0b", "unacceptable character"),
        (b"a: b\n---\nc: d\n", "line 2 "),
        (b"name: !!python/object:os.system x\n", "line 1 "),
        (b"run: {start_date: 2026-13-40}\n", "a value cannot be read (month must be in 1..12)"),
        (b"name: !!int abc\n", "a value cannot be read"),
        (b"name: !!timestamp 99\n", "a value cannot be read"),
        (b"name: " + b"[" * 2000, "a value cannot be read"),
    ],
)
def test_a_file_that_is_no_mapping_in_yaml_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    assert fault(path).startswith(message)


def test_an_unreadable_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").mkdir()
    assert fault(tmp_path / "s.yaml").startswith("cannot be read (")


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault(write_suite: Write) -> None:
    path = write_suite()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_suite(path).slug == "some"
