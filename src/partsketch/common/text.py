"""Text from outside, made fit to be shown: names of columns and files may hold anything."""

from __future__ import annotations

import re

#: Control characters (C0, DEL, C1), line and paragraph separators, marks that turn the direction of text or have no
#: width, and halves of characters that no encoding can write.
_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
#: Longest message, and how much of its end is kept: there it says what to do.
_LONGEST, _TAIL = 1500, 400
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str, keep: str = "") -> str:
    r"""Return the text with what a terminal would obey, or could not show, written out: "a\x1b[2Jb" as `a\x1b[2Jb`.

    Parameters
    ----------
    text
        Any text.
    keep
        Characters that stay, such as line ends of a text that has several lines.
    """

    def written_out(found: re.Match[str]) -> str:
        character = found.group()
        if character in keep:
            return character
        code = ord(character)
        if character in _SHORT:
            return _SHORT[character]
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _HARMFUL.sub(written_out, text)


def sentence(text: str) -> str:
    """Return a message as one line that somebody reads: very long ones, which quote something long, are shortened."""
    line = plain(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _TAIL]}…{line[-_TAIL:]}"


def plain_json(text: str, ascii_only: bool = False) -> str:
    """Return JSON, the same to whoever parses it, with such characters written as JSON writes them.

    Parameters
    ----------
    text
        Valid JSON.
    ascii_only
        Whether all characters beyond ASCII are written so.
    """

    def written_out(found: re.Match[str]) -> str:
        units = found.group().encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

    # Line ends and spaces outside of strings are the layout; inside of strings JSON has written them out already.
    pattern = re.compile("[^\x20-\x7e\n]") if ascii_only else _HARMFUL
    return pattern.sub(lambda found: found.group() if found.group() == "\n" else written_out(found), text)
