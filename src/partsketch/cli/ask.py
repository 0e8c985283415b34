"""`partsketch ask`: regressions from a file of summaries, without the rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partsketch.cli.options import column_names, one_target_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, say, show, warn
from partsketch.common.errors import InputError

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.meta_analysis import MetaAnalysis
    from partsketch.questions.mixed_model import MixedModel
    from partsketch.questions.paths import Path as PenaltyPath
    from partsketch.questions.summaries import Summaries

#: More intercepts than this are cut in the middle.
_MOST_INTERCEPTS = 20
_ONE = frozenset({"files", "target", "features", "intercept", "as_json", "together"})
_SITES = frozenset({"files", "target", "features", "report", "as_json", "together"})
#: What each way of asking takes, besides the option that asks for it; others would go unheard.
_TAKES = {
    "--compare": frozenset({"files", "compare", "vcov", "report", "focus", "as_json", "together"}),
    "--by-partition": _ONE | {"by_partition", "alpha", "vcov"},
    "--ridge": _ONE | {"ridge", "lasso", "alpha", "folds", "one_standard_error", "model_path", "report"},
    "--lasso": _ONE | {"lasso", "ridge", "alpha", "l1_ratio", "folds", "one_standard_error", "model_path", "report"},
    "--endogenous": _ONE | {"endogenous", "instruments", "vcov", "tests", "model_path", "report"},
    "--random": _SITES | {"random", "likelihood"},
    "--meta": _SITES | {"meta", "tau", "forest"},
    "": _ONE | {"alpha", "vcov", "tests", "draws", "wild_weights", "seed", "model_path", "report"},
}


@click.command("ask", epilog="Example: partsketch ask trips.psk --target fare --features distance,night --vcov CRV1")
@click.argument("files", nargs=-1, required=True)
@one_target_option("Any column of the files, or a formula 'y ~ a + b'.")
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
@click.option(
    "--random",
    multiple=True,
    help="What varies between partitions: features, beside the intercept (name it for it alone).",
)
@click.option(
    "--likelihood", type=click.Choice(["REML", "ML"]), default="REML", show_default=True, help="With --random."
)
@click.option("--meta", is_flag=True, help="Meta-analysis: every partition fitted alone, and the fits pooled.")
@click.option(
    "--tau",
    type=click.Choice(["REML", "DL", "PM"]),
    default="REML",
    show_default=True,
    help="With --meta: how the variance between partitions is estimated.",
)
@click.option("--forest", help="With --meta: the coefficient whose forest plot is shown; default: the first feature.")
@click.option("--by-partition", is_flag=True, help="Fit every partition alone, side by side.")
@click.option("--together", is_flag=True, help="Take partitions of the same name, at whatever site, for one.")
@click.option("--compare", type=NamedPath(), help="TOML or CSV file that lists regressions.")
@click.option("--report", type=NamedPath(), help="Write a page: model, path, or specification curve.")
@click.option("--focus", help="Feature whose coefficient the curve shows; default: the one that most have.")
@click.option("--draws", type=int, default=9999, show_default=True, help="Of the wild bootstrap.")
@click.option(
    "--wild-weights",
    type=click.Choice(["webb", "rademacher"]),
    default="webb",
    show_default=True,
    help="What the wild bootstrap multiplies residuals of partitions with.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the wild bootstrap.")
@click.option("--model", "model_path", type=NamedPath(), help="Write the model to this JSON file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    files: tuple[str, ...],
    compare: Path | None,
    by_partition: bool,
    together: bool,
    model_path: Path | None,
    as_json: bool,
    report: Path | None,
    focus: str | None,
    **asked: Any,
) -> None:
    """Answer regressions from FILES of summaries; no rows are read."""
    from partsketch.sites.summaries_api import read_summaries

    _check_options({"compare": compare, "by_partition": by_partition, **asked})
    # The tilde of a home folder stands first.
    if formulas := [name for name in files if "~" in name[1:] and not os.path.lexists(name)]:
        raise InputError(f"{formulas[0]!r} is no file: give a formula with --formula.")
    read = [] if compare is None else [compare]
    check_outputs({"--model": model_path, "--report": report}, data=files, files=read)
    summaries = read_summaries(list(files))
    if together:
        summaries = summaries.together()
    if compare is not None:
        _compare(summaries, compare, asked["vcov"], report, focus, as_json)
    elif by_partition:
        names = list(summaries.names)
        models = [_fit(summaries.select(partitions=[name]), asked) for name in names]
        _show_table(models, names, as_json)
    elif asked["random"] or asked["meta"]:
        _sites(summaries, asked, report, as_json)
    else:
        _one(summaries, asked, model_path, report, as_json)


def _check_options(asked: dict[str, Any]) -> None:
    """Refuse options that the way of asking has no use for."""
    if asked["ridge"] and asked["lasso"]:
        raise InputError("Choose --ridge or --lasso, not both.")
    ways = ("--compare", "--by-partition", "--ridge", "--lasso", "--endogenous", "--random", "--meta")
    chosen = [way for way in ways if asked[way[2:].replace("-", "_")]]
    if asked["instruments"] and not chosen:
        chosen = ["--endogenous"]
    if len(chosen) > 1:
        raise InputError(f"{chosen[0]} does not go with {chosen[1]}: ask for one at a time.")
    way = chosen[0] if chosen else ""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _TAKES[way] and parameter.name != "debug":
            where = f"does not go with {way}" if way else f"goes with {_where(str(parameter.name))}"
            raise InputError(f"{parameter.opts[0]} {where}: leave it out.")
        if given and parameter.name in ("draws", "wild_weights", "seed") and asked["vcov"] != "wild":
            raise InputError(f"{parameter.opts[0]} goes with --vcov wild: leave it out.")


def _where(name: str) -> str:
    return " or ".join(way for way, taken in _TAKES.items() if way and name in taken)


def _intercept(asked: dict[str, Any]) -> Any:
    return False if asked["intercept"] == "none" else asked["intercept"]


def _path(summaries: Summaries, asked: dict[str, Any]) -> PenaltyPath | None:
    """Return the path that is asked for, or None."""
    if not (asked["ridge"] or asked["lasso"]):
        return None
    given = (asked["target"], column_names(asked["features"]))
    alphas = None if asked["alpha"] is None else [asked["alpha"]]
    common = {"alphas": alphas, "folds": asked["folds"], "intercept": _intercept(asked)}
    if asked["lasso"]:
        return summaries.lasso_path(*given, l1_ratio=asked["l1_ratio"], **common)
    return summaries.ridge_path(*given, **common)


def _fit(summaries: Summaries, asked: dict[str, Any]) -> Model:
    """Return the model that is asked for, of least squares in one stage or two."""
    target, features, intercept = asked["target"], column_names(asked["features"]), _intercept(asked)
    endogenous, instruments = column_names(asked["endogenous"]), column_names(asked["instruments"])
    if endogenous or instruments:
        if target is None or not endogenous or not instruments:
            raise InputError("Two-stage least squares needs --target, --endogenous and --instruments.")
        chosen = (endogenous, instruments, features or ())
        return summaries.instrument(target, *chosen, intercept=intercept, vcov=asked["vcov"])
    return summaries.fit(
        target, features, intercept=intercept, alpha=asked["alpha"] or 0.0, vcov=asked["vcov"],
        draws=asked["draws"], weights=asked["wild_weights"], random_state=asked["seed"],
    )  # fmt: skip


def _one(
    summaries: Summaries, asked: dict[str, Any], model_path: Path | None, report: Path | None, as_json: bool
) -> None:
    path = _path(summaries, asked)
    if path is None:
        model = _fit(summaries, asked)
    else:
        model = path.model("one_standard_error" if asked["one_standard_error"] else "best")
    tests = [(text, model.test(text)) for text in asked["tests"]]
    if model_path is not None:
        model.save(model_path)
    if report is not None:
        (model if path is None else path).report(report)
    for sentence in model.record.warnings:
        warn(sentence)
    if as_json:
        found = [
            {"restrictions": text, "statistic": test.statistic, "df": list(test.df), "p_value": test.p_value}
            for text, test in tests
        ]
        told = {"model": model.to_dict(), "summary": model.summary().to_dict(), "tests": found}
        print_json(told if path is None else {**told, "path": path.to_dict()})
        return
    if path is not None:
        show(str(path) + "\n")
    show(str(model.summary()))
    if asked["intercept"] == "partition":
        show(_intercepts(model))
    for text, test in tests:
        say(f"{text}: {test}")
    for what, written in (("model", model_path), ("report", report)):
        if written is not None:
            say(f"{what} written to {written}")


def _intercepts(model: Model) -> str:
    """Return the intercept of each partition, a line each, the middle of many left out."""
    lines = [
        f"  {part.name}  {', '.join(f'{value:.6g}' for value in values)}"
        for part, values in zip(model.record.partitions, model.partition_intercepts, strict=True)
    ]
    if len(lines) > _MOST_INTERCEPTS:
        lines[10:-5] = [f"  … {len(lines) - 15:,} more (--json has all)"]
    return "\n".join(["intercepts of the partitions:", *lines])


def _sites(summaries: Summaries, asked: dict[str, Any], report: Path | None, as_json: bool) -> None:
    """Answer with random effects of the partitions, or a meta-analysis of their fits."""
    given = (_one_target(asked["target"]), column_names(asked["features"]))
    found: MixedModel | MetaAnalysis
    if asked["meta"]:
        found = pooled = summaries.meta_analysis(*given, method=asked["tau"])
        text = pooled.text(asked["forest"])
    else:
        random = column_names(asked["random"]) or ()
        found = summaries.mixed(*given, random=random, method=asked["likelihood"])
        text = str(found)
    if report is not None:
        found.report(report)
    if as_json:
        for sentence in found.warnings:
            warn(sentence)
        print_json(found.to_dict())
        return
    show(text)
    if report is not None:
        say(f"report written to {report}")


def _one_target(target: str | None) -> str:
    if target is None:
        raise InputError("Name a target (--target): the column to explain.")
    return target


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
        say(f"specification curve written to {report}")


def _show_table(models: list[Model], names: list[str], as_json: bool) -> None:
    from partsketch.questions.table import table

    for sentence in dict.fromkeys(sentence for model in models for sentence in model.record.warnings):
        warn(sentence)
    if as_json:
        entries = [
            {"name": name, **model.to_dict(), "summary": model.summary().to_dict()}
            for name, model in zip(names, models, strict=True)
        ]
        print_json({"models": entries})
    else:
        show(str(table(models, names)))
