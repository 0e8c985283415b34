"""Stores that pyarrow asks for us: how long they are asked, and what is said when they do not answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from partsketch import InputError
from partsketch.sources.files.filesystems import filesystem_of, reading, with_patience


def test_google_is_not_asked_for_a_quarter_of_an_hour() -> None:
    assert with_patience("gs://bucket/x.csv") == "gs://bucket/x.csv?retry_limit_seconds=5"
    assert with_patience("gs://bucket/x.csv?scheme=http") == "gs://bucket/x.csv?scheme=http&retry_limit_seconds=5"
    for location in ("gs://bucket/x.csv?retry_limit_seconds=9", "file:///x.csv"):
        assert with_patience(location) == location
    assert filesystem_of("gs://bucket/x.csv")[1] == "bucket/x.csv", "pyarrow knows the option"


def test_a_store_that_does_not_answer_is_not_called_damage() -> None:
    refusal = "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of Could not create"
    with pytest.raises(InputError, match="the store does not answer"), reading("gs://bucket/x.parquet", "a file"):
        raise pa.ArrowException(refusal)
