"""Exact summaries of all partitions: made in one pass, kept in one file, asked any regression among their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.markup import html_table, html_text
from partsketch.questions.choice import Names
from partsketch.questions.other_models import OtherModels
from partsketch.questions.panel import Panel, make_panel
from partsketch.questions.selection import check_factors, put_together, selected, split_sentences
from partsketch.summaries.group_summaries import GroupSummaries
from partsketch.summaries.provenance import About
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.paths import Path as PenaltyPath

Intercept = Literal["common", "partition", False]


#: A notebook shows so many partitions.
_MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Summaries(OtherModels):
    """The exact factor of each partition; every linear model among the columns follows from them, without the rows.

    Attributes
    ----------
    factors
        One exact summary per partition.
    """

    factors: Sequence[Summary]
    _panels: dict[str, Panel] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_factors(self.factors)

    def __len__(self) -> int:
        return len(self.factors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summaries) and tuple(self.factors) == tuple(other.factors)

    def __hash__(self) -> int:
        return hash(tuple(self.factors))

    def __repr__(self) -> str:
        columns = ", ".join(self.columns[:8]) + (", …" if len(self.columns) > 8 else "")
        rows = sum(self.row_counts)
        return f"Summaries({len(self)} partition{'s' * (len(self) != 1)}, {rows:,} rows, columns: {columns})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("Summaries are one array for each partition: take np.asarray(summaries.factors[0]).")

    def _repr_html_(self) -> str:
        pairs = [(name, f"{rows:,}") for name, rows in zip(self.names, self.row_counts, strict=True)]
        if len(pairs) > _MOST_SHOWN:
            pairs[_MOST_SHOWN:] = [(f"… {len(pairs) - _MOST_SHOWN:,} more", "")]
        return f"<p>{html_text(repr(self))}</p>{html_table(['partition', 'rows'], pairs)}"

    def __getstate__(self) -> dict[str, Any]:
        return {"factors": tuple(self.factors), "_panels": {}}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each partition; those of site and label in front where partitions would be called alike."""
        firsts = [summary.parts[0] for summary in self.factors]
        short = [part.partition for part in firsts]
        names = [part.name for part in firsts] if len(set(short)) < len(short) else short
        return tuple(name or "all" for name in names)

    @cached_property
    def factor_columns(self) -> tuple[str, ...]:
        """Names of the columns of every factor: that of ones first, if there is one."""
        return self.factors[0].columns

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that can be asked about; the intercept is not one."""
        return tuple(name for name in self.factor_columns if name != INTERCEPT)

    @property
    def row_counts(self) -> tuple[int, ...]:
        """Rows behind each partition."""
        if isinstance(self.factors, GroupSummaries):
            return tuple(self.factors.row_counts.tolist())
        return tuple(summary.row_count for summary in self.factors)

    @cached_property
    def rows_dropped(self) -> int:
        """Rows left out for missing values, as far as that was told."""
        return sum(summary.about.rows_dropped or 0 for summary in self.factors)

    @cached_property
    def split_sentences(self) -> tuple[str, ...]:
        """What is to be said of partitions of the same name that count as clusters of their own."""
        return split_sentences(self.factors)

    @cached_property
    def about(self) -> About:
        """What the maker tells of the columns: targets that were meant, encoded text."""
        return self.factors[0].about

    def panel(self, intercept: Intercept) -> Panel:
        """Return the factors in coordinates for regressions with this intercept; made once."""
        if intercept is not False and intercept not in ("common", "partition"):
            raise InputError(f"intercept is {intercept!r}: choose 'common', 'partition' or False.")
        if intercept and self.factor_columns[0] != INTERCEPT:
            raise InputError("The summaries have no column of ones: make them again, or ask with intercept=False.")
        kind = intercept or "none"
        if kind not in self._panels:
            with one_thread_each():
                self._panels[kind] = make_panel(self.factors, kind)
        return self._panels[kind]

    def select(self, partitions: Sequence[str] | None = None, columns: Names | None = None) -> Summaries:
        """Return the summaries of some partitions and columns.

        Parameters
        ----------
        partitions
            Names of partitions; None keeps all.
        columns
            Names of columns, an encoded column by its own name too; None keeps all.
        """
        return Summaries(selected(self.factors, self.names, partitions, columns))

    def together(self) -> Summaries:
        """Return the summaries with partitions of the same name, at whatever site and of whatever rows, as one."""
        return Summaries(put_together(self.factors))

    def add(
        self,
        data: Any,
        *,
        partition_by: str | None = None,
        n_partitions: int | None = None,
        weights: str | None = None,
        missing: Literal["error", "drop"] = "error",
        engine: Any = "local",
        site: str = "",
        label: str = "",
    ) -> Summaries:
        """Return the summaries with more rows: those of data, or other summaries.

        Rows of a partition that is there already add to it; others become partitions of their own. Partitions of other
        summaries stay what they are; `together` makes those of one name one.

        Parameters
        ----------
        data
            Other `Summaries`, or rows with the same columns, whatever `summarise` takes.
        partition_by, n_partitions, weights, missing, engine, site
            As in `summarise`.
        label
            Which rows these are, such as a day; by default numbered.
        """
        from partsketch.sites.summarise import add_rows, joined

        if isinstance(data, Summaries):
            return joined([self, data])
        return add_rows(self, data, partition_by, n_partitions, weights, missing, engine, site, label)

    def save(self, path: str | Path) -> None:
        """Write all partitions to one file (.psk), whole or not at all."""
        from partsketch.summaries.collection_file import save

        save(self.factors, Path(path))

    def fit(
        self,
        target: Names | None = None,
        features: Names | None = None,
        *,
        intercept: Intercept = "common",
        alpha: float = 0.0,
        vcov: str = "iid",
        draws: int = 9999,
        weights: str = "webb",
        random_state: int = 0,
    ) -> Model:
        """Fit exact least squares, or ridge regression, of any columns on any others.

        Parameters
        ----------
        target
            A column, or several; or a formula such as "fare ~ distance + night". None takes the targets that were named
            when the summaries were made.
        features
            Columns; None takes all others. The name of an encoded column stands for all its indicators.
        intercept
            "common": one for all rows; "partition": one for each partition; False: none.
        alpha
            Ridge penalty on all rows together.
        vcov
            "iid": independent noise of one variance. "CRV1", "CRV3": partitions are clusters, within which noise may be
            anything; "CRV3" is the jackknife, which leaves out one partition after the other. "wild": as "CRV1", with
            p-values and intervals from the restricted wild cluster bootstrap.
        draws, weights, random_state
            Of the wild bootstrap: how many draws, "webb" or "rademacher", and the seed. All sign vectors are taken once
            each where there are not more of them than draws, with "rademacher".

        Returns
        -------
        Model
            As from `partsketch.fit`; `standard_errors`, `t_values`, `p_values`, `conf_int` and `test` are by `vcov`.
        """
        from partsketch.questions.fit import fit_summaries
        from partsketch.questions.wild import Bootstrap

        return fit_summaries(self, target, features, intercept, alpha, vcov, Bootstrap(draws, weights, random_state))

    def ridge_path(
        self,
        target: str,
        features: Names | None = None,
        *,
        alphas: Sequence[float] | None = None,
        folds: int | Sequence[int] = 10,
        intercept: Intercept = "common",
    ) -> PenaltyPath:
        """Return ridge regressions for a whole path of penalties, with exact cross-validation.

        Parameters
        ----------
        target, features, intercept
            As in `fit`; one target, and no intercepts of partitions.
        alphas
            Penalties on all rows together; None takes 100, from the largest curvature down to 1e-8 of it.
        folds
            How many: partitions are dealt to them one after the other. Or the fold of each partition.

        Returns
        -------
        Path
            With `alphas`, `coefficients`, `cv_errors`, `best_alpha`, `one_standard_error_alpha`, and `model()`.
        """
        from partsketch.questions.paths import ridge_path

        return ridge_path(self, target, features, alphas, folds, intercept)

    def lasso_path(
        self,
        target: str,
        features: Names | None = None,
        *,
        alphas: Sequence[float] | None = None,
        l1_ratio: float = 1.0,
        folds: int | Sequence[int] = 10,
        intercept: Intercept = "common",
    ) -> PenaltyPath:
        """Return the lasso, or an elastic net, for a whole path of penalties, with exact cross-validation.

        Parameters
        ----------
        target, features, folds, intercept
            As in `ridge_path`.
        alphas
            α in ‖y − Xa‖²/2n + α (l1_ratio ‖a‖₁ + (1 − l1_ratio) ‖a‖²/2); None takes 100, from the least at which all
            coefficients are zero down to a thousandth of it.
        l1_ratio
            Share of the absolute penalty: 1 is the lasso.

        Returns
        -------
        Path
            As from `ridge_path`.
        """
        from partsketch.questions.paths import lasso_path

        return lasso_path(self, target, features, alphas, l1_ratio, folds, intercept)
