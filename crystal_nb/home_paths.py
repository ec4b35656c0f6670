"""Home folders in texts: of Linux, macOS, Windows and WSL, in addresses, escaped, and as Claude Code names projects."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

__all__ = ["without_homes"]

_NAME = (
    r"(?!Shared\b|Public\b|Default\b)"
    r"(?:[^/\\\s\"'<>:|?*,;)\]}%]|%(?!25|2[Ff]|5[Cc]|3[Aa])[0-9A-Fa-f]{2})+"
)
_SPACED = r"[^/\\\"'<>:|?*,;\r\n%]{1,40}(?=\\)|[^/\\\s\"'<>:|?*,;%]+(?: [^/\\\s\"'<>:|?*,;%]+){1,2}(?=/)"
"""A name with spaces, which only what follows ends."""
_SLASH = r"(?:[/\\]|%(?:25)*(?:2[Ff]|5[Cc]))+"
_ABOVE = r"(?:/mnt/[a-z]|/cygdrive/[a-z]|/[a-z]|/var|/export|/private|/Volumes/[^/\s\"']+)?"
_HOST = r"\b(?:vscode-[a-z]+|file|s?ftp|(?:git\+)?ssh|smb|nfs)://[^/\s\"'<>]+"
_SHARE = rf"(?<![:\w/\\])(?:/{{2,4}}|\\{{2,4}})[\w.$-]+{_SLASH}(?:[\w.-]+{_SLASH})?"
_DRIVE = rf"(?<![A-Za-z])[/\\]?[A-Za-z](?::|%(?:25)*3[Aa]){_SLASH}"
_HOMES = re.compile(
    "|".join(
        (
            rf"(?:(?<![\w.~-])|(?<=-[ILF])){_ABOVE}/(?:home|Users)/+{_NAME}",
            rf"(?P<host>{_HOST})(?:/[a-z](?::|%3[Aa]))?/(?:home|Users)/{_NAME}",
            rf"(?P<share>{_SHARE})(?:home|Users){_SLASH}{_NAME}",
            rf"{_DRIVE}(?i:Users|Documents and Settings){_SLASH}(?:{_SPACED}|{_NAME})",
            rf"\A(?:home|Users)/{_NAME}(?=/|\Z)",
            rf"(?<![\w.~-])\\/(?:home|Users)\\/{_NAME}",
            rf"%(?:25)*2[Ff](?:home|Users)%(?:25)*2[Ff]{_NAME}",
        )
    )
)
_PROJECTS = re.compile(r"(?<![\w-])(?:[A-Za-z]-|-mnt-[a-z])?-(?:home|Users)-[A-Za-z0-9_.]+")


def without_homes(text: str, mask: Callable[[str], str]) -> str:
    r"""A text with what `mask` makes of ``~`` or ``-~`` in the place of each home folder.

    >>> without_homes("/home/ada/x, C:\\Users\\ada, -home-ada-x", str)
    '~/x, ~, -~-x'
    """
    own = _own(str(Path.home()))
    if own is not None:
        text = own.sub(lambda match: mask("-~" if match["dashed"] else "~"), text)
    text = _HOMES.sub(lambda m: f"{m['host'] or m['share'] or ''}{mask('~')}", text)
    return _PROJECTS.sub(lambda _: mask("-~"), text)


@functools.cache
def _own(home: str) -> re.Pattern[str] | None:
    """Spellings of the home of who runs this, wherever it is."""
    if len(home) < 6 or home in ("/root", "/home"):
        return None
    dashed = re.sub(r"[^A-Za-z0-9]", "-", home)
    plain = {home, home.replace("\\", "/"), home.replace("\\", "\\\\"), quote(home), quote(home, safe="")}
    ways = "|".join(map(re.escape, sorted(plain, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.~-])(?:{ways})(?![\w.-])|(?<![\w-])(?P<dashed>{re.escape(dashed)})(?![A-Za-z0-9])")
