"""Figures are made to be looked at: nothing is cut off, nothing written over, wide or narrow."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from partsketch.paper.drawing import style
from partsketch.paper.figures import FIGURES
from partsketch.paper.settings import Places, quick_study
from partsketch.paper.study import Study, run_study
from tests.paper.conftest import QuickRun

# One process makes what they all look at.
pytestmark = pytest.mark.xdist_group("study")


@pytest.fixture(scope="module")
def stored(quick_run: QuickRun) -> Study:
    """The results of the quick study, read back."""
    return run_study(quick_study(), Places(quick_run.folder, None))


#: Drawing takes longer than looking: every figure is drawn once.
DRAWN: dict[tuple[str, bool], Figure] = {}


def drawn(stored: Study, name: str, wide: bool) -> Figure:
    if (name, wide) not in DRAWN:
        with style():
            DRAWN[name, wide] = figure = FIGURES[name].draw(stored, wide)
            figure.draw_without_rendering()
    return DRAWN[name, wide]


def visible(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.get_visible()]


@pytest.mark.parametrize("wide", [True, False], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_written_over(stored: Study, name: str, wide: bool) -> None:
    figure = drawn(stored, name, wide)
    width, height = figure.bbox.width, figure.bbox.height
    texts = [text for axis in visible(figure) for text in (axis.title, axis.xaxis.label, axis.yaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    boxes += [("legend", legend.get_window_extent()) for legend in figure.legends]
    for label, box in boxes:
        assert box.x0 >= -1, label
        assert box.y0 >= -1, label
        assert box.x1 <= width + 1, label
        assert box.y1 <= height + 1, label
    panels = [axis.get_tightbbox() for axis in visible(figure)]
    for first, second in combinations([box for box in panels if box is not None], 2):
        overlap_x = min(first.x1, second.x1) - max(first.x0, second.x0)
        overlap_y = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(overlap_x, overlap_y) < 2


@pytest.mark.parametrize("name", FIGURES)
def test_tick_labels_do_not_touch(stored: Study, name: str) -> None:
    for wide in (True, False):
        for axis in visible(drawn(stored, name, wide)):
            shown = [label for label in axis.get_xticklabels() if label.get_text()]
            limits = axis.get_xlim()
            inside = [label for label in shown if min(limits) <= label.get_position()[0] <= max(limits)]
            boxes = sorted((label.get_window_extent() for label in inside), key=lambda box: box.x0)
            assert all(first.x1 < second.x0 for first, second in pairwise(boxes))


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_named_and_panels_titled(stored: Study, name: str) -> None:
    figure = drawn(stored, name, True)
    for axis in visible(figure):
        assert axis.get_xlabel() or axis.get_ylabel()
    titled = [axis for axis in visible(figure) if axis.get_title()]
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in titled)
    assert len(titled) >= 2


def test_the_same_results_give_the_same_drawing(stored: Study) -> None:
    from partsketch.paper.figures import draw_figure

    assert draw_figure(stored, "figure-7") == draw_figure(stored, "figure-7")
