"""What a failed request to S3 means: whether it may have been carried out, whether it is worth another try, what to do.

The codes are those of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html; a client's message is never
passed on, since it may hold what a proxy or a configuration file put into it.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rag_eval_assets.errors import InfrastructureError
from rag_eval_assets.storage.s3_names import S3Bucket


class Fault(StrEnum):
    """Kinds of failure."""

    UNREACHABLE = "unreachable"  # no connection, so nothing was carried out
    NO_ANSWER = "no answer"  # the request may have been carried out
    BUSY = "busy"  # refused for now, nothing was carried out
    EXISTS = "exists"  # If-None-Match: * met an object
    DENIED = "denied"
    CREDENTIALS = "credentials"
    REGION = "region"
    NO_BUCKET = "no bucket"
    NO_KEY = "no key"
    REFUSED = "refused"


RETRIED = frozenset({Fault.UNREACHABLE, Fault.NO_ANSWER, Fault.BUSY})
"""Worth another try with the same bytes."""

# 409 is what a conditional write gets that meets another one in progress; 400 RequestTimeout is S3 giving up on a body
# that came too slowly; BadDigest means that the bytes changed on their way.
_CODES = {
    "SlowDown": Fault.BUSY,
    "ServiceUnavailable": Fault.BUSY,
    "Throttling": Fault.BUSY,
    "ThrottlingException": Fault.BUSY,
    "RequestLimitExceeded": Fault.BUSY,
    "TooManyRequestsException": Fault.BUSY,
    "RequestTimeout": Fault.BUSY,
    "ConditionalRequestConflict": Fault.BUSY,
    "OperationAborted": Fault.BUSY,
    "BadDigest": Fault.BUSY,
    "XAmzContentChecksumMismatch": Fault.BUSY,
    "PreconditionFailed": Fault.EXISTS,
    "AccessDenied": Fault.DENIED,
    "AllAccessDisabled": Fault.DENIED,
    "AccountProblem": Fault.DENIED,
    "ExpiredToken": Fault.CREDENTIALS,
    "ExpiredTokenException": Fault.CREDENTIALS,
    "TokenRefreshRequired": Fault.CREDENTIALS,
    "InvalidAccessKeyId": Fault.CREDENTIALS,
    "InvalidClientTokenId": Fault.CREDENTIALS,
    "InvalidToken": Fault.CREDENTIALS,
    "SignatureDoesNotMatch": Fault.CREDENTIALS,
    "RequestTimeTooSkewed": Fault.CREDENTIALS,
    "RequestExpired": Fault.CREDENTIALS,
    "PermanentRedirect": Fault.REGION,
    "TemporaryRedirect": Fault.REGION,
    "AuthorizationHeaderMalformed": Fault.REGION,
    "IllegalLocationConstraintException": Fault.REGION,
    "NoSuchBucket": Fault.NO_BUCKET,
    "NoSuchKey": Fault.NO_KEY,
}
_STATUSES = {301: Fault.REGION, 307: Fault.REGION, 403: Fault.DENIED, 404: Fault.NO_KEY, 412: Fault.EXISTS}
_FIXES = {
    Fault.UNREACHABLE: "Check network and endpoint (report.s3.endpoint, RAG_EVAL_S3_ENDPOINT)",
    Fault.NO_ANSWER: "Try again later",
    Fault.BUSY: "Try again later",
    Fault.DENIED: "Allow that action on that key, or use other credentials or another environment's label",
    Fault.CREDENTIALS: "Renew the AWS credentials, and check the machine's clock",
    Fault.REGION: "Set the bucket's region (report.s3.region, RAG_EVAL_S3_REGION)",
    Fault.NO_BUCKET: "Create the bucket (deploy/aws), or correct its name",
    Fault.NO_KEY: "Check the key",
    Fault.EXISTS: "An object is never replaced; look at what lies there with the reader's credentials",
    Fault.REFUSED: "Look the code up in the documentation of the S3 service",
}


@dataclass(frozen=True)
class Diagnosis:
    """What a failure means.

    Attributes:
        fault: its kind.
        code: what the service, or else the client, calls it.
        region: where the bucket is, in so far as the service said so.
    """

    fault: Fault
    code: str
    region: str | None = None


class S3Error(InfrastructureError):
    """A request to S3 that failed for good; says which action on which object, and why."""

    def __init__(self, diagnosis: Diagnosis, action: str, uri: str) -> None:
        where = f", the bucket is in {diagnosis.region}" if diagnosis.region else ""
        super().__init__(
            f"s3:{action} on {uri} failed: {diagnosis.fault} ({diagnosis.code}{where})", fix=_FIXES[diagnosis.fault]
        )
        self.diagnosis = diagnosis
        self.action = action
        self.uri = uri

    @property
    def fault(self) -> Fault:
        """Kind of the failure."""
        return self.diagnosis.fault


def s3_error(error: Exception, action: str, bucket: S3Bucket, key: str) -> S3Error:
    """A client's exception as one of ours."""
    return S3Error(diagnose(error), action, bucket.uri(key))


def diagnose(error: Exception) -> Diagnosis:
    """What an exception of botocore means; an unknown one is of kind REFUSED."""
    from botocore import exceptions as boto

    name = type(error).__name__
    if isinstance(error, boto.ClientError):
        return _of_answer(error.response)
    if isinstance(error, boto.EndpointConnectionError | boto.ConnectTimeoutError | boto.ProxyConnectionError):
        return Diagnosis(Fault.UNREACHABLE, name)
    if isinstance(error, boto.SSLError):
        return Diagnosis(Fault.REFUSED, name)
    if isinstance(error, boto.HTTPClientError):  # read timeouts, closed connections
        return Diagnosis(Fault.NO_ANSWER, name)
    no_credentials = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.ProfileNotFound,
        boto.UnauthorizedSSOTokenError,
    )
    if isinstance(error, no_credentials):
        return Diagnosis(Fault.CREDENTIALS, name)
    return Diagnosis(Fault.REFUSED, name)


def _of_answer(response: Any) -> Diagnosis:
    code = str(response.get("Error", {}).get("Code", ""))
    metadata = response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode", 0))
    region = metadata.get("HTTPHeaders", {}).get("x-amz-bucket-region") or response.get("Error", {}).get("Region")
    known = _CODES.get(code)
    if known is not None:
        return Diagnosis(known, code, region if known is Fault.REGION else None)
    if status in (429, 503):
        return Diagnosis(Fault.BUSY, code or str(status))
    if status >= 500:  # a server that fails may have stored the object before
        return Diagnosis(Fault.NO_ANSWER, code or str(status))
    other = _STATUSES.get(status, Fault.REFUSED)
    return Diagnosis(other, code or str(status), region if other is Fault.REGION else None)
