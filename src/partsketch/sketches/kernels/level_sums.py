"""Sums by level with twice the digits: merged, and taken out of sums of products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import fused

FloatArray = NDArray[np.float64]


@compiled
def add_products(rows: FloatArray, high: FloatArray, low: FloatArray) -> None:
    """Add the products of the columns of every row with one another, above the diagonal, without rounding."""
    width = rows.shape[1]
    for row in range(rows.shape[0]):
        for i in range(width):
            factor = rows[row, i]
            for j in range(i, width):
                product = factor * rows[row, j]
                before = high[i, j]
                after = before + product
                part = after - before
                high[i, j] = after
                rounding = (before - (after - part)) + (product - part)
                low[i, j] += rounding + fused(factor, rows[row, j], -product)


@compiled
def merge_lines(first: FloatArray, second: FloatArray, out: FloatArray) -> int:
    """Merge lines of levels, in the order of their numbers, which come first; return how many there are.

    After the number come the rows of a level, then sums, then what rounding took off these.
    """
    width = (first.shape[1] - 2) // 2
    a = b = count = 0
    while a < first.shape[0] or b < second.shape[0]:
        take_first = b >= second.shape[0] or (a < first.shape[0] and first[a, 0] <= second[b, 0])
        take_second = a >= first.shape[0] or (b < second.shape[0] and second[b, 0] <= first[a, 0])
        line = out[count]
        if not take_second:
            line[:] = first[a]
        elif not take_first:
            line[:] = second[b]
        else:
            line[0], line[1] = first[a, 0], first[a, 1] + second[b, 1]
            for j in range(width):
                x, y = first[a, 2 + j], second[b, 2 + j]
                total = x + y
                part = total - x
                rest = (x - (total - part)) + (y - part) + (first[a, 2 + width + j] + second[b, 2 + width + j])
                whole = total + rest
                line[2 + j], line[2 + width + j] = whole, rest - (whole - total)
        a += take_first
        b += take_second
        count += 1
    return count


@compiled
def take_out(lines: FloatArray, units: FloatArray, high: FloatArray, low: FloatArray, means: FloatArray) -> None:
    """Take what the means of levels explain off sums of products, all in units, and write the means as they are.

    The first of the sums of a line is that of the weights.
    """
    width = units.size
    mean_high, mean_low = np.empty(width), np.empty(width)
    sum_high, sum_low = np.empty(width), np.empty(width)
    for number in range(lines.shape[0]):
        line = lines[number]
        weight, weight_low = line[2], line[2 + width]
        if weight <= 0.0:
            means[number] = 0.0
            continue
        for j in range(width):
            sum_high[j], sum_low[j] = line[2 + j] * units[j], line[2 + width + j] * units[j]
            share = sum_high[j] / weight
            mean_high[j] = share
            mean_low[j] = (fused(-share, weight, sum_high[j]) + (sum_low[j] - share * weight_low)) / weight
            means[number, j] = (mean_high[j] + mean_low[j]) / units[j]
        for i in range(width):
            for j in range(i, width):
                product = -(mean_high[i] * sum_high[j])
                rest = fused(-mean_high[i], sum_high[j], -product)
                rest -= mean_high[i] * sum_low[j] + mean_low[i] * sum_high[j]
                before = high[i, j]
                after = before + product
                part = after - before
                high[i, j] = after
                low[i, j] += (before - (after - part)) + (product - part) + rest
    for i in range(width):
        for j in range(i, width):
            total = high[i, j] + low[i, j]
            rest = low[i, j] - (total - high[i, j])
            high[i, j] = high[j, i] = total
            low[i, j] = low[j, i] = rest
