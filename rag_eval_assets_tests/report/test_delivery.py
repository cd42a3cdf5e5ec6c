"""One report and its bucket: conditional puts, lost answers, refusals; each against a real server on 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rag_eval_assets.errors import ConfigurationError
from rag_eval_assets.home import Home
from rag_eval_assets.progress import SILENT
from rag_eval_assets.report import delivery
from rag_eval_assets.report.delivery import ATTEMPTS, Outcome, deliver
from rag_eval_assets.report.spool import Parcel, State, folder_of, parcel_of, receipts, waiting
from rag_eval_assets.report.write import write_report
from rag_eval_assets.storage.s3 import make_session
from rag_eval_assets.storage.s3_errors import Fault, S3Error
from rag_eval_assets.storage.s3_names import S3Bucket

ENDINGS = ("parquet", "html", "json")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 0.0)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def bucket(reports) -> S3Bucket:
    return S3Bucket(reports.bucket, "eu-central-1", reports.server.url, "path")


@pytest.fixture
def parcel(home: Home, bucket: S3Bucket, report, rows) -> Parcel:
    folder = folder_of(home, report.run_id)
    return parcel_of(folder, write_report(folder, report, rows), bucket)


class Proxy:
    """A TCP proxy that passes requests on to a server and drops the answers of the first ones."""

    def __init__(self, port: int, drops: int) -> None:
        self._port, self._drops = port, drops
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                client.settimeout(5)
                server.settimeout(5)
                self._pass(client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        while b"\r\n\r\n" not in (request := _more(client, b"")):
            pass
        if b"100-continue" in request.lower():
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            request = _without_expectation(request)
        head, _, body = request.partition(b"\r\n\r\n")
        length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))[15:])
        while len(body) < length:
            body = _more(client, body)
        head = head.replace(b"Connection: keep-alive", b"") + b"\r\nConnection: close"
        server.sendall(head + b"\r\n\r\n" + body)
        answer = b""
        while part := server.recv(65536):
            answer += part
        if self._drops:
            self._drops -= 1  # the object is stored, and nobody hears of it
        else:
            client.sendall(answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def _more(stream: socket.socket, had: bytes) -> bytes:
    return had + stream.recv(65536)


def _without_expectation(request: bytes) -> bytes:
    return b"\r\n".join(line for line in request.split(b"\r\n") if not line.lower().startswith(b"expect:"))


class Scripted(BaseHTTPRequestHandler):
    """Answers each PUT with the next of the server's answers, and any other request with 418."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.command)
        answers = self.server.answers
        status, code, headers = answers.pop(0) if len(answers) > 1 else answers[0]
        body = f"<Error><Code>{code}</Code><Message>secret-in-a-message</Message></Error>".encode() if code else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.server.asked.append(self.command)
        self.send_response(418)
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.asked, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def aimed_at(parcel: Parcel, port: int) -> Parcel:
    made = parcel.to(S3Bucket(parcel.bucket.name, "eu-central-1", f"http://127.0.0.1:{port}", "path"))
    made.keep()
    return made


def states(home: Home) -> list[State]:
    (parcel,) = waiting(home)
    return list(parcel.states.values())


def test_a_second_put_of_one_run_id_is_a_conflict_and_the_spool_is_kept(home, parcel, reports, tmp_path) -> None:
    assert deliver(home, parcel, SILENT) is Outcome.DELIVERED
    objects = reports.objects()
    other = Home(tmp_path / "another-machine")
    for path in parcel.folder.rglob("*"):
        if path.is_file() and path.name != "delivery.json":
            place = other.spool / path.relative_to(home.spool)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    theirs = Parcel(
        folder_of(other, parcel.run_id),
        parcel.run_id,
        parcel.key,
        parcel.bucket,
        parcel.sha256,
        dict.fromkeys(parcel.states, State.WAITING),
    )
    theirs.keep()
    with pytest.raises(S3Error, match=r"failed: exists \(PreconditionFailed\)\. An object is never replaced"):
        deliver(other, theirs, SILENT)
    assert states(other) == [State.WAITING] * 3
    assert reports.objects() == objects
    assert [status for *_, status in reports.requests()] == [200, 200, 200, 412]


@pytest.mark.parametrize("drops", [1, 3])
def test_a_put_whose_answer_was_dropped_counts_as_delivered_when_it_is_tried_again(
    home, parcel, reports, drops: int
) -> None:
    proxy = Proxy(reports.server.port, drops)
    try:
        assert deliver(home, aimed_at(parcel, proxy.port), SILENT) is Outcome.DELIVERED
    finally:
        proxy.close()
    refused = [412] * drops
    assert [status for *_, status in reports.requests()] == [200, *refused, 200, 200]
    assert sorted(reports.objects()) == sorted(f"{parcel.key}.{ending}" for ending in ENDINGS)
    assert receipts(home).keys() == {parcel.run_id}


def test_what_a_killed_process_had_sent_counts_as_delivered_for_the_next_one(home, parcel, reports, bucket) -> None:
    """The process died between its PUT and the answer: its note says that there was an attempt."""
    parcel.note("parquet", State.UNKNOWN)
    path = parcel.path("parquet")
    reports.server.client().put_object(Bucket=bucket.name, Key=f"{parcel.key}.parquet", Body=path.read_bytes())
    (found,) = waiting(home)
    assert deliver(home, found, SILENT) is Outcome.DELIVERED
    assert [status for *_, status in reports.requests()] == [412, 200, 200]


