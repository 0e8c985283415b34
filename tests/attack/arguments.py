"""Hostile values for every option of every command: each is refused in one sentence, or works."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import click

from tests.attack.case import Case, Fault
from tests.attack.judges import judge_command
from tests.attack.material import COMMANDS, command, lay_out

NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "1e3", "1e12", "1e308", "1e309", "-1e308", "nan", "inf", "-inf",
    "99999999999999999999",
    "1" * 400, "0x10", "1_000", "½", "٣", " 5 ", "", "5.5", "-0", "1e-308", "5e-324", "2147483647", "2147483648",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1,5", "1e",
    "e5", "+4", "NaN",
)  # fmt: skip
TEXTS = (
    "", " ", "a", "b", "y", "x0", "x2", "w", "s", "a,b", "a,a", ",", "a,,b", "nothing", "(intercept)", "order",
    "shuffle", "file",
    "\x1b[2Jred", "new\nline", "tab\t", "\u202egnp.exe", "\x9b31m", "x" * 5000, "héé", "日本", "[red]a[/red]",
    "[/a]", ":smile:",
    "{partition}", "{0}", "%s", "%(a)s", "~", "*", "?", "[", "**", "../..", "/", ".", "-", "--", "-t",
    "\ufeff", "\u200b", "𝕏",
    "local", "dask:/", "mainframe", "dask", "1%", "5GB", "10kB", "3min", "-1GB", "1e99TB", "nanGB", "infmin",
    "1%%", "0%", "-3%", "100%", "y ~ a", "y ~ .", "y ~ (a + b) ** 99999999", "a = 0", "a = b, b = 1e999", "HC3",
    "CRV1:w", "CRV3:a", "few-rows", "y~log(a)",
)  # fmt: skip
#: Engines that would start a cluster are attacked by tests of their own.
_SLOW_ENGINES = ("dask",)


@cache
def _options(name: str) -> list[click.Option]:
    """Return the options of a command that may be attacked."""
    from partsketch.cli import commands

    words = COMMANDS[name]
    found = commands.get_command(click.Context(commands), words[0])
    if isinstance(found, click.Group):
        found = found.commands[words[1]]
    assert found is not None
    options = [parameter for parameter in found.params if isinstance(parameter, click.Option)]
    # Without --json the explorer serves; measuring the machine again takes seconds.
    return [option for option in options if option.name not in ("as_json", "recalibrate", "debug")] or options


def _value(option: click.Option, draw: random.Random) -> list[str]:
    """Return an option with a value."""
    name = draw.choice(option.opts + option.secondary_opts)
    if option.is_flag:
        return [name]
    if isinstance(option.type, click.Choice) and draw.random() < 0.8:
        return [name, draw.choice(list(map(str, option.type.choices)))]
    value = draw.choice(NUMBERS if draw.random() < 0.7 or isinstance(option.type, click.types.IntParamType) else TEXTS)
    if option.opts[-1] == "--engine" and value in _SLOW_ENGINES:
        value = "dask:"
    return [name, value if not isinstance(option.type, click.Path) else draw.choice(TEXTS)]


def cases(seed: int) -> Iterator[Case]:
    """Yield commands with one to four options of hostile values, and now and then with arguments of no sense."""
    draw = random.Random(seed)
    while True:
        name = draw.choice(list(COMMANDS))
        options = _options(name)
        extra = [word for _ in range(draw.choice((1, 1, 2, 4))) for word in _value(draw.choice(options), draw)]
        if draw.random() < 0.1:
            extra.append(draw.choice(TEXTS))
        if draw.random() < 0.2:
            extra.append("--json")
        without = draw.random() < 0.1
        yield Case(f"{name} {extra!r}", partial(_attack, name, extra, without))


def _attack(name: str, extra: list[str], without: bool, folder: Path) -> Fault | None:
    base = command(name, lay_out(folder))
    # Values may be relative paths: they lead into a folder of their own.
    work = folder / "here"
    work.mkdir()
    with contextlib.chdir(work):
        return judge_command([*base[: 2 if without else None], *extra], folder, outputs=None)
