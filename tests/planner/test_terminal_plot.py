"""The plot in characters."""

from __future__ import annotations

import math

from partsketch.planner.terminal_plot import terminal_plot


def test_higher_values_are_higher_and_labels_are_the_ends() -> None:
    curve = [(1.0, 0.5), (10.0, 0.05), (100.0, 0.005)]
    text = terminal_plot({"falling": curve}, title="title", x_label="k", width=41, height=9)
    lines = text.splitlines()
    assert lines[0] == "title"
    places = [(row, line.index("●")) for row, line in enumerate(lines[1:10]) if "●" in line]
    assert places == sorted(places)
    assert len(places) == 3
    # Equal steps on logarithmic axes.
    assert places[1][0] - places[0][0] == places[2][0] - places[1][0] == 4
    assert places[1][1] - places[0][1] == places[2][1] - places[1][1] == 20
    assert "50%" in lines[1]
    assert "0.5%" in lines[9]
    assert "● falling" in lines[-1]


def test_what_cannot_be_drawn_is_left_out() -> None:
    assert terminal_plot({"none": [(1.0, 0.0), (2.0, math.nan)]}, title="t", x_label="k") == ""
    assert "●" in terminal_plot({"one": [(2.0, 3.0)]}, title="t", x_label="k", percent=False)


def test_the_least_and_the_largest_double_have_places() -> None:
    ends = [(1.0, 5e-324), (2.0, 1.0), (4.0, 1.7976931348623157e308)]
    assert terminal_plot({"all": ends}, title="t", x_label="k").count("●") == 4  # three points and the legend
    for value in (5e-324, 1.7976931348623157e308):
        assert "●" in terminal_plot({"one": [(1.0, value)]}, title="t", x_label="k")
