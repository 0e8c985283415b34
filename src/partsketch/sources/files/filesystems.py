"""Where files lie: on this machine, in an object store, or on any file system that pyarrow knows by URI."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from partsketch.common.errors import InputError, UnreadableError

#: Seconds until a store that does not answer is given up, and how often it is asked.
_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 5.0, 60.0, 3


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turn what pyarrow raises for an unreadable file into one sentence."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        text = bytes(error.object)[:60].decode("utf-8", "backslashreplace")
        raise UnreadableError(
            f"{name} has a name or a text that is not UTF-8 ('{text}'): save it as UTF-8, or rename the column."
        ) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise UnreadableError(f"{name} does not exist.") from error
        refused = _refusal_of_a_store(name, str(error))
        if not refused and isinstance(error, OSError) and error.errno:
            # The system refuses, as a file of somebody else: nothing is known of what is in it.
            refused = f"{name} cannot be read: {os.strerror(error.errno)}."
        if refused:
            raise UnreadableError(refused) from error
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        # A damaged file may be quoted in the message.
        reason = "".join(letter if letter.isprintable() else "?" for letter in first_line[:160]).rstrip(". ")
        raise UnreadableError(f"{name} cannot be read as {kind}, it may be truncated or damaged: {reason}.") from error


def _refusal_of_a_store(name: str, message: str) -> str:
    """Say in one sentence what an object store refused; empty when no store was asked."""
    if "Unrecognized filesystem type in URI" in message:
        return f"{name} cannot be read: give a path, or an address that begins with s3://, gs://, hdfs:// or file://."
    if "google::cloud::Status" in message and ("UNAVAILABLE" in message or "UNAUTHENTICATED" in message):
        return f"{name} cannot be read: the store does not answer, or not without GOOGLE_APPLICATION_CREDENTIALS."
    if "AWS Error" not in message:
        return ""
    if "NO_SUCH_BUCKET" in message:
        return f"{name} cannot be read: there is no such bucket at this address; check its name and AWS_ENDPOINT_URL."
    denied = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "FORBIDDEN", "HTTP status 403")
    if any(word in message for word in denied):
        return (
            f"{name} cannot be read: the store refused the credentials; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, AWS_REGION) to ones that may read it."
        )
    if "HTTP status 301" in message or "PERMANENT_REDIRECT" in message:
        return f"{name} cannot be read: its bucket lies in another region; set AWS_REGION to that."
    if "NETWORK_CONNECTION" in message:
        return f"{name} cannot be read: the store does not answer; check AWS_ENDPOINT_URL and AWS_REGION."
    if "RESOURCE_NOT_FOUND" in message or "NO_SUCH_KEY" in message or "HTTP status 404" in message:
        return f"{name} does not exist in the store, or its bucket does not."
    return ""


@lru_cache(maxsize=32)
def filesystem_of(location: str) -> tuple[Any, str]:
    """Return the file system of a path or URI and the path on it; kept, for a URI may cost a request to a server."""
    from pyarrow import fs

    if "://" not in location:
        return fs.LocalFileSystem(), location
    with reading(location, "a file or directory"):
        if location.startswith("s3://") and "?" not in location and "@" not in location:
            return _object_store(), unquote(location.removeprefix("s3://").rstrip("/"))
        filesystem, path = fs.FileSystem.from_uri(with_patience(location))
    return filesystem, path


def with_patience(location: str) -> str:
    """Return a URI that says how long its store is asked; Google's would be asked for a quarter of an hour."""
    if not location.startswith(("gs://", "gcs://")) or "retry_limit_seconds" in location:
        return location
    return f"{location}{'&' if '?' in location else '?'}retry_limit_seconds={_CONNECT_SECONDS:.0f}"


def _object_store() -> Any:
    """Return the store that the environment names.

    pyarrow would find the region of a bucket by asking Amazon, wherever the bucket lies, and ask for minutes.
    """
    from pyarrow import fs

    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    parts = urlsplit(address if "://" in address else f"https://{address}")
    if address and (parts.scheme not in ("http", "https") or not parts.netloc):
        raise InputError(f"AWS_ENDPOINT_URL is {address!r}: it must be an address such as http://localhost:9000.")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        region=region or ("us-east-1" if address else None),
        scheme=parts.scheme,
        endpoint_override=parts.netloc + parts.path.rstrip("/") if address else None,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def listed(filesystem: Any, directory: str, entry: str, recursive: bool) -> list[Any]:
    """Return what a folder holds; nothing where there is none."""
    from pyarrow import fs

    with reading(entry, "a directory"):
        try:
            found: list[Any] = filesystem.get_file_info(fs.FileSelector(directory, recursive=recursive))
        except FileNotFoundError:
            # A bucket that is not there raises something else.
            return []
    for info in found:
        try:
            _ = info.path
        except UnicodeDecodeError as error:
            name = posixpath.basename(bytes(error.object).decode("utf-8", "backslashreplace"))
            raise InputError(f"{entry} holds '{name}', a name that is not UTF-8: rename it.") from None
    return found


def same_file(paths: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two paths of this machine that lead to one file, as a link `latest` to a folder makes them."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        # What is not there is said when it is opened.
        with suppress(OSError):
            file = os.stat(path)
            other = seen.setdefault((file.st_dev, file.st_ino), path)
            if other is not path:
                return other, path
    return None
