"""`partsketch ask`: regressions from a file of summaries, without the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partsketch.cli.options import column_names
from partsketch.common.errors import InputError

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.summaries import Summaries


@click.command("ask", epilog="Example: partsketch ask trips.psk --target fare --features distance,night --vcov CRV1")
@click.argument("files", nargs=-1, required=True)
@click.option("--target", "-t", help="Any column of the files, or a formula 'y ~ a + b'.")
@click.option("--features", "-f", multiple=True, help="Any columns, comma-separated; default: all others.")
@click.option(
    "--intercept",
    type=click.Choice(["common", "partition", "none"]),
    default="common",
    show_default=True,
    help="One for all rows, one for each partition, or none.",
)
@click.option(
    "--vcov",
    type=click.Choice(["iid", "CRV1", "CRV3", "wild"]),
    default="iid",
    show_default=True,
    help="Standard errors: independent noise, or partitions as clusters.",
)
@click.option("--alpha", type=float, help="Penalty: of ridge regression, or with --lasso of the lasso.")
@click.option("--ridge", is_flag=True, help="A whole path of ridge penalties, cross-validated.")
@click.option("--lasso", is_flag=True, help="A whole path of the lasso, cross-validated.")
@click.option("--l1-ratio", type=float, default=1.0, show_default=True, help="With --lasso: below 1 an elastic net.")
@click.option("--folds", type=int, default=10, show_default=True, help="Folds of partitions for a path.")
@click.option("--one-standard-error", is_flag=True, help="With a path: the simplest model within one standard error.")
@click.option("--test", "tests", multiple=True, help="Restrictions to test, such as 'a = 0, b = 2*c'; repeatable.")
@click.option("--endogenous", multiple=True, help="Features related to the noise, for two-stage least squares.")
@click.option("--instruments", multiple=True, help="Their instruments.")
@click.option("--by-partition", is_flag=True, help="Fit every partition alone, side by side.")
@click.option("--compare", type=click.Path(path_type=Path), help="TOML or CSV file that lists regressions.")
@click.option("--report", type=click.Path(path_type=Path), help="With --compare: write a specification curve (HTML).")
@click.option("--focus", help="Feature whose coefficient the curve shows; default: the one that most have.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the wild bootstrap.")
@click.option("--model", "model_path", type=click.Path(path_type=Path), help="Write the model to this JSON file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    files: tuple[str, ...],
    compare: Path | None,
    by_partition: bool,
    model_path: Path | None,
    as_json: bool,
    report: Path | None,
    focus: str | None,
    **asked: Any,
) -> None:
    """Answer regressions from FILES of summaries; no rows are read."""
    from partsketch.sites.summaries_api import read_summaries

    for path in (model_path, report):
        if path is not None and not path.parent.is_dir():
            raise InputError(f"Cannot write {path}: there is no folder {path.parent}.")
    if compare is None and (report is not None or focus is not None):
        raise InputError("--report and --focus go with --compare.")
    if model_path is not None and (compare is not None or by_partition):
        raise InputError("--model writes one model: leave out --compare and --by-partition.")
    summaries = read_summaries(list(files))
    if compare is not None:
        _compare(summaries, compare, asked["vcov"], report, focus, as_json)
    elif by_partition:
        names = list(summaries.names)
        models = [_answer(summaries.select(partitions=[name]), asked)[0] for name in names]
        _show_table(models, names, as_json)
    else:
        _one(summaries, asked, model_path, as_json)


def _answer(summaries: Summaries, asked: dict[str, Any]) -> tuple[Model, str]:
    """Return the model that is asked for, and what else is to be shown of how it was chosen."""
    target, features = asked["target"], column_names(asked["features"])
    intercept: Any = False if asked["intercept"] == "none" else asked["intercept"]
    endogenous, instruments = column_names(asked["endogenous"]), column_names(asked["instruments"])
    if asked["ridge"] or asked["lasso"]:
        if asked["ridge"] and asked["lasso"]:
            raise InputError("Choose --ridge or --lasso, not both.")
        alphas = None if asked["alpha"] is None else [asked["alpha"]]
        common = {"alphas": alphas, "folds": asked["folds"], "intercept": intercept}
        path = (
            summaries.lasso_path(target, features, l1_ratio=asked["l1_ratio"], **common)
            if asked["lasso"]
            else summaries.ridge_path(target, features, **common)
        )
        return path.model("one_standard_error" if asked["one_standard_error"] else "best"), str(path)
    if endogenous or instruments:
        if target is None or not endogenous or not instruments:
            raise InputError("Two-stage least squares needs --target, --endogenous and --instruments.")
        chosen = (endogenous, instruments, features or ())
        return summaries.instrument(target, *chosen, intercept=intercept, vcov=asked["vcov"]), ""
    return summaries.fit(
        target, features, intercept=intercept, alpha=asked["alpha"] or 0.0, vcov=asked["vcov"],
        random_state=asked["seed"],
    ), ""  # fmt: skip


def _one(summaries: Summaries, asked: dict[str, Any], model_path: Path | None, as_json: bool) -> None:
    model, chosen = _answer(summaries, asked)
    tests = [(text, model.test(text)) for text in asked["tests"]]
    if model_path is not None:
        model.save(model_path)
    for sentence in model.record.warnings:
        click.echo(f"Warning: {sentence}", err=True)
    if as_json:
        found = [
            {"restrictions": text, "statistic": test.statistic, "df": list(test.df), "p_value": test.p_value}
            for text, test in tests
        ]
        click.echo(json.dumps({"model": model.to_dict(), "tests": found}, ensure_ascii=False))
        return
    if chosen:
        click.echo(chosen + "\n")
    click.echo(str(model.summary()))
    for text, test in tests:
        click.echo(f"{text}: {test}")
    if model_path is not None:
        click.echo(f"model written to {model_path}")


def _compare(
    summaries: Summaries, path: Path, vcov: str, report: Path | None, focus: str | None, as_json: bool
) -> None:
    from partsketch.questions.specifications import compare, read_specifications

    listed = read_specifications(path, vcov)
    models = compare(summaries, listed)
    names = [specification.name for specification in listed]
    if report is not None:
        from partsketch.questions.table import table
        from partsketch.report.specification_curve import most_common_feature, write_specification_curve

        column = focus or most_common_feature(models)
        write_specification_curve(models, names, column, report, table(models, names).to_html())
    _show_table(models, names, as_json)
    if report is not None and not as_json:
        click.echo(f"specification curve written to {report}")


def _show_table(models: list[Model], names: list[str], as_json: bool) -> None:
    from partsketch.questions.table import table

    if as_json:
        entries = [{"name": name, **model.to_dict()} for name, model in zip(names, models, strict=True)]
        click.echo(json.dumps({"models": entries}, ensure_ascii=False))
    else:
        click.echo(str(table(models, names)))
