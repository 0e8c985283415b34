"""Compiled passes: residuals of given coefficients and their products with the columns, each row read once.

Rows are taken strictly in order and sums are emptied into totals after a fixed number of rows, so the bits depend on
the rows alone, not on how they were cut into blocks.

Plainly these are two products of the linear algebra library with all rows. They take about as long (1.1 times, 524,288
rows of 40 columns, `python -m benchmarks.kernels`), but their bits depend on the cut, and they have no weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partsketch.common.linalg.compiled import compiled_with
from partsketch.fitting.refinement.four_rows import add_four, four_products

#: Rows whose products are summed before they are added to the total: short sums keep rounding small.
DENSE_RUN = 256
SPARSE_RUN = 8192

#: Rows between those worked on and those that memory is asked for meanwhile.
AHEAD = 8

#: The order of all sums is kept; a product may be rounded together with the sum it is added to.
_compiled = compiled_with(fastmath={"contract"})


@_compiled
def _residuals(features: Any, first: int, targets: Any, target: int, coefficients: Any, intercept: int) -> Any:
    """Return y − [1 x] b of four rows; where there are fewer, the last stands in for those missing.

    Every row's product is summed alike, in whichever of the four places it stands.
    """
    rows, width = features.shape
    last = rows - 1
    i0, i1, i2, i3 = first, min(first + 1, last), min(first + 2, last), min(first + 3, last)
    starts = (i0 * width, i1 * width, i2 * width, i3 * width)
    b = coefficients[target]
    t0, t1, t2, t3 = four_products(features.reshape(-1), starts, width, b, intercept, AHEAD * width)
    constant = intercept * b[0]
    return (
        targets[i0, target] - (t0 + constant),
        targets[i1, target] - (t1 + constant),
        targets[i2, target] - (t2 + constant),
        targets[i3, target] - (t3 + constant),
    )


@_compiled
def _add_one(values: Any, product: float, sums: Any) -> None:
    """Add a row, times a number: the same bits as by `_add_four`."""
    for column in range(values.shape[0]):
        sums[column] += product * values[column]


@_compiled
def add_dense(
    features: Any, targets: Any, weights: Any, coefficients: Any, intercept: int, state: Any, partial: Any, total: Any
) -> None:
    """Add Aᵀ W (y − A b), and the weighted residual sums of squares in a last column, to `partial` and `total`.

    `coefficients` and the sums have one row per target; `state` holds the number of rows in `partial`. Empty `weights`
    mean that every row counts once. Four rows at a time are read, multiplied and added while they are in the cache.
    """
    rows, width = features.shape
    begin = 0
    while begin < rows:
        end = min(rows, begin + DENSE_RUN - state[0])
        for first in range(begin, end, 4):
            count = min(4, end - first)
            for target in range(coefficients.shape[0]):
                residuals = _residuals(features, first, targets, target, coefficients, intercept)
                products = residuals
                if weights.size:
                    last = rows - 1
                    products = (
                        residuals[0] * weights[first],
                        residuals[1] * weights[min(first + 1, last)],
                        residuals[2] * weights[min(first + 2, last)],
                        residuals[3] * weights[min(first + 3, last)],
                    )
                sums = partial[target]
                for i in range(count):
                    if intercept:
                        sums[0] += products[i]
                    sums[width + intercept] += products[i] * residuals[i]
                inner = sums[intercept : intercept + width]
                if count == 4:
                    add_four(inner, features.reshape(-1), first * width, width, products, AHEAD * width)
                else:
                    for i in range(count):
                        _add_one(features[first + i], products[i], inner)
        state[0] += end - begin
        begin = end
        if state[0] == DENSE_RUN:
            flush(state, partial, total)


@_compiled
def add_sparse(
    data: Any,
    indices: Any,
    pointers: Any,
    targets: Any,
    weights: Any,
    coefficients: Any,
    intercept: int,
    state: Any,
    partial: Any,
    total: Any,
) -> None:
    """Do the same for compressed rows and two targets; sums have one row per column, the residual sums last.

    `targets` may have fewer columns, or none: those missing are zero. Indices are unsigned in here: signed ones could
    count from the end, and looking whether they do takes half the time.
    """
    last, given = partial.shape[0] - 1, targets.shape[1]
    first, one, even = np.uint64(intercept), np.uint64(1), np.uint64(2**64 - 2)
    for row in range(pointers.shape[0] - 1):
        begin, end = np.uint64(pointers[row]), np.uint64(pointers[row + 1])
        paired = begin + ((end - begin) & even)
        sum_0 = sum_1 = other_0 = other_1 = 0.0
        entry = begin
        while entry < paired:
            column, value = np.uint64(indices[entry]) + first, data[entry]
            sum_0 += value * coefficients[column, 0]
            sum_1 += value * coefficients[column, 1]
            column, value = np.uint64(indices[entry + one]) + first, data[entry + one]
            other_0 += value * coefficients[column, 0]
            other_1 += value * coefficients[column, 1]
            entry += one + one
        if entry < end:
            column, value = np.uint64(indices[entry]) + first, data[entry]
            sum_0 += value * coefficients[column, 0]
            sum_1 += value * coefficients[column, 1]
        residual_0, residual_1 = -(sum_0 + other_0), -(sum_1 + other_1)
        if given > 0:
            residual_0 += targets[row, 0]
        if given > 1:
            residual_1 += targets[row, 1]
        if intercept:
            residual_0 -= coefficients[0, 0]
            residual_1 -= coefficients[0, 1]
        weight = 1.0 if weights.size == 0 else weights[row]
        partial[last, 0] += weight * residual_0 * residual_0
        partial[last, 1] += weight * residual_1 * residual_1
        residual_0 *= weight
        residual_1 *= weight
        if intercept:
            partial[0, 0] += residual_0
            partial[0, 1] += residual_1
        entry = begin
        while entry < end:
            column, value = np.uint64(indices[entry]) + first, data[entry]
            partial[column, 0] += value * residual_0
            partial[column, 1] += value * residual_1
            entry += one
        state[0] += 1
        if state[0] == SPARSE_RUN:
            flush(state, partial, total)


@_compiled
def add_sparse_single(
    data: Any,
    indices: Any,
    pointers: Any,
    targets: Any,
    weights: Any,
    coefficients: Any,
    intercept: int,
    state: Any,
    partial: Any,
    total: Any,
) -> None:
    """Do the same for one target, in three quarters of the time; arrays have one column."""
    last, given = partial.shape[0] - 1, targets.shape[1]
    first, one, even = np.uint64(intercept), np.uint64(1), np.uint64(2**64 - 2)
    for row in range(pointers.shape[0] - 1):
        begin, end = np.uint64(pointers[row]), np.uint64(pointers[row + 1])
        paired = begin + ((end - begin) & even)
        sum_0 = other_0 = 0.0
        entry = begin
        while entry < paired:
            sum_0 += data[entry] * coefficients[np.uint64(indices[entry]) + first, 0]
            other_0 += data[entry + one] * coefficients[np.uint64(indices[entry + one]) + first, 0]
            entry += one + one
        if entry < end:
            sum_0 += data[entry] * coefficients[np.uint64(indices[entry]) + first, 0]
        residual = -(sum_0 + other_0)
        if given > 0:
            residual += targets[row, 0]
        if intercept:
            residual -= coefficients[0, 0]
        product = residual if weights.size == 0 else weights[row] * residual
        partial[last, 0] += product * residual
        if intercept:
            partial[0, 0] += product
        entry = begin
        while entry < end:
            partial[np.uint64(indices[entry]) + first, 0] += data[entry] * product
            entry += one
        state[0] += 1
        if state[0] == SPARSE_RUN:
            flush(state, partial, total)


@_compiled
def add_sparse_scales(data: Any, indices: Any, pointers: Any, weights: Any, intercept: int, scales: Any) -> None:
    """Add the weighted sums (first column) and sums of squares (second) of every column."""
    first, one = np.uint64(intercept), np.uint64(1)
    for row in range(pointers.shape[0] - 1):
        weight = 1.0 if weights.size == 0 else weights[row]
        if intercept:
            scales[0, 0] += weight
            scales[0, 1] += weight
        entry, end = np.uint64(pointers[row]), np.uint64(pointers[row + 1])
        while entry < end:
            column, product = np.uint64(indices[entry]) + first, weight * data[entry]
            scales[column, 0] += product
            scales[column, 1] += product * data[entry]
            entry += one


@_compiled
def add_target_sums(targets: Any, weights: Any, sums: Any) -> None:
    """Add the weighted sums (first row) and sums of squares (second) of the targets, one by one."""
    for row in range(targets.shape[0]):
        weight = 1.0 if weights.size == 0 else weights[row]
        for target in range(targets.shape[1]):
            product = weight * targets[row, target]
            sums[0, target] += product
            sums[1, target] += product * targets[row, target]


@_compiled
def add_weights(weights: Any, total: float) -> float:
    """Add weights one by one: the sum of a block would depend on where it begins."""
    for weight in weights:
        total += weight
    return total


@_compiled
def flush(state: Any, partial: Any, total: Any) -> None:
    """Empty the partial sums into the total."""
    for i in range(partial.shape[0]):
        for j in range(partial.shape[1]):
            total[i, j] += partial[i, j]
            partial[i, j] = 0.0
    state[0] = 0
