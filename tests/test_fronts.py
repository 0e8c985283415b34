"""One front: the function, the estimator and the command take the same keywords, with the same defaults and choices."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click
import pytest
from sklearn.base import clone

import partsketch as ps
from partsketch.cli import commands
from partsketch.fitting.data_request import DataRequest
from partsketch.fitting.keywords import FIT_KEYWORDS, choices_of
from partsketch.sites.options import SketchKeywords

#: Keywords that say how columns are read; the estimator gets arrays instead.
OF_DATA = ("target", "features", "weights", "encode", "missing")


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def options(command: str) -> dict[str, click.Parameter]:
    found = commands.get_command(click.Context(commands), command)
    assert found is not None
    return {str(parameter.name): parameter for parameter in found.params}


def test_the_function_has_the_declared_keywords() -> None:
    found = parameters(ps.fit)
    assert set(found) == {"data", *OF_DATA, *FIT_KEYWORDS}
    for name, keyword in FIT_KEYWORDS.items():
        assert found[name].default == keyword.default, name
        assert found[name].kind == inspect.Parameter.KEYWORD_ONLY
    requested = {field: parameter.default for field, parameter in parameters(DataRequest).items()}
    for name in ("features", "weights", "encode", "missing"):
        assert found[name].default == requested[name], name


def test_the_estimator_has_the_declared_keywords() -> None:
    found = parameters(ps.SketchedRegression)
    assert {name: parameter.default for name, parameter in found.items()} == {
        name: keyword.default for name, keyword in FIT_KEYWORDS.items()
    }
    assert set(ps.SketchedRegression().get_params()) == set(FIT_KEYWORDS)
    changed = ps.SketchedRegression("stack", alpha=2.0).set_params(n_partitions=3)
    assert clone(changed).get_params() == changed.get_params()


def test_the_estimator_describes_every_keyword_as_it_is() -> None:
    text = inspect.getdoc(ps.SketchedRegression) or ""
    for name, keyword in FIT_KEYWORDS.items():
        line = re.search(rf"^{name} : (.*)$", text, re.MULTILINE)
        assert line is not None, name
        assert f"default={keyword.default!r}".replace("'", '"') in line[1], name
        for choice in choices_of(name):
            assert f'"{choice}"' in line[1], (name, choice)


def test_the_command_has_the_declared_keywords() -> None:
    found = options("fit")
    limits = {"max_excess", "max_bytes_per_partition", "rows_stay", "memory", "seconds"}
    assert limits <= set(found)
    for name, keyword in FIT_KEYWORDS.items():
        if name == "limits":
            continue
        assert found[name].get_default(click.Context(commands), call=True) == keyword.default, name
        kind: Any = found[name].type
        assert (tuple(kind.choices) if isinstance(kind, click.Choice) else ()) == choices_of(name), name


@pytest.mark.parametrize("name", [name for name in FIT_KEYWORDS if choices_of(name)])
def test_what_is_not_among_the_choices_is_refused_everywhere(name: str) -> None:
    rows = [[1.0, 2.0], [2.0, 3.0], [3.0, 5.0]]
    with pytest.raises(ps.InputError, match=f"{name} is 'other': choose '{choices_of(name)[0]}'"):
        ps.fit({"x": 1}, "y", **{name: "other"})  # type: ignore[arg-type]
    with pytest.raises(ps.InputError, match=f"{name} is 'other': choose '{choices_of(name)[0]}'"):
        ps.SketchedRegression(**{name: "other"}).fit(rows, [1.0, 2.0, 4.0])  # type: ignore[arg-type]
    context = click.Context(commands)
    with pytest.raises(click.BadParameter, match="'other' is not one of"):
        options("fit")[name].type_cast_value(context, "other")


def test_sketch_and_plan_show_what_they_pass_on() -> None:
    """Type checkers read the typed dictionary; the signature has the same names, and defaults."""
    sketched, planned = parameters(ps.sketch), parameters(ps.plan)
    assert set(SketchKeywords.__annotations__) <= set(sketched)
    assert sketched["sketch"].default == "gaussian"
    assert planned["partition_by"].default == "order"
    for found in (sketched, planned):
        assert all(parameter.kind != parameter.VAR_KEYWORD for parameter in found.values())
        assert found["missing"].default == "error"
        assert found["fit_intercept"].default is True
    # The last two are fields of the options, not meant for users: a seed is called random_state.
    for name in ("sketchsize", "seed", "stays"):
        with pytest.raises(TypeError, match=rf"sketch\(\) got an unexpected keyword argument '{name}'"):
            ps.sketch([[1.0, 2.0]], **{name: 3})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'row'"):
        ps.plan(row=3)  # type: ignore[call-arg]
