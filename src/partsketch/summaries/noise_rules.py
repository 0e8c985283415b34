"""What must be true of the noise that a sketch file tells: nobody may make a site count more by claiming less of it."""

from __future__ import annotations

from typing import Any

from partsketch.sketches.base import Sketch
from partsketch.summaries.file_rules import IMPOSSIBLE, HeaderError
from partsketch.summaries.measured import may_be_noise
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT


def check_noise_header(values: dict[str, Any], sketch: Sketch) -> None:
    """Refuse noise that does not go with the other fields; its types are right."""
    if "noise" not in values:
        return
    if values["private"] or not sketch.is_random:
        raise HeaderError("it tells its noise, which private files must not and exact ones need not")
    if len(values["parts"]) > 1:
        raise HeaderError("it tells one noise, yet has several parts")
    noise, targets = values["noise"], values["targets"]
    if not targets or [one["target"] for one in noise] != targets:
        raise HeaderError("'noise' is not that of its targets, one after another")
    features = len(values["columns"]) - len(targets)
    least = int(values["columns"][0] == INTERCEPT)
    for one in noise:
        if one["freedom"] != noise[0]["freedom"]:
            raise HeaderError("targets of the same rows have noise with different 'freedom'")
        if not least <= values["row_count"] - one["freedom"] <= features:
            raise HeaderError("'freedom' of its noise is not 'row_count' less a rank that its features can have")


def check_noise(summary: Summary, sketch: Sketch) -> None:
    """Refuse noise that the numbers of a sketch speak against."""
    noise = summary.about.noise
    if noise and not may_be_noise(summary, noise, sketch, IMPOSSIBLE):
        raise HeaderError("its sketch cannot be one of rows with the noise that it tells")