def test_an_attempt_at_another_bucket_says_nothing_about_this_one(parcel, bucket) -> None:
    tried = parcel.note("json", State.UNKNOWN)
    renewed = S3Bucket(bucket.name, "us-east-1", bucket.endpoint, "auto", "other-profile")
    assert tried.to(renewed).states["json"] is State.UNKNOWN
    elsewhere = S3Bucket("another-bucket", bucket.region, bucket.endpoint, bucket.addressing)
    assert set(tried.to(elsewhere).states.values()) == {State.WAITING}


OK = (200, "", {})


@pytest.mark.parametrize(
    "answer",
    [
        (503, "SlowDown", {}),
        (503, "", {}),
        (500, "InternalError", {}),
        (502, "", {}),
        (429, "", {}),
        (400, "RequestTimeout", {}),
        (409, "ConditionalRequestConflict", {}),
        (400, "BadDigest", {}),
    ],
)
def test_what_may_pass_is_tried_again(home, parcel, reports, scripted, answer: tuple[int, str, dict[str, str]]) -> None:
    scripted.answers = [answer, answer, OK]
    assert deliver(home, aimed_at(parcel, scripted.server_port), SILENT) is Outcome.DELIVERED
    assert scripted.asked == ["PUT"] * 5


def test_what_does_not_pass_is_given_up_and_the_report_waits(home, parcel, reports, scripted) -> None:
    scripted.answers = [(503, "SlowDown", {})]
    with pytest.raises(S3Error, match=r"failed: busy \(SlowDown\)"):
        deliver(home, aimed_at(parcel, scripted.server_port), SILENT)
    assert scripted.asked == ["PUT"] * ATTEMPTS
    assert states(home) == [State.WAITING] * 3, "nothing was stored, so a 412 later on is somebody else's"
    scripted.answers = [(500, "InternalError", {})]
    with pytest.raises(S3Error, match=r"failed: no answer \(InternalError\)"):
        deliver(home, waiting(home)[0], SILENT)
    assert states(home)[0] is State.UNKNOWN, "a server that failed may have stored it"


@pytest.mark.parametrize(
    ("answer", "fault", "message"),
    [
        ((403, "AccessDenied", {}), Fault.DENIED, r"denied \(AccessDenied\)\. Allow that action"),
        ((400, "ExpiredToken", {}), Fault.CREDENTIALS, r"credentials \(ExpiredToken\)\. Renew the AWS credentials"),
        ((403, "InvalidAccessKeyId", {}), Fault.CREDENTIALS, "Renew the AWS credentials"),
        ((403, "SignatureDoesNotMatch", {}), Fault.CREDENTIALS, "Renew the AWS credentials"),
        (
            (301, "PermanentRedirect", {"x-amz-bucket-region": "us-west-2"}),
            Fault.REGION,
            r"region \(PermanentRedirect, the bucket is in us-west-2\)\. Set the bucket's region",
        ),
        ((400, "AuthorizationHeaderMalformed", {}), Fault.REGION, "Set the bucket's region"),
        ((404, "NoSuchBucket", {}), Fault.NO_BUCKET, "Create the bucket"),
        ((412, "PreconditionFailed", {}), Fault.EXISTS, "An object is never replaced"),
        ((405, "MethodNotAllowed", {}), Fault.REFUSED, "Look the code up"),
    ],
)
def test_what_will_not_pass_is_said_once_and_nothing_else_is_asked(
    home, parcel, reports, scripted, answer: tuple[int, str, dict[str, str]], fault: Fault, message: str
) -> None:
    scripted.answers = [answer]
    with pytest.raises(S3Error, match=message) as caught:
        deliver(home, aimed_at(parcel, scripted.server_port), SILENT)
    assert caught.value.fault is fault
    assert f"s3:PutObject on s3://{parcel.bucket.name}/{parcel.key}.parquet" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert scripted.asked == ["PUT"], "one request, and no HEAD to look for the region"
    assert states(home) == [State.WAITING] * 3


def test_a_connection_that_cannot_be_made_is_told_from_one_that_was_lost(home, parcel, reports) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    with pytest.raises(S3Error, match=r"unreachable \(EndpointConnectionError\)\. Check network and endpoint"):
        deliver(home, aimed_at(parcel, free), SILENT)
    assert states(home)[0] is State.WAITING


def test_credentials_that_are_gone_by_now_are_reported_once(home, parcel, reports, monkeypatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(S3Error, match=r"credentials \(NoCredentialsError\)"):
        deliver(home, parcel, SILENT)


def test_a_profile_that_is_not_there_is_named(no_aws) -> None:
    with pytest.raises(ConfigurationError, match="AWS profile 'nobody' is in no AWS configuration file"):
        make_session("nobody")


def test_a_profile_gives_the_credentials(home, parcel, reports, monkeypatch, tmp_path) -> None:
    """So the report writer and the table store of one process can have roles of their own."""
    credentials = tmp_path / "credentials"
    lines = [f"{name} = {value}" for name, value in reports.writer.items()]
    credentials.write_text("\n".join(["[writer]", *lines]) + "\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    bucket = parcel.bucket
    profiled = parcel.to(S3Bucket(bucket.name, bucket.region, bucket.endpoint, bucket.addressing, "writer"))
    profiled.keep()
    assert deliver(home, profiled, SILENT) is Outcome.DELIVERED


def test_a_half_written_report_in_the_spool_is_no_parcel(home) -> None:
    (home.spool / "killed" / "qa").mkdir(parents=True)
    assert waiting(home) == []
