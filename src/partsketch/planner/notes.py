"""What is to be said of the columns that were taken, where no model keeps it."""

from __future__ import annotations

import warnings

from partsketch.common.errors import PartsketchWarning
from partsketch.sources.base import Source


def warn_of_columns(source: Source) -> None:
    """Say which columns were left out, what was found only nearly, and what looks like a row, as a fit records it."""
    for sentence in source.notes:
        warnings.warn(sentence, PartsketchWarning, stacklevel=2)
