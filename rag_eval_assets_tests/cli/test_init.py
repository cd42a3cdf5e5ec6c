"""`rag-eval init`: what it says, and that it never replaces a file. What it makes is tested in dataset/test_starter."""

from __future__ import annotations


def test_it_writes_a_suite_that_is_valid_and_says_what_it_understood(place) -> None:
    (place.folder / "faq.csv").write_text(
        "Question,Expected answer,Source text\nWho?,She.,She did.\n,Nobody.,Nobody did.\nWhy?,,So.\n"
    )
    process = place.run("init", "faq.csv")
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines() == [
        "wrote faq.yaml: 2 questions over 3 documents",
        "  question          Question",
        "  reference answer  Expected answer",
        "  context           Source text",
        "  id                none, so row-0, row-1 ...",
        "  1 row without a question left out",
        "  1 row without a reference answer: asked, but not scored",
        "next: rag-eval run faq.yaml",
    ]
    assert place.run("validate", "faq.yaml").stdout.startswith("faq.yaml: valid (faq, ")
    written = (place.folder / "faq.yaml").read_text()
    again = place.run("init", "faq.csv")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        "error: 'faq.yaml' exists already. Run it (rag-eval run faq.yaml), or write another with --output FILE\n"
    )
    assert (place.folder / "faq.yaml").read_text() == written
    (place.folder / "notes.txt").touch()
    other = place.run("init", "faq.csv", "--output", "notes.txt")
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr == "error: 'notes.txt' exists already. Write another with --output FILE\n"
