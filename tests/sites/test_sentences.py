"""What is refused while sketching and answering speaks of sketches, not of models."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import partsketch as ps

TABLE = pa.table(
    {"x": [1.0, 2.0, 3.0, 4.0] * 9, "colour": ["red", "blue", "red", "blue"] * 9, "y": [1.0, 2.0, 4.0] * 12}
)


def refused(message: str, make: Any) -> None:
    with pytest.raises(ps.InputError, match=message) as caught:
        make()
    assert "fit" not in str(caught.value)


@pytest.mark.parametrize("target", ["y", "y ~ x + colour"])
def test_a_level_that_sites_did_not_agree_on(target: str) -> None:
    refused(
        r"level 'blue' in row 1, which the encoding does not know: correct it, or add it to the levels .*\(--levels\)",
        lambda: ps.sketch(TABLE, target, levels={"colour": ["red", "green"]}, sketch_size=20),
    )


def test_a_stream_that_is_needed_twice() -> None:
    refused(
        "Encoding text needs a pass over the data first, and this stream can be read only once",
        lambda: ps.sketch(TABLE.to_reader(), "y", encode=True, sketch_size=20),
    )
    refused(
        "The formula needs a pass over the data for colour first",
        lambda: ps.sketch(TABLE.to_reader(), "y ~ colour", sketch_size=20),
    )


def test_a_level_that_was_not_there_when_rows_were_sketched() -> None:
    levels = {"colour": ["blue", "red"]}
    sketches = [ps.sketch(TABLE, "y", levels=levels, site=site, sketch_size=20, random_state=1) for site in "ab"]
    question = ps.refine(sketches).question
    other = TABLE.set_column(1, "colour", pa.array(["red", "blue", "green"] * 12))
    refused(
        "level 'green' in row 2, .*: correct it, or sketch or summarise all rows again",
        lambda: ps.answer(question, other, site="a"),
    )


def test_a_model_is_to_be_fitted_again() -> None:
    model = ps.fit(TABLE, "y", encode=True)
    other = TABLE.set_column(1, "colour", pa.array(["red", "blue", "green"] * 12))
    with pytest.raises(ps.InputError, match="does not know: correct it or fit the model again"):
        model.predict(other)
