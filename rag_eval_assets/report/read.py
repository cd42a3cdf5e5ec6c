"""Reads reports back, from a local path or a URI, and says in one sentence why a file cannot be read as one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from rag_eval_assets.errors import ConfigurationError, InfrastructureError
from rag_eval_assets.report.schema import SCHEMA_VERSION, Report
from rag_eval_assets.settings import Settings


def read_report(path_or_uri: str | Path) -> Report:
    """Read a report of the major version that this release knows. Fields that a later minor version added do not
    hinder; `load_report` gives them.

    Args:
        path_or_uri: a local path, a `file://` URI, or a URI that pyarrow reads, such as `s3://bucket/key`.

    Raises:
        ConfigurationError: there is no such file, it is no report, or its major version is unknown.
        InfrastructureError: the storage behind a URI cannot be read.
    """
    return parse_report(load_report(path_or_uri), str(path_or_uri))


def parse_report(values: Mapping[str, Any], name: str) -> Report:
    """The report that plain JSON values stand for; `name` is what errors call it.

    Raises:
        ConfigurationError: they are no valid report.
    """
    try:
        return Report.model_validate(values, extra="allow")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            f"{name!r} is no valid report: {where}: {first['msg']} ({error.error_count()} faults in all)"
        ) from error


def load_report(path_or_uri: str | Path) -> dict[str, Any]:
    """The report's plain JSON values as they stand in the file, once it says that its major version is known.

    Raises:
        ConfigurationError, InfrastructureError: as `read_report`.
    """
    name = str(path_or_uri)
    try:
        values: Any = json.loads(read_bytes(path_or_uri), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # ValueError: no JSON, or no UTF-8
        raise ConfigurationError(f"{name!r} holds no valid JSON ({error})", fix=_json_beside(name)) from error
    if not isinstance(values, dict) or "schema_version" not in values:
        raise ConfigurationError(f"{name!r} is no evaluation report: it has no 'schema_version'")
    found = cast("dict[str, Any]", values)
    version = found["schema_version"]
    known = SCHEMA_VERSION.split(".", 1)[0]
    if not isinstance(version, str) or version.split(".", 1)[0] != known:
        raise ConfigurationError(
            f"{name!r} has schema_version {version!r}; this release reads major version {known}",
            fix="Read it with a release of that version",
        )
    return found


def read_bytes(path_or_uri: str | Path) -> bytes:
    """The bytes of a local path or URI.

    Raises:
        ConfigurationError: there is no such file, or the URI is of no known kind.
        InfrastructureError: the storage behind a URI cannot be read.
    """
    name = str(path_or_uri)
    if "://" not in name:
        try:
            return Path(path_or_uri).read_bytes()
        except IsADirectoryError as error:
            raise ConfigurationError(f"{name!r} is a folder", fix=_report_in(Path(path_or_uri))) from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigurationError(f"{name!r} does not exist") from error
        except OSError as error:
            raise ConfigurationError(f"{name!r} cannot be read ({error.strerror})") from error
    if name.startswith("s3://"):
        return _read_s3(name)
    # The storage clients take a second to load and only URIs need them.
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        filesystem, path = FileSystem.from_uri(name)
    except (pa.ArrowException, OSError) as error:
        raise ConfigurationError(f"{name!r} is no URI that can be read ({error})") from error
    try:
        with filesystem.open_input_stream(path) as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise ConfigurationError(f"{name!r} does not exist") from error
    except (pa.ArrowException, OSError) as error:
        raise InfrastructureError(f"{name!r} cannot be read ({error})") from error


def _json_beside(name: str) -> str | None:
    """What to read in place of a report's page or table, which bear its name."""
    stem, _, ending = name.rpartition(".")
    return f"Give the JSON file beside it: {stem}.json" if ending in ("html", "parquet") else None


def _report_in(folder: Path) -> str:
    """Which file to read in place of a folder."""
    made = [(path.stat().st_mtime, path) for path in folder.glob("**/eval-runs/*/*/*/*.json")]
    newest = f"; the newest in it is {max(made)[1]}" if made else ""
    return f"Give a report's JSON file, which `rag-eval run` names at its end{newest}"


def _read_s3(uri: str) -> bytes:
    """The object of a URI, found by the settings of the environment."""
    from rag_eval_assets.storage.s3 import read_object
    from rag_eval_assets.storage.s3_errors import Fault, S3Error

    settings = Settings.from_environment()
    try:
        return read_object(
            uri, region=settings.s3_region, endpoint=settings.s3_endpoint, addressing=settings.s3_addressing
        )
    except S3Error as error:
        if error.fault is Fault.NO_KEY:
            raise ConfigurationError(f"{uri!r} does not exist") from error
        raise


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
