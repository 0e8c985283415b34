"""Numbers with units, for people."""

from __future__ import annotations

import math


def bytes_text(count: float) -> str:
    """Return a number of bytes with three digits: 999 B, 1.2 kB, 34.5 MB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB" if value < 999.5 else f"{value:.0f} TB"


def seconds_text(seconds: float) -> str:
    """Return a time with two or three digits: 4.2 ms, 1.3 s, 12 min."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{1000 * seconds:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5970 else f"{seconds / 3600:.3g} h"


def percentage(share: float) -> str:
    """Return a share in percent: 0.0123%, 1.2%, 340%; beyond that a multiple."""
    percent = 100 * share
    if percent == 0:
        return "0"
    if percent >= 9950:
        return f"{share:.3g}×"
    return f"{percent:.0f}%" if percent >= 99.5 else f"{percent:.2g}%"


def p_value_text(p_value: float, finest: float = 0.0) -> str:
    """Return a p-value for a table, three places: 0.042; a smaller one is told by a bound, < 0.001.

    `finest` is what a p-value can be told to, where it is a share of draws.
    """
    if p_value < finest and finest > 0.001:
        return f"< {finest:.3f}"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def p_value_phrase(p_value: float, digits: int = 2) -> str:
    """Return a p-value for a sentence: p = 0.042, p = 3.1e-09; below what doubles can tell from nothing p < 1e-16."""
    return "p < 1e-16" if p_value < 1e-16 else f"p = {p_value:.{digits}g}"


def count_text(count: float) -> str:
    """Return a large count with three digits: 123, 4.56e7."""
    return f"{count:,.0f}" if count < 1e6 else f"{count:.2e}".replace("e+0", "e").replace("e+", "e")


#: Numbers from the first to the second are written out; others have a power of ten.
_WRITTEN_OUT = (1e-4, 1e7)


def estimate_text(value: float, error: float | None, digits: int = 3) -> str:
    """Return an estimate to the place of the last digit of its standard error that is shown: 0.987 beside 0.007.

    Parameters
    ----------
    value
        The estimate, an end of its interval, or the standard error itself.
    error
        Its standard error. None or zero: the value has two digits more than a standard error would have.
    digits
        How many significant digits of a standard error are shown.
    """
    if error is None or not math.isfinite(error) or error <= 0 or not math.isfinite(value):
        return f"{value:.{digits + 2}g}"
    # A standard error of 0.9996 is 1.000 to three digits: the place is that of what is shown.
    place = int(f"{error:.{digits - 1}e}".partition("e")[2]) - digits + 1
    size = max(abs(value), error)
    if size < _WRITTEN_OUT[1] and error >= _WRITTEN_OUT[0]:
        return _without_signed_zero(f"{value:.{max(0, -place)}f}")
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    # Beyond seventeen digits there is nothing in a double.
    return _without_signed_zero(f"{value:.{min(max(power - place, 0), 16)}e}")


def _without_signed_zero(text: str) -> str:
    return text.removeprefix("-") if not text.strip("-0.").removeprefix("e+00") else text


def stars(p_value: float | None) -> str:
    """Return * below 0.05, ** below 0.01, *** below 0.001."""
    return "" if p_value is None else "*" * sum(p_value < limit for limit in (0.05, 0.01, 0.001))


#: What stars mean, for the foot of a table.
STARS = "* p < 0.05, ** p < 0.01, *** p < 0.001"
