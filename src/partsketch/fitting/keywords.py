"""The keywords of a fit, declared once: names, defaults, choices, and a line of help each.

The estimator has them as parameters because it is a `FitKeywords`. The command makes an option of each. The function
`partsketch.fit` spells them out again, so that editors and type checkers see them; a test compares. The long
description of each is in `SketchedRegression`. This module loads nothing: commands are made from it at once.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from os import PathLike
from typing import Any

from partsketch.model.methods import FIT_METHODS

#: In place of a method: let the planner choose one.
AUTO = "auto"


def _told(text: str, *options: str, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    """Describe a keyword: a line of help, its options where they are called otherwise, and its choices."""
    return {"help": text, "options": options, "choices": choices}


# Not frozen: the estimator inherits it, and scikit-learn sets parameters. Compared by identity, as estimators are.
@dataclass(eq=False)
class FitKeywords:
    """What may be asked of a fit, as it was given; `FitOptions` checks it."""

    method: str = field(
        default=AUTO,
        metadata=_told(
            "Which estimator; auto: exact, or with limits the planner's choice within them.",
            choices=(AUTO, *FIT_METHODS),
        ),
    )
    _: KW_ONLY
    n_partitions: int = field(default=8, metadata=_told("Number of partitions.", "--partitions", "-k"))
    partition_by: str = field(default="order", metadata=_told("order, shuffle, file, or the name of a column."))
    remainder: str = field(
        default="spread",
        metadata=_told("Spread rows that do not divide evenly, or leave them out.", choices=("spread", "drop")),
    )
    sketch: str = field(
        default="gaussian",
        metadata=_told(
            "gaussian, orthogonal, srht, sparse_sign, count_sketch, row_sample, leverage_sample, or one that was added."
        ),
    )
    sketch_size: int | None = field(
        default=None,
        metadata=_told("Rows of each sketch; default: by kind, four or more per column.", "--sketch-size", "-m"),
    )
    sparsity: int | None = field(
        default=None, metadata=_told("Sketch rows that each row goes to, for sparse_sign; default: 8.")
    )
    fit_intercept: bool = field(default=True, metadata=_told("Do not estimate an intercept.", "--no-intercept"))
    averaging: str = field(
        default="equal", metadata=_told("Weights of the partitions' fits.", choices=("equal", "inverse_variance"))
    )
    weighting: str = field(
        default="rows",
        metadata=_told(
            "Weights of stacked sketches; auto: information if partitions share coefficients.",
            choices=("auto", "rows", "information"),
        ),
    )
    noise: str = field(
        default="auto",
        metadata=_told(
            "Noise of partitions, for weights: measured with the sketch, or estimated; auto: measured if cheap.",
            choices=("auto", "measured", "estimated"),
        ),
    )
    alpha: float = field(default=0.0, metadata=_told("Ridge penalty on all rows together."))
    vcov: Any = field(
        default="iid",
        metadata=_told(
            "What the noise of an exact fit may be: iid, HC0, HC1, HC2, HC3, CRV1:COLUMN, CRV1:COLUMN+COLUMN or "
            "CRV3:COLUMN."
        ),
    )
    absorb: str | None = field(
        default=None,
        metadata=_told("Column of which every value has an intercept of its own, in an exact fit; up to 1e6 values."),
    )
    engine: Any = field(
        default="local",
        metadata=_told("Where summaries are made: local, dask, ray, spark, or an address such as dask://host:8786."),
    )
    on_partition_error: str = field(
        default="raise", metadata=_told("Stop, or leave out partitions that cannot be read.", choices=("raise", "drop"))
    )
    deadline: float | None = field(default=None, metadata=_told("Seconds after which late partitions are left out."))
    min_partitions: int | None = field(
        default=None, metadata=_told("Refuse to go on with fewer partitions; default: 1.")
    )
    checkpoint: str | PathLike[str] | None = field(
        default=None,
        metadata=_told("Folder that keeps what is finished: started again after a crash, the fit does only the rest."),
    )
    limits: Any = field(default=None, metadata=_told("What may not be exceeded, with method='auto'."))
    route: str = field(
        default="auto",
        metadata=_told(
            "Way of an exact fit: a factor of all rows, or several cheap passes.", choices=("auto", "factor", "iterate")
        ),
    )
    random_state: Any = field(
        default=None, metadata=_told("Seed of the sketches; default: fresh, and recorded.", "--seed")
    )


#: Every keyword by its name, in order.
FIT_KEYWORDS = {keyword.name: keyword for keyword in fields(FitKeywords)}


def choices_of(name: str) -> tuple[str, ...]:
    """Return the values that a keyword may have; empty if it is free."""
    choices: tuple[str, ...] = FIT_KEYWORDS[name].metadata["choices"]
    return choices
