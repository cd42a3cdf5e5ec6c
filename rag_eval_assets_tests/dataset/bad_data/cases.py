"""The table of hostile inputs: how each is made, and what a careful user would expect to become of it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import Any

Row = tuple[str, str, str | None, str | None]


@dataclass(frozen=True)
class Loaded:
    """It is read, and just so.

    Attributes:
        rows: id, question, reference answer and context of every example.
        excluded: number and reason of every row that is no example.
        documents: the texts of the corpus; by default the distinct contexts of `rows`.
        no_corpus: what is said where the examples load but their corpus does not.
    """

    rows: list[Row]
    excluded: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    documents: list[str] | None = None
    no_corpus: str | None = None


@dataclass(frozen=True)
class Refused:
    """One clear line, which holds a match of `message` behind `data file '<name>'` or `suite 'tested'`."""

    message: str


@dataclass(frozen=True)
class Case:
    """One input.

    Attributes:
        file: its name in the suite's folder.
        expected: what is to become of it.
        made: its bytes, or the name of a function of `makers`; None where it lies in `files/`.
        columns: mapping in the suite.
        format: named in the suite.
        documents: whether it is the file of a corpus, beside a data set of one row, and not the data set.
        name: of the case.
    """

    file: str
    expected: Loaded | Refused
    made: bytes | str | None = None
    columns: dict[str, str] = field(default_factory=dict[str, str])
    format: str | None = None
    documents: bool = False
    name: str = ""

    def __str__(self) -> str:
        return self.name or (self.made if isinstance(self.made, str) else self.file)


def questions(*texts: str) -> Loaded:
    """Rows of questions alone, with derived ids."""
    return Loaded([(f"row-{number}", text, None, None) for number, text in enumerate(texts)])


def bytes_case(name: str, file: str, made: bytes, expected: Loaded | Refused, **options: Any) -> Case:
    """A case of bytes that git or an editor would change, or that nobody could see."""
    return Case(file, expected, made, name=name, **options)


_PART = '{"question": "q"}\n'
_QA = Loaded([("row-0", "q", "a", None)])
_UTF16 = Refused(r"is UTF-16 text\. Save it as UTF-8")
_NO_UTF8 = r"\('utf-8' codec .*\)\. Save it as UTF-8; it may be in Windows-1252 or Latin-1"
_NO_PARQUET = r"cannot be read as parquet \("
_EMPTY = r"its data sets hold no example \({} rows have no question\)"

ENCODINGS = [
    bytes_case("utf-16-le", "d.jsonl", codecs.BOM_UTF16_LE + _PART.encode("utf-16-le"), _UTF16),
    bytes_case("utf-16-be", "d.csv", codecs.BOM_UTF16_BE + "question\nq\n".encode("utf-16-be"), _UTF16),
    Case("d.jsonl", _UTF16, "utf_16_without_mark"),
    Case("d.jsonl", Refused(r"is UTF-32 text\. Save it as UTF-8"), "utf_32"),
    bytes_case(
        "latin-1",
        "d.jsonl",
        _PART.encode() + '{"question": "Zürich"}'.encode("latin-1"),
        Refused("cannot be read as UTF-8 JSON lines, line 2 " + _NO_UTF8),
    ),
    bytes_case(
        "windows-1252 quotes",
        "d.csv",
        b"question,answer\nq,\x93quoted\x94\n",
        Refused("cannot be read as UTF-8 CSV, line 2 " + _NO_UTF8),
    ),
    Case("d.csv", Refused("cannot be read as UTF-8 CSV, line 20002 " + _NO_UTF8), "latin_1_in_a_later_line"),
    bytes_case(
        "cut in a character",
        "d.jsonl",
        _PART.encode() + b'\n{"question": "\xf0\x9f\x98"}\n',
        Refused("cannot be read as UTF-8 JSON lines, line 3 " + _NO_UTF8),
    ),
    bytes_case(
        "surrogates as bytes",
        "d.csv",
        b"question\n\xed\xa0\xbd\xed\xb8\x80\n",
        Refused("cannot be read as UTF-8 CSV, line 2 " + _NO_UTF8),
    ),
    bytes_case("byte order mark", "d.jsonl", codecs.BOM_UTF8 + _PART.encode(), questions("q")),
    bytes_case("byte order mark of csv", "d.csv", codecs.BOM_UTF8 + b'"question"\nq\n', questions("q")),
    bytes_case(
        "byte order mark inside, of joined files",
        "d.jsonl",
        (codecs.BOM_UTF8 + _PART.encode()) * 2,
        Refused(r"line 2: invalid JSON \(Unexpected UTF-8 BOM"),
    ),
    bytes_case("crlf", "d.jsonl", b'{"question": "q"}\r\n\r\n{"question": "r"}\r\n', questions("q", "r")),
    bytes_case("crlf of csv", "d.csv", b"question,answer\r\nq,a\r\n", _QA),
    bytes_case(
        "cr",
        "d.jsonl",
        b'{"question": "q"}\r{"question": "r"}\r',
        Refused(r"line 1: invalid JSON \(Extra data.*\)\. Its lines end with CR alone; end them with LF"),
    ),
    bytes_case("cr of csv", "d.csv", b"question,answer\rq,a\r", _QA),
    bytes_case("no line end", "d.jsonl", b'{"question": "q"}', questions("q")),
    bytes_case("no line end of csv", "d.csv", b"question,answer\nq,a", _QA),
    bytes_case("blank lines", "d.jsonl", b'\n \t\n{"question": "q"}\n\n', questions("q")),
    bytes_case("blank lines of csv", "d.csv", b"question,answer\n\nq,a\n\n", _QA),
    bytes_case("nul in csv", "d.csv", b"question\na\0b\n", questions("a\0b")),
    bytes_case("nul in json", "d.jsonl", b'{"question": "a\0b"}\n', Refused(r"line 1: invalid JSON \(Invalid control")),
    Case("nul.jsonl", Loaded([("row-0", "a\0b", "\0", None)])),
    bytes_case(
        "line separators of csv",
        "d.csv",
        "question\na\u2028b\u2029c\x85d\x0be\n".encode(),
        questions("a\u2028b\u2029c\x85d\x0be"),
    ),
    bytes_case(
        "line separators",
        "d.jsonl",
        '{"question": "a\u2028b\u2029c\x85d"}\n'.encode(),
        questions("a\u2028b\u2029c\x85d"),
    ),
    Case("line_separators_escaped.jsonl", questions("a\u2028b\u2029c\x85d")),
    Case("turned_text.jsonl", Loaded([("row-0", "\u202eolleh \u2066x\u2069", "\u200fא", None)])),
    Case(
        "lone_surrogates.jsonl",
        Loaded(
            [("row-3", "whole 😀", None, "c")],
            [
                (0, "lone surrogates in question"),
                (1, "lone surrogates in reference_answer"),
                (2, "lone surrogates in id"),
            ],
        ),
    ),
]

CSV = [
    Case("semicolons.csv", Refused(r"it has 'question;answer'\. Its cells look separated by semicolons; save it with")),
    Case(
        "quoted_semicolons.csv",
        Refused(r"cannot be read as UTF-8 CSV, line 1 .* Its cells look separated by semicolons; save it with commas"),
    ),
    Case("sep_line.csv", Refused(r"it has 'sep=;'\. Its cells look separated by semicolons; save it with commas")),
    Case("tabs.csv", Refused(r"it has 'question\\tanswer'\. Its cells look separated by tabs; save it with commas")),
    Case("bars.csv", Refused(r"it has 'question\|answer'\. Its cells look separated by vertical bars; save it with")),
    Case("capitals_and_spaces.csv", Loaded([("1", "q", "a", "c")])),
    Case(
        "unclosed_quote.csv",
        Refused(
            r"cannot be read as UTF-8 CSV, line 2 \(unexpected end of data\)\. .*a quote inside it is written twice"
        ),
    ),
    Case("quote_closed_early.csv", Refused(r"cannot be read as UTF-8 CSV, line 2 \(.*expected after.*written twice")),
    Case("space_before_quote.csv", Refused("line 2: 3 cells, but the first line names 2")),
    Case("quotes_and_delimiters.csv", Loaded([("1", 'He said "why, then?"', "a\nb\n\nc; d", None)])),
    Case("columns_twice.csv", Refused("column 'question' stands twice in the first line")),
    Case("unnamed_columns.csv", Loaded([("row-0", "q", "a", None)], [(1, "no question")])),
    Case("header_only.csv", Refused(r"'header_only\.csv' has a header and no row")),
    Case("row_too_short.csv", Refused("line 3: 1 cell, but the first line names 2")),
    Case("row_too_long.csv", Refused("line 3: 3 cells, but the first line names 2")),
    Case(
        "formulas.csv",
        Loaded(
            [
                ("row-0", "=1+1", '=HYPERLINK("x")', None),
                ("row-1", "+1", "-1", None),
                ("row-2", "@SUM(A1)", "%0", None),
            ]
        ),
    ),
    bytes_case("nothing in csv", "d.csv", b"", Refused(r"is empty\. Its first line must name the columns")),
    bytes_case("blank csv", "d.csv", b"\r\n\n", Refused(r"is empty\. Its first line must name the columns")),
    Case("d.csv", Loaded([("row-0", "q", "word " * 1_000_000, None)]), "huge_cell_csv"),
    Case("d.csv", questions("q"), "many_columns_csv"),
]

JSON = [
    Case("object_as_question.jsonl", Refused("column 'question' holds an object in line 1, not text")),
    Case("list_as_question.jsonl", Refused("column 'question' holds a list in line 2, not text")),
    Case("list_as_context.jsonl", Refused("column 'context' holds a list in line 1, not text")),
    Case("list_as_id.jsonl", Refused("column 'id' holds a list in line 1, not text")),
    Case(
        "lists_as_answer.jsonl",  # compared as their JSON text, as EvalCore does
        Loaded([("row-0", "q", '["b","a"]', "c"), ("row-1", "r", '{"a":[true,null],"b":1}', "d")]),
    ),
    Case("numbers_as_text.jsonl", Loaded([("1", "7", "true", None), ("2.5", "false", "1.0", None)])),
    Case("key_twice.jsonl", Refused(r"line 1: invalid JSON \(key 'question' stands twice\)")),
    Case("key_twice_inside.jsonl", Refused(r"line 1: invalid JSON \(key 'a' stands twice\)")),
    Case("single_quotes.jsonl", Refused(r"line 1: invalid JSON \(Expecting property name")),
    Case("last_line_cut.jsonl", Refused(r"line 2: invalid JSON \(Unterminated string")),
    Case(
        "nan_and_infinity.jsonl",
        Loaded([("row-0", "q", None, None), ("row-2", "r", None, None)], [(1, "no question")]),
    ),
    Case("array.jsonl", Refused(r"begins with a JSON array\. Write one JSON object per line")),
    Case("array_per_line.jsonl", Refused(r"begins with a JSON array\. Write one JSON object per line")),
    Case("pretty_printed.jsonl", Refused(r"holds JSON spread over several lines\. Write one JSON object per line")),
    Case("two_on_a_line.jsonl", Refused(r"line 1: invalid JSON \(Extra data")),
    Case("text_per_line.jsonl", Refused("line 2: not a JSON object")),
    Case("d.jsonl", Refused(r"line 2: invalid JSON \(maximum recursion depth"), "deep_json"),
    Case(
        "d.jsonl",
        Refused(r"line \d+: (invalid JSON \(maximum recursion|JSON nested too deep)"),
        "deep_json_at_every_depth",
    ),
    Case("long_number_as_id.jsonl", Loaded([("123456789012345678901234567890", "q", None, None)])),
    Case("d.jsonl", Refused(r"line 1: invalid JSON \(Exceeds the limit .* for integer"), "huge_integer"),
    bytes_case("nothing in json", "d.jsonl", b"", Refused(r"has no column for the question .* it has none")),
    Case("two_names_for_the_question.jsonl", Refused("'question' and 'input' could both be the question")),
    Case("d.jsonl", Loaded([("row-0", "q", "word " * 1_000_000, None)]), "huge_cell_jsonl"),
    Case("d.jsonl", questions("why " * 250_000), "huge_question"),
    Case(
        "d.jsonl",
        Refused(r"has no column for the question .* it has 'c0', .* 'c19', 19980 more"),
        "many_columns_without_a_question",
    ),
]

ROWS = [
    Case("ids_normalized_or_not.jsonl", Loaded([("é", "q", None, None), ("e\u0301", "r", None, None)])),
    Case(
        "ids_alike.jsonl",
        Loaded([(name, str(number), None, None) for number, name in enumerate(["a", "A", " a", "a\u00a0"], start=1)]),
    ),
    Case(
        "ids_missing.jsonl",
        Loaded(
            [
                (name, str(number), None, None)
                for number, name in enumerate(["row-0", "row-1", "row-2", "given", "row-4"], start=1)
            ]
        ),
    ),
    Case(
        "ids_like_paths.jsonl",
        Loaded([("../a/b", "1", None, None), ("a\nb\t\0", "2", None, None), ("C:\\x*?", "3", None, None)]),
    ),
    Case(
        "ids_twice.jsonl", Refused(r"example id 'a' stands twice: ids_twice\.jsonl line 1 and ids_twice\.jsonl line 3")
    ),
    Case("id_like_a_derived_one.jsonl", Refused("example id 'row-1' stands twice: .* line 1 and .* line 2")),
    Case(
        "d.jsonl",
        Refused(r"example id 'i{80}'\.\.\. stands twice: d\.jsonl line 1 and d\.jsonl line 2"),
        "huge_ids_twice",
    ),
    Case(
        "blank_questions.jsonl",
        Loaded([("row-4", "\u200bq", None, None)], [(number, "no question") for number in range(4)]),
    ),
    Case(
        "nulls.jsonl",
        Loaded(
            [("row-0", "q", "a", "c"), ("row-2", "r", None, None)],
            [(1, "no question")],
            documents=["c", "only a context"],
        ),
    ),
    Case(
        "no_context.jsonl",
        Loaded(
            [("row-0", "q", None, None), ("row-1", "r", None, "\u200b")],
            no_corpus=r"its corpus \(contexts\) holds no document with text",
        ),
    ),
    Case(
        "equal_rows.jsonl",
        Loaded([("row-0", "q", "a", "c"), ("row-1", "q", "b", "c"), ("row-2", "q", "a", "c")]),
    ),
    Case(
        "two_contexts_of_one_id.jsonl",
        Loaded(
            [("row-0", "q", None, "one"), ("row-1", "r", None, "two")],
            no_corpus=r"document id 'd' stands for two different contexts, the second in .* line 2",
        ),
    ),
    Case("documents.jsonl", Loaded([("row-0", "q", None, None)], documents=["one", "two"]), documents=True),
    Case(
        "documents_twice.jsonl",
        Loaded([("row-0", "q", None, None)], no_corpus="document id 'a' stands twice, line 1 and line 2"),
        documents=True,
    ),
    Case(
        "document_without_id.jsonl",
        Loaded([("row-0", "q", None, None)], no_corpus="line 1: a document without id"),
        documents=True,
    ),
    Case(
        "document_of_parts.jsonl",
        Loaded([("row-0", "q", None, None)], no_corpus="column 'text' holds a list in line 1, not text"),
        documents=True,
    ),
    Case(
        "semicolons.csv",
        Loaded(
            [("row-0", "q", None, None)], no_corpus="it has 'question;answer'. Its cells look separated by semicolons"
        ),
        documents=True,
        name="semicolons of documents",
    ),
]

_NUMBERS_AND_TIMES = ["int64", "double", "bool", "decimal128", "date32", "timestamp", "time64", "duration"]
_BYTES_AND_NESTED = ["binary", "fixed_size_binary", "struct", "list", "map", "extension"]

PARQUET = [
    *(
        Case(
            f"{kind}.parquet",
            Refused(f"column 'question' holds {kind}.*, not text"),
            "not_text",
            name=f"{kind} as text",
        )
        for kind in [*_NUMBERS_AND_TIMES, *_BYTES_AND_NESTED]
    ),
    Case("d.parquet", questions("q", "ü😀"), "large_string"),
    Case("d.parquet", questions("q", "ü😀 longer than what fits beside the length"), "string_view"),
    Case(
        "d.parquet",
        Loaded(
            [(f"row-{number}", text, None, None) for number, text in ((0, "q"), (2, "q"), (3, "r"))],
            [(1, "no question")],
        ),
        "dictionary",
    ),
    Case("d.parquet", questions("q", "r"), "dictionary_large_string"),
    Case("d.parquet", Loaded([("row-0", "q", None, None)], no_corpus="holds no document with text"), "null_columns"),
    Case("d.parquet", Refused(_EMPTY.format(3)), "null_question"),
    Case("d.parquet", Refused(r"'d\.parquet' has a header and no row"), "zero_rows"),
    Case("d.parquet", Refused("has no column for the question .* it has none"), "no_columns"),
    Case("d.parquet", Loaded([(str(2**63 + 1), "q", None, None), ("row-1", "r", None, None)]), "whole_number_ids"),
    Case("d.parquet", Refused("column 'id' holds double, not text"), "float_ids"),
    Case("d.parquet", questions("q"), "nested_beside_text"),
    Case(
        "d.parquet",
        Refused(r"has no column 'qa\.question' \(columns\.question\); it has 'qa'"),
        "nested_question",
        columns={"question": "qa.question"},
    ),
    Case("d.parquet", _QA, "dotted_name", columns={"question": "qa.question", "reference_answer": "qa.answer"}),
    Case("d.parquet", Refused(_NO_PARQUET + r"column 'question' stands twice\)"), "columns_twice"),
    Case("d.parquet", questions("q"), "many_columns"),
    Case("d.parquet", Refused(_NO_PARQUET + "'utf-8' codec"), "not_utf8"),
    Case("d.parquet", Refused(_NO_PARQUET + "'utf-8' codec"), "name_that_is_not_utf8"),
    Case(
        "d.parquet",
        Loaded(
            [
                (f"row-{number}", text, None, None)
                for number, text in enumerate(["a\0b", "a\u2028b\u2029c\x85d", "=SUM(A1)", "\u202eolleh"])
            ],
            [(4, "no question")],
        ),
        "odd_characters",
    ),
    bytes_case("nothing in parquet", "d.parquet", b"", Refused(_NO_PARQUET + "Parquet file size is 0 bytes")),
    Case("d.parquet", Refused(_NO_PARQUET + "Parquet magic bytes not found"), "cut_in_half"),
    Case("d.parquet", Refused(_NO_PARQUET), "last_byte_gone"),
    Case("d.parquet", Refused(_NO_PARQUET), "wrong_magic"),
    Case("d.parquet", Refused(_NO_PARQUET), "footer_longer_than_the_file"),
    Case("d.parquet", Refused(_NO_PARQUET), "footer_of_noise"),
    Case("d.parquet", Refused(r"is encrypted parquet\. Write it without encryption"), "encrypted_footer"),
    Case("d.parquet", Refused(_NO_PARQUET + ".*ncrypted"), "encrypted_columns"),
    Case("d.parquet", Refused(_NO_PARQUET + "its footer speaks of 2000 and of 3000 rows"), "fewer_rows_in_the_file"),
    Case("d.parquet", Refused(_NO_PARQUET + "its footer speaks of 3000 and of 4000 rows"), "more_rows_in_the_file"),
    Case("d.parquet", Refused(_NO_PARQUET + "its footer speaks of 2000 and of 3000 rows"), "fewer_rows_in_the_group"),
    Case("d.parquet", Refused(_NO_PARQUET + "its footer speaks of 2000 and of 3000"), "fewer_rows_in_file_and_group"),
    Case("d.parquet", Refused(_NO_PARQUET + "its footer speaks of 3000 and of 4000 rows"), "more_rows_everywhere"),
    Case("d.parquet", Refused(_NO_PARQUET), "zstd_page_half_lost"),
    Case("d.parquet", Refused(_NO_PARQUET), "gzip_page_half_lost"),
    Case("d.parquet", Refused(_NO_PARQUET), "snappy_page_half_lost"),
    Case("d.parquet", Refused(_NO_PARQUET + ".*(crc|CRC|checksum)"), "page_unlike_its_checksum"),
]

OTHER_KINDS = [
    Case("d.jsonl", Refused(r"is gzip-compressed\. Decompress it first"), "gzip_jsonl"),
    Case("d.jsonl.gz", Refused(r"is gzip-compressed\. Decompress it first"), "gzip_jsonl", name="jsonl.gz"),
    Case("d.csv", Refused(r"is zstd-compressed\. Decompress it first"), "zstd_csv"),
    Case("d.csv", Refused("is a ZIP archive, or an Excel workbook.* Save its sheet as CSV in UTF-8"), "workbook"),
    Case(
        "d.xlsx",
        Refused("is a ZIP archive, or an Excel workbook.* Save its sheet as CSV in UTF-8"),
        "workbook",
        name="xlsx",
    ),
    Case("d.parquet", Refused(r"is an Arrow IPC file\. Write it as parquet"), "arrow_file"),
    Case("d.csv", Refused(r"is parquet\. Name it with 'format: parquet'"), "plain", name="parquet named csv"),
    Case("d.bin", Loaded([("row-0", "q", "a", "c")]), "plain", format="parquet", name="parquet by its format"),
    Case("csv_named.parquet", Refused(_NO_PARQUET)),
    Case("error_page.csv", Refused(r"is an HTML page\. A download may have saved an error page")),
    Case("error_page.parquet", Refused(r"is an HTML page\. A download may have saved an error page")),
    Case("lfs_pointer.parquet", Refused(r"is a Git LFS pointer\. Fetch the file itself with 'git lfs pull'")),
    Case("unknown_ending.json", Refused(r"ending '\.json' says no known kind\. Name it with 'format: parquet'")),
    Case("unknown_ending.tsv", Refused(r"ending '\.tsv' says no known kind\. Name it with 'format: parquet'")),
    Case("x.csv", Refused(r"x\.csv' is a folder\. Check the suite's 'file'"), "folder"),
    Case("x.jsonl", Refused(r"x\.jsonl' is no regular file\. Check the suite's 'file'"), "pipe"),
    Case("x.jsonl", Refused(r"no regular file\. Check the suite's 'file'"), "device"),
    Case("x.jsonl", Refused(r"path 'x\.jsonl' is not usable \(Symlink loop|does not exist"), "loop_of_links"),
    Case("x.jsonl", Refused(r"does not exist\. Check the suite's 'file'"), "link_to_nothing"),
    Case("x.parquet", Loaded([("row-0", "q", "a", "c")]), "link_into_a_cache"),
    Case("x.jsonl", Refused(r"cannot be read as a file \(.*Permission denied"), "without_permission"),
]

CASES = [*ENCODINGS, *CSV, *JSON, *ROWS, *PARQUET, *OTHER_KINDS]

AT_THE_COMMAND_LINE = (
    "utf-16-le",
    "unclosed_quote.csv",
    "ids_twice.jsonl",
    "deep_json",
    "fewer_rows_in_the_group",
    "page_unlike_its_checksum",
    "pipe",
    "many_columns_without_a_question",
)
"""Names of refused cases that are run as a process too: one of each way to fail."""
