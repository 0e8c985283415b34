"""The paper's three data sets, prepared as it says: constant features removed, Cover downsampled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.paper.stored_data import stored_data

FloatArray = NDArray[np.float64]

NAMES = ("digits", "house", "cover")
TITLES = {"digits": "Digits", "house": "House", "cover": "Cover"}
LOSS_UNITS = {"digits": "digit²", "house": "(100,000 $)²", "cover": "class²"}

COVER_ROWS = 100_000
#: The sample must leave 53 features, as the paper's table has: one rare soil type is absent from it.
COVER_SEED = 2
SHUFFLE_SEED = 1


@dataclass(frozen=True, eq=False)
class DataSet:
    """Features and target without an intercept, in the order in which the loader gives the rows."""

    name: str
    X: FloatArray
    y: FloatArray
    loaded_rows: int
    loaded_features: int

    def shuffled(self) -> DataSet:
        """Return the same rows in a random order that is always the same."""
        order = shuffled_rows(len(self.X))
        return DataSet(self.name, self.X[order], self.y[order], self.loaded_rows, self.loaded_features)


def shuffled_rows(count: int) -> NDArray[np.int64]:
    """Return the row numbers in the order of the shuffled study."""
    return np.random.default_rng(SHUFFLE_SEED).permutation(count)


def cover_sample(count: int) -> NDArray[np.int64]:
    """Return which rows of the full Covertype are in the study, in original order."""
    return np.sort(np.random.default_rng(COVER_SEED).choice(count, COVER_ROWS, replace=False))


def load(name: str, data_home: Path | None = None) -> DataSet:
    """Load one of the data sets and prepare it as the paper does.

    Parameters
    ----------
    name : str
        "digits", "house" or "cover".
    data_home : path, optional
        A folder of scikit-learn's data, from which House and the full Covertype are taken instead of the package's
        files; what is not there is downloaded. The values are the same, bit for bit.

    Returns
    -------
    DataSet
        Rows in original order. `InputError` when the data are neither in that folder nor downloadable.
    """
    found = attempt(name, data_home)
    if isinstance(found, str):
        raise InputError(found)
    return found


@cache
def attempt(name: str, data_home: Path | None) -> DataSet | str:
    """Load and prepare a data set once, or say once why it cannot be had: a study asks for it many times."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif data_home is None:
        stored = stored_data(name)
        return _prepared(name, stored.X, stored.y, (stored.source_rows, stored.source_features))
    else:
        try:
            X, y = _from_scikit_learn(name, data_home)
        except (OSError, EOFError, ValueError) as error:
            return (
                f"{TITLES[name]} is missing: it is not in {data_home} and could not be downloaded ({error}); connect "
                "once, or leave out --data-home to use the rows that come with partsketch."
            )
    shape = X.shape
    if name == "cover":
        rows = cover_sample(len(X))
        X, y = X[rows], y[rows]
    return _prepared(name, X, y, shape)


def _from_scikit_learn(name: str, data_home: Path) -> tuple[Any, Any]:
    from sklearn import datasets

    fetch = {"house": datasets.fetch_california_housing, "cover": datasets.fetch_covtype}[name]
    # The loaders warn before they try a download again; what counts is said in one sentence.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = fetch(data_home=str(data_home), return_X_y=True, n_retries=1)
    return X, y


def _prepared(name: str, X: Any, y: Any, loaded: tuple[int, int]) -> DataSet:
    kept = np.ptp(X, axis=0) > 0
    return DataSet(name, np.ascontiguousarray(X[:, kept], dtype=np.float64), y.astype(np.float64), *loaded)
