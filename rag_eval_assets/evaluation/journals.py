"""Where the journals of unfinished runs lie: in the local home, and by `RAG_EVAL_JOURNAL` beside the tables in S3."""

from __future__ import annotations

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.evaluation.context import Evaluation
from rag_eval_assets.recording.bucket_journal import BucketJournal
from rag_eval_assets.recording.journal import Journal
from rag_eval_assets.recording.segments import Segments
from rag_eval_assets.settings import Settings
from rag_eval_assets.storage.s3_store import S3Store

FOLDER = ".journals"
"""Below the prefix of the tables. No suite has that name, so no glob over tables meets a journal."""

ATTEMPTS = 2
"""Requests of a journal; a segment that cannot be put is put with the next one."""


def open_journal(evaluation: Evaluation, target: str) -> Journal | BucketJournal:
    """The journal of a target's answers, to be used as a context manager.

    Raises:
        ConfigurationError: it is to be in S3, and the tables are not.
    """
    place = (evaluation.namespace, evaluation.suite.target_slugs[target], evaluation.run_date)
    local = Journal(evaluation.home.journals.joinpath(*place).with_suffix(".jsonl"))
    settings = Settings.from_environment()
    if settings.journal == "local":
        return local
    store = evaluation.store
    if not isinstance(store, S3Store):
        raise _tables_are_local()
    from rag_eval_assets.storage.s3 import make_client

    client = make_client(store.bucket, attempts=ATTEMPTS)
    segments = Segments(store.bucket, "/".join((store.prefix, FOLDER, *place)), client)
    return BucketJournal(local, segments, evaluation.reporter)


def journals_place(settings: Settings) -> str:
    """Where the journals lie in S3, told before a run; nothing is sent there.

    Raises:
        ConfigurationError: the tables lie in a local folder.
    """
    if settings.tables is None:
        raise _tables_are_local()
    return f"{settings.tables}/{FOLDER}/"


def _tables_are_local() -> ConfigurationError:
    return ConfigurationError(
        "RAG_EVAL_JOURNAL is 's3', and the tables lie in a local folder",
        fix="Put them into a bucket with RAG_EVAL_TABLES, or set RAG_EVAL_JOURNAL to 'local'",
    )
