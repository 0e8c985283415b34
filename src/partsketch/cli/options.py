"""Options of commands, made of the declared keywords of a fit; what says how columns are read; and the limits.

Each decorator gathers its options, so that a command takes them as one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from os import PathLike
from types import NoneType
from typing import Any, get_args, get_type_hints

import click

from partsketch.cli.paths import NamedPath
from partsketch.common.errors import InputError
from partsketch.fitting.keywords import FIT_KEYWORDS, FitKeywords, choices_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def keyword_option(name: str, text: str | None = None, *, default: Any = ...) -> Decorator:
    """Return the option of a keyword of a fit, under its name; help and default may be a command's own."""
    keyword = FIT_KEYWORDS[name]
    text, default = text or keyword.metadata["help"], keyword.default if default is ... else default
    spelled = (*(keyword.metadata["options"] or (f"--{name.replace('_', '-')}",)), name)
    if name == "sketch":
        return sketch_option(text)
    if isinstance(keyword.default, bool):
        return click.option(*spelled, is_flag=True, flag_value=not keyword.default, default=default, help=text)
    return click.option(*spelled, type=_type(name), default=default, show_default=default is not None, help=text)


def _type(name: str) -> Any:
    """Return what click makes of the text of an option."""
    if choices_of(name):
        return click.Choice(choices_of(name))
    hint = get_type_hints(FitKeywords)[name]
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    if PathLike[str] in kinds:
        return NamedPath()
    # A seed is whole on the command line; elsewhere it may be a generator.
    return int if name == "random_state" else kinds[0] if kinds[0] in (int, float) else str


def fit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every keyword of a fit as an option; the command takes them as one `keywords`."""

    @wraps(command)
    def taking(**given: Any) -> Any:
        keywords = FitKeywords(**{name: given.pop(name) for name in FIT_KEYWORDS})
        return command(keywords=keywords, **given)

    made: Callable[..., Any] = taking
    for name in reversed(FIT_KEYWORDS):
        made = limit_options(made) if name == "limits" else keyword_option(name)(made)
    return made


def sketch_option(text: str, exact: bool = False) -> Decorator:
    """Return the option `--sketch`: any kind that the library has, the exact summary among them if asked.

    Kinds are listed when one is given, not when the command is made: loading them takes a while.
    """

    def known(context: click.Context, parameter: click.Parameter, value: str) -> str:
        from partsketch.sketches.base import get_sketch

        return get_sketch(value, exact).kind

    def completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        from partsketch.sketches.base import sketch_kinds

        return [kind for kind in sketch_kinds(exact) if kind.startswith(incomplete)]

    return click.option(
        "--sketch",
        metavar="KIND",
        default=FitKeywords.sketch,
        show_default=True,
        callback=known,
        shell_complete=completed,
        help=text,
    )


_LIMITS = (
    click.option("--max-excess", help="Largest expected excess loss, such as 1%."),
    click.option("--max-bytes-per-partition", help="Most bytes that may leave a partition, such as 10kB."),
    click.option("--rows-stay", is_flag=True, help="Rows may not leave their partition, not even a sample of them."),
    click.option("--memory", help="Most memory at once, such as 2GB."),
    click.option("--seconds", help="Longest time, such as 30 or 5min."),
)
_LIMIT_NAMES = ("max_excess", "max_bytes_per_partition", "rows_stay", "memory", "seconds")


def intervals_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says what the intervals of the summary are for."""
    return click.option(
        "--intervals-of",
        type=click.Choice(["truth", "exact"]),
        default="truth",
        show_default=True,
        help="What --summary gives intervals for: the true coefficients, or those of exact least squares.",
    )(command)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the limits as options; the command takes them as one `limits`, None when no option was used."""

    @wraps(command)
    def taking(**given: Any) -> Any:
        from partsketch.fitting.limits import limits_from

        limits = limits_from({name: given.pop(name) for name in _LIMIT_NAMES})
        return command(limits=limits if limits.any else None, **given)

    for option in reversed(_LIMITS):
        taking = option(taking)
    return taking


def one_target_option(text: str) -> Decorator:
    """Return the option of a single target, or of a formula: of two, click would take the last without a word."""

    def only(context: click.Context, option: click.Parameter, named: Sequence[str]) -> str | None:
        if len(named) > 1:
            raise InputError(f"{context.info_name} has one target, and {len(named)} are named: ask once for each.")
        return named[0] if named else None

    return click.option("--target", "--formula", "-t", "target", multiple=True, callback=only, help=text)


def column_names(features: Sequence[str]) -> list[str] | None:
    """Return the names that were given, or None: an option may be repeated, and hold several, separated by commas."""
    names = [name.strip() for text in features for name in text.split(",") if name.strip()]
    if features and not names:
        # As of a variable of the shell that is not set: all columns would be taken.
        raise InputError("A list of columns is empty: name columns, or leave the option out.")
    return names or None


def _target(targets: Sequence[str], formula: str | None) -> Any:
    """Return what stands for the target: names, or a formula."""
    if formula is None:
        return list(targets) or None
    if targets:
        raise click.UsageError("Give '--target' or '--formula', not both: the formula names its target.")
    if "~" not in formula:
        raise click.UsageError(f"The formula {formula!r} has no '~': write 'target ~ features'.")
    return formula


_CSV = (
    click.option("--separator", help="What separates the values of CSV files, such as ';' or tab."),
    click.option("--decimal", default=".", help="The decimal mark of CSV files, such as ','."),
    click.option("--no-header", is_flag=True, help="CSV files without a line of names: columns are c0, c1, ..."),
)


def csv_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says how CSV files are written; the command takes it with the paths, as its `data`."""

    @wraps(command)
    def taking(*, data: Sequence[str], separator: str | None, decimal: str, no_header: bool, **others: Any) -> Any:
        given: Any = list(data) or None
        if separator is not None or decimal != "." or no_header:
            from partsketch.sources.files.csv_format import CsvFiles

            given = CsvFiles(list(data), separator, decimal, not no_header)
        return command(data=given, **others)

    for option in reversed(_CSV):
        taking = option(taking)
    return taking


def data_options(target: str, *, needs_data: bool = True, needs_target: bool = False) -> Decorator:
    """Add DATA and the options that say how its columns are read; the command takes them as one `request`.

    Parameters
    ----------
    target
        Help of the option `--target`.
    needs_data, needs_target
        Whether the command cannot do without.
    """
    options = (
        click.argument("data", nargs=-1, required=needs_data),
        click.option("--target", "-t", "targets", multiple=True, help=target),
        click.option("--formula", help="In place of target and features: 'fare ~ log(distance) + C(zone) * night'."),
        click.option("--features", "-f", multiple=True, help="Feature columns, comma-separated; default: all others."),
        click.option("--weights", help="Column of sample weights."),
        click.option("--encode", is_flag=True, help="One-hot encode text columns."),
        click.option(
            "--missing",
            type=click.Choice(["error", "drop"]),
            default="error",
            show_default=True,
            help="Refuse missing values, or drop their rows.",
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @csv_options
        @wraps(command)
        def taking(
            *, data: Any, targets: Sequence[str], features: Sequence[str], weights: str | None,
            encode: bool, missing: Any, formula: str | None, **others: Any,
        ) -> Any:  # fmt: skip
            from partsketch.fitting.data_request import DataRequest

            if needs_target and not targets and formula is None:
                raise click.UsageError("Missing option '--target' / '-t', or '--formula'.")
            columns = (_target(targets, formula), column_names(features), weights, encode, missing)
            return command(request=DataRequest(data, *columns), **others)

        for option in reversed(options):
            taking = option(taking)
        return taking

    return decorate
