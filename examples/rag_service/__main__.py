"""Starts the service: `python examples/rag_service --help`."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

import uvicorn
from answering import Embedded, Light, read_corpus
from faults import Disturbed, Faults, Stats
from service import build


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="rag_service", description="A small RAG service to evaluate.")
    parser.add_argument("--port", type=int, default=8901, help="port on 127.0.0.1; 0 takes a free one (default: 8901)")
    parser.add_argument("--light", action="store_true", help="words instead of a model: starts at once")
    parser.add_argument("--corpus", type=Path, help="documents (id, text) instead of the packaged sample")
    trouble = parser.add_argument_group("trouble; --...-every N disturbs every N-th request")
    trouble.add_argument("--latency-ms", type=float, default=0.0, help="how long every answer takes")
    trouble.add_argument("--fail-every", type=int, default=0, metavar="N")
    trouble.add_argument("--fail-rate", type=float, default=0.0, help="share of requests, the same in every run")
    trouble.add_argument("--fail-status", type=int, default=500)
    trouble.add_argument("--limit-every", type=int, default=0, metavar="N", help="answer 429")
    trouble.add_argument("--retry-after", default="0", help="the Retry-After of 429: seconds or an HTTP date")
    trouble.add_argument("--drop-every", type=int, default=0, metavar="N", help="close the connection in mid-body")
    trouble.add_argument("--html-every", type=int, default=0, metavar="N", help="answer 200 with an HTML page")
    trouble.add_argument("--reverse-embeddings", action="store_true", help="return batches last text first")
    keys = parser.add_argument_group("keys")
    keys.add_argument("--key-env", metavar="NAME", help="require the key in this environment variable")
    keys.add_argument("--echo-key", action="store_true", help="repeat the sent key in error texts")
    keys.add_argument("--echo-in-answers", action="store_true", help="repeat it in the answers of /query too")
    return parser.parse_args()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    given = arguments()
    key = None if given.key_env is None else os.environ.get(given.key_env) or sys.exit(f"{given.key_env} is not set")
    names = ("latency_ms", "fail_every", "fail_rate", "fail_status", "limit_every", "retry_after", "drop_every",
             "html_every", "echo_key", "echo_in_answers")  # fmt: skip
    faults = Faults(key=key, **{name: getattr(given, name) for name in names})
    documents, stats = read_corpus(given.corpus), Stats()
    knowledge = Light(documents) if given.light else Embedded(documents)
    app = build(knowledge, documents, stats, reverse_embeddings=given.reverse_embeddings)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", given.port))
        listening.listen(1024)
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)  # noqa: T201 - a program's own words
        config = uvicorn.Config(Disturbed(app, faults, stats), log_level="critical", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
