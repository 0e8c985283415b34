"""What a formula cannot say, in one sentence each; and nothing of a formula is ever run."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.sources import open_source
from partsketch.sources.formula.expressions import read_expression
from tests.sources.formula.data import columns, frame

FRAME = frame()

REFUSED = [
    ("fare ~ (", "Cannot read the formula 'fare ~ (': "),
    ("fare ~ distance | zone", "has several parts separated by '|'"),
    ("fare ~ distence", "There is no column 'distence' in the data: did you mean 'distance'?"),
    ("fare ~ log(`no such`)", "There is no column 'no such' in the data"),
    ("fare ~ (night + hour) ** night", "the power after '**' must be a whole number, at least 1"),
    ("fare ~ (" + " + ".join(f"x{n}" for n in range(400)) + ") ** 3", "has more than 65,536 terms"),
    ("fare ~ " + " * ".join(f"x{n}" for n in range(40)), "has more than 65,536 terms"),
    ("fare ~ 0", "has no features and no intercept"),
    ("zone ~ distance", "target 'zone' of the formula must be one column of numbers"),
    ("fare:night ~ distance", "must be one column: use I(…)"),
    ("fare ~ pickup", "Column 'pickup' holds timestamps: say what to take of them, such as days(pickup)"),
    ("fare ~ C(pickup)", "Column 'pickup' holds timestamps"),
    ("fare ~ log(zone)", "'log(zone)' in the formula counts with text"),
    ("fare ~ log(pickup)", "'log(pickup)' in the formula counts with dates"),
    ("fare ~ hour(distance)", "takes hour of what is neither dates nor timestamps"),
    ("fare ~ I(zone > 'a')", "can be compared by == and !="),
    ("fare ~ I(pickup > 3)", "compare them with a date in quotes, such as '2024-02-01'"),
    ("fare ~ I(pickup > 'May')", "cannot be compared with 'May' in the formula: write a date as '2024-02-01'"),
    ("fare ~ I(hour > 'a')", "Numbers are compared with the text 'a' in the formula"),
    ("fare ~ my col", "write the column as `my col`, in backticks."),
    ("fare ~ I(hour^2)", "powers are **"),
    ("fare ~ lag(distance)", "There is no function for 'lag(distance)' in the formula: it looks at other rows"),
    ("fare ~ log(distance", "Cannot read the formula 'fare ~ log(distance': the bracket '(' is not closed."),
    ("fare ~ distance)", "the bracket ')' closes none that is open."),
    ("fare ~ I([hour)", "the bracket ')' closes none that is open."),
    ("fare ~ `my col", "a backtick ` has no other that closes it"),
    ("fare ~ as.factor(zone)", "there is no as.factor(…): write C(…)."),
    ("fare ~ as.numeric(hour)", "there is no as.numeric(…): write the column alone."),
    ("fare ~ factor(zone)", "There is no function for 'factor(zone)' in the formula: write C(…)."),
    ("fare ~ ns(hour, 4)", "write bs(…)."),
    ("fare ~ csw(hour, night)", "summaries = ps.summarise(…)"),
    ("c(fare, hour) ~ night", "write several targets with a plus"),
    ("fare ~ i(hour)", "'i(hour)' in the formula: write C(hour)."),
    ("fare ~ i(hour, ref=3)", "write C(hour, contr.treatment(3))."),
    ("fare ~ i(hour, night, ref=3)", "write C(hour, contr.treatment(3)) * night."),
    ("fare ~ foo(hour)", "There is no function for 'foo(hour)' in the formula: use C, bs, poly, "),
    ("fare ~ I(bs(hour, 4))", "gives several columns and must be a term of its own"),
    ("fare ~ center(scale(hour))", "cannot depend on what is found of all rows"),
    ("fare ~ bs(hour, 2)", "df of bs(hour, 2) is too small: give at least 3"),
    ("fare ~ bs(hour, df=4, knots=[3])", "has df and knots"),
    ("fare ~ bs(hour, night)", "Write numbers, not columns"),
    ("fare ~ poly(hour, 0)", "give 1 to 20"),
    ("fare ~ poly(night, 2)", "needs more than 2 different values; there are 2"),
    ("fare ~ bs(I(0 * hour), 4)", "needs a column of different values"),
    ("fare ~ scale(I(0 * hour))", "needs a column of different values"),
    ("fare ~ bs(hour, knots=[5, 99])", "must increase, from 0 to 23"),
    ("fare ~ C(I(2**53 + hour))", "has whole numbers beyond 2**53, which doubles do not tell apart"),
    ("fare ~ fare", "'fare' is the target and a feature of the formula"),
    ("fare ~ C(zone, levels=['a'])", "Column 'zone' has the level"),
    ("fare ~ C(zone, contr.other)", "contrasts that are not known"),
    ("fare ~ C(zone, contr.treatment('z'))", "do not go with its levels (a, b, "),
    ("fare ~ C(zone, contr.treatment('z'))", "is not among the provided levels."),
    ("fare ~ hour + 2:hour", "Term already seen with a different numerical scaling"),
    ("fare ~ log(I(distance - 5))", "is not a number in row"),
    ("fare ~ I(1 / night)", "is infinite in row"),
    ("fare ~ log(hour, 2)", "log takes 1 argument and no others; for other bases there are log2(…), log10(…)"),
    ("fare ~ np.log(hour, night)", "log takes 1 argument"),
    ("fare ~ np.log(hour, out=night)", "log takes 1 argument"),
    ("fare ~ np.log(hour + 1, where=hour > 3)", "log takes 1 argument"),
    ("fare ~ np.sqrt(hour, dtype='float32')", "sqrt takes 1 argument"),
    ("fare ~ hypot(hour, night, hour)", "hypot takes 2 arguments and no others."),
    ("fare ~ where(hour > 3)", "where takes 3 arguments and no others."),
    ("fare ~ I(hour, night)", "I takes 1 argument and no others."),
    ("fare ~ hour(pickup, 3)", "hour takes 1 argument and no others."),
    ("fare ~ I([hour] + 1)", "write numbers, columns, signs and functions"),
    ("fare ~ bs(I([hour]), 4)", "write numbers, columns, signs and functions"),
    ("fare ~ I(hour + None)", "Cannot use None in the formula: write real numbers, or texts in quotes."),
    ("fare ~ I(hour + 1j)", "Cannot use 1j in the formula"),
    ("fare ~ I(hour + b'a')", "Cannot use b'a' in the formula"),
    ("fare ~ I(hour + 1" + "0" * 400 + ")", "Cannot use a whole number beyond 1e308 in the formula"),
    (
        "fare ~ night + (1 | zone)",
        "random effects are asked of summaries: ps.summarise(data, partition_by=group).mixed(",
    ),
    ("fare ~ hour.real", "There is no column 'hour.real'"),
    ("fare ~ I(hour.real)", "parts of dates, such as x.dt.hour"),
    ("fare ~ I(__import__('os').system('true'))", "There is no function"),
    ("fare ~ I((lambda: 1)())", "There is no function"),
    ("fare ~ I([x for x in hour])", "write numbers, columns, signs and functions"),
    ("fare ~ I(hour @ hour)", "write + - *"),
    ("fare ~ {exec('1')}", "There is no function"),
    ("fare ~ C(zone, __import__('os'))", "contrasts that are not known"),
]


@pytest.mark.parametrize(("formula", "sentence"), REFUSED)
def test_refusals(formula: str, sentence: str) -> None:
    with pytest.raises(ps.InputError) as error:
        columns(open_source(FRAME, formula=formula))
    assert sentence in str(error.value)
    assert "\x1b" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["x" * 20_000, "(" * 5000 + "x" + ")" * 5000, "x" + " + x" * 2400])
def test_long_expressions_are_no_trap(text: str) -> None:
    with pytest.raises(ps.InputError):
        read_expression(text)


def test_missing_values_name_their_column() -> None:
    rows = FRAME.assign(hour=FRAME["hour"].where(FRAME["hour"] != 3), zone=FRAME["zone"].where(FRAME["hour"] != 5))
    for formula, name in (("fare ~ bs(hour, 4)", "hour"), ("fare ~ zone", "zone"), ("fare ~ I(hour > 3)", "hour")):
        with pytest.raises(ps.InputError, match=f"Column '{name}' has a missing value in row"):
            columns(open_source(rows, formula=formula))


@pytest.mark.parametrize("kind", ["str", "datetime64[s]"])
@pytest.mark.parametrize("formula", ["fare ~ night + night:C(zone)", "fare ~ C(night)"])
def test_numbers_that_are_something_else_where_a_model_predicts(formula: str, kind: str) -> None:
    model = ps.fit(FRAME, formula)
    with pytest.raises(ps.InputError, match=r"Column 'night' \(.*\) held numbers where the formula was fitted"):
        model.predict(FRAME.assign(night=FRAME["night"].astype(kind)))


def test_categories_of_numbers_are_numbers_where_a_model_predicts() -> None:
    model = ps.fit(FRAME, "fare ~ C(night)")
    np.testing.assert_array_equal(
        model.predict(FRAME.assign(night=FRAME["night"].astype("category"))), model.predict(FRAME)
    )
    with pytest.raises(ps.InputError, match="has categories of text: make numbers of it"):
        model.predict(FRAME.assign(night=FRAME["zone"].astype("category")))


def test_predictions_of_absorbed_levels_need_no_target() -> None:
    model = ps.fit(FRAME, "fare ~ night | zone")
    rows = FRAME.drop(columns="fare")
    np.testing.assert_array_equal(model.predict(rows, missing="drop"), model.predict(rows))


@pytest.mark.parametrize("weights", ["zone", "pickup"])
def test_weights_that_are_no_numbers(weights: str) -> None:
    with pytest.raises(ps.InputError, match=f"Weight column '{weights}' .* is not numeric: name another one"):
        ps.fit(FRAME, "fare ~ night", weights=weights)


@pytest.mark.parametrize(
    ("levels", "sentence"), [([1], "levels is a mapping"), ({"C(zone)": "ab"}, "a list of distinct")]
)
def test_levels_that_are_no_lists(levels: Any, sentence: str) -> None:
    with pytest.raises(ps.InputError, match=sentence):
        ps.sketch(FRAME, "fare ~ C(zone)", levels=levels, site="north")


def test_data_without_columns() -> None:
    with pytest.raises(ps.InputError, match="The data has no columns"):
        ps.fit(np.empty((80, 0)), "y ~ x")


def test_too_many_levels() -> None:
    table = pa.table({"y": list(range(10_001)), "name": [f"n{i}" for i in range(10_001)]})
    for formula in ("y ~ name", "y ~ C(name)", "y ~ C(y)"):
        with pytest.raises(ps.InputError, match="more than 10000 distinct values"):
            open_source(table, formula=formula)


def test_a_stream_that_is_read_once() -> None:
    def stream() -> Any:
        return pa.table(FRAME[["fare", "distance", "zone"]]).to_reader()

    assert columns(open_source(stream(), formula="fare ~ log(distance)")).shape == (2, len(FRAME))
    with pytest.raises(ps.InputError, match="needs a pass over the data for zone"):
        open_source(stream(), formula="fare ~ zone")
    given = open_source(stream(), formula="fare ~ zone", levels={"zone": sorted(set(FRAME["zone"]))})
    assert columns(given).shape == (4, len(FRAME))


def test_a_column_may_be_called_like_a_formula() -> None:
    table = pa.table({"a ~ b": [1.0, 2.0, 4.0], "x": [1.0, 2.0, 3.0]})
    assert ps.fit(table, "a ~ b").target_names == ("a ~ b",)


def test_dates_are_left_out_of_an_encoding_with_a_note() -> None:
    with pytest.warns(ps.PartsketchWarning, match="Column 'pickup' holds timestamps and was left out"):
        model = ps.fit(FRAME, "fare", encode=True)
    assert not any("pickup" in name for name in model.feature_names)


def test_dates_that_a_point_does_not_stand_for_are_told() -> None:
    with pytest.warns(ps.PartsketchWarning, match="Column 'pickup' holds timestamps and was left out"):
        assert "hour" in ps.fit(FRAME, "fare ~ .").feature_names
    assert not ps.fit(FRAME, "fare ~ 0.5:hour").record.warnings
    assert not ps.fit(FRAME, "fare ~ . + hour(pickup)").record.warnings


def test_data_and_formula_the_other_way_round() -> None:
    with pytest.raises(ps.InputError, match="'fare ~ hour' is a formula, and the data come first"):
        ps.fit("fare ~ hour", FRAME)


def test_a_category_of_one_level_is_told() -> None:
    with pytest.warns(ps.PartsketchWarning, match=r"C\(k\) of the formula has one level, '3', and gives no column"):
        model = ps.fit(FRAME[FRAME["k"] == 3], "fare ~ hour + C(k)")
    assert model.feature_names == ("hour",)
    assert 0 < float(model.r_squared[0]) < 1


@pytest.mark.parametrize(("formula", "told"), [("distance**2", "distance**2"), ("log(hour + 1)^3", "log(hour + 1)**3")])
def test_a_power_of_one_term_is_told_of(formula: str, told: str) -> None:
    """fixest makes the square of x^2, R the column itself."""
    with pytest.warns(ps.PartsketchWarning, match=f"write I\\({re.escape(told)}\\) for the power"):
        model = ps.fit(FRAME, f"fare ~ {formula}")
    assert len(model.feature_names) == 1


def test_a_level_that_a_formula_does_not_list_is_to_be_listed() -> None:
    with pytest.raises(ps.InputError, match=r"correct it, or add it to levels=\[…\] in the formula\."):
        ps.fit(FRAME, "fare ~ C(zone, levels=['a'])")


def test_other_powers_are_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.fit(FRAME, "fare ~ (distance + night)**2 + I(hour**2)")
