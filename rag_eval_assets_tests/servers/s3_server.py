"""moto's S3 and IAM on 127.0.0.1 for the tests, in a process of its own, with a log of every request.

Run as `python s3_server.py LOG [PORT]`; prints the port. IAM is enforced from the third request on: the first two make
the administrator. Each line of the log is one request as it arrived: method, path, access key, headers, status.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"  # read when moto is imported: create user, its policy, its key

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEPT = ("HTTP_IF_NONE_MATCH", "HTTP_X_AMZ_CHECKSUM_SHA256", "CONTENT_TYPE", "HTTP_HOST")


class Recorded:
    """An application whose requests are written down before their answers are sent."""

    def __init__(self, app: Callable[..., Iterable[bytes]], log: str) -> None:
        self._app = app
        self._log = log

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        credential = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        line: dict[str, Any] = {
            "method": environ["REQUEST_METHOD"],
            "path": environ["PATH_INFO"],
            "query": environ["QUERY_STRING"],
            "access_key": credential[1] if credential else None,
            "headers": {name: environ[name] for name in KEPT if environ.get(name)},
        }

        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            line["status"] = int(status.split(maxsplit=1)[0])
            with open(self._log, "a") as log:  # noqa: PTH123 - appended, one write
                log.write(json.dumps(line) + "\n")
            return start_response(status, headers, *rest)

        return self._app(environ, started)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: Any, **__: Any) -> None:
        pass


def main() -> None:
    log, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    app = Recorded(DomainDispatcherApplication(create_backend_app), log)
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)  # noqa: T201 - told to the parent
    server.serve_forever()


if __name__ == "__main__":
    main()
