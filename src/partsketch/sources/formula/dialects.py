"""What formulas of fixest, R and patsy say in other words than formulas here, and what is written instead."""

from __future__ import annotations

import ast
import re

_ONE_BY_ONE = "fit one formula after the other, quickest with one pass: summaries = ps.summarise(…), summaries.fit(…)"
_SPLINE = "write bs(…)"

#: What to write in place of functions that others have.
_INSTEAD = {
    "factor": "write C(…)",
    "as_factor": "write C(…)",
    "ns": _SPLINE,
    "cr": _SPLINE,
    "cs": _SPLINE,
    "cc": _SPLINE,
    "te": _SPLINE,
    "s": _SPLINE,
    "c": "write several targets with a plus, a + b ~ x",
    "cbind": "write several targets with a plus, a + b ~ x",
    **dict.fromkeys(("sw", "sw0", "csw", "csw0", "mvsw"), _ONE_BY_ONE),
    **dict.fromkeys(("l", "f", "d", "lag", "lead", "diff", "shift"), "it looks at other rows: make the column before"),
}


def instead_of(call: ast.Call) -> str:
    """Return what to write in place of a call that others know; empty if there is no such thing."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return _instead_of_i(call) if name == "i" and call.args else _INSTEAD.get(name, "")


def _instead_of_i(call: ast.Call) -> str:
    """Return the categories that `i(factor, variable, ref=level)` of fixest stands for."""
    references = [keyword.value for keyword in call.keywords if keyword.arg == "ref"]
    contrasts = f", contr.treatment({ast.unparse(references[0])})" if references else ""
    category = f"C({ast.unparse(call.args[0])}{contrasts})"
    return f"write {category}" + (f" * {ast.unparse(call.args[1])}" if len(call.args) > 1 else "")


def unread(text: str) -> str:
    """Return what makes a formula unreadable where that is plain; empty if it is not."""
    plain = re.sub(r"""`[^`]*`|"[^"]*"|'[^']*'""", " ", text)
    for mark, name in (("`", "backtick"), ('"', "quote"), ("'", "quote")):
        if mark in plain:
            return f"a {name} {mark} has no other that closes it"
    if re.search(r"[(+][^()]*\|[^()]*\)", plain):
        return "random effects are asked of summaries: ps.summarise(data, partition_by=group).mixed(target, features)"
    function = re.search(r"\bas\.(\w+)\s*\(", plain)
    if function:
        word = "C(…)" if function[1] in ("factor", "character") else "the column alone"
        return f"there is no {function[0].rstrip('( ')}(…): write {word}"
    opened = []
    for mark in plain:
        if mark in "([{":
            opened.append(mark)
        elif mark in ")]}" and (not opened or opened.pop() + mark not in ("()", "[]", "{}")):
            return f"the bracket '{mark}' closes none that is open"
    return f"the bracket '{opened[-1]}' is not closed" if opened else ""


def one_absorbed(before: str, behind: str) -> str:
    """Say how to write a formula with more than one factor behind '|'."""
    if "~" in behind:
        return "instruments are asked of summaries: summaries.instrument(target, endogenous=[…], instruments=[…])"
    if not behind.strip():
        return "name it behind the bar, or leave the bar out"
    names = [name.strip() for name in behind.split("+")]
    if len(names) > 1 and all(re.fullmatch(r"[\w.]+|`[^`]+`", name) for name in names):
        others = "".join(f" + C({name})" for name in names[1:])
        return f"keep the one with most levels and write others as C(…), such as '{before}{others} | {names[0]}'"
    return "make one column of several before, and name it alone"
