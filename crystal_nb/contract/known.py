"""What released rules are known to do against the contract, and why that stays so.

The pinned importer's rules are reproduced as they are, faults included. Each entry names the check
that shows a fault, what each thing that the check finds has to look like (so that no other fault is
covered), and the rule. Such a check counts as ok, with a detail that begins with ``known:``.
Rule numbers are those of the format pages; sections are those of ``pinned-importer.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

__all__ = ["KNOWN", "Known", "known_for"]

_TIMES = r"conversations\[\d+\]\.(messages\[\d+\]\.timestamp|(first|last)_message_at)"
_MESSAGE_IDS = r"conversations\[\d+\]\.messages\[\d+\]\.id"
_OTHER_ID = r".+ becomes .+"
_COUNTS = r"detect counts \d+ conversations, scan lists \d+"
_MOVED = r"pinned: .+: its rows give another hash: the message id .+ moved; it is the tool's own, in several records"
_MADE = r"pinned: .+: its rows give another hash: the message id (resp-.+|turn-\d+|line-\d+|t\d+/.+) moved; .+"
_ONE_ID = r"pinned: .+: its rows give another hash: several of its messages have one id"
_OTHERS = r".+: line \d+ twice changes other messages"
_AGAIN = r"pinned: .+: error: "
_TAKEN_ID = r"The id .+ is taken by a conversation of \S+ from candidate .+"
_OWN_TIME = r"\w+, touched: decided: skip \(stored: yes, same size: yes, same time: yes\b.*\) instead of .+"
_EMPTY = r".+: a document cut at byte \d+ reads as 0 messages"
_TAKEN = rf"pinned: .+: {_TAKEN_ID}"


class Known(Struct, frozen=True):
    """A deviation of a released version.

    Attributes
    ----------
    versions : str
        Parser versions, as a pattern.
    check : str
        Name of the check.
    pattern : str
        What each thing that the check finds matches as a whole.
    why : str
        The rule that is followed instead.
    """

    versions: str
    check: str
    pattern: str
    why: str


KNOWN: tuple[Known, ...] = (
    Known("claude-code@1", "clock", _TIMES, "rules 19 and 21 take the clock's time where there is none"),
    Known("codex@1", "clock", _TIMES, "rules 7 and 17 take the clock's time where there is none"),
    Known("cursor@1", "clock", _TIMES, "rules P25 and P28 take the clock's time where there is none"),
    Known("trae@1", "clock", _TIMES, "rule T29 takes the clock's time for an empty conversation"),
    Known("copilot@1", "clock", _TIMES, "rule C21 takes the clock's time for an empty conversation"),
    Known("claude-code@1", "detect agrees with scan", _COUNTS, "rule 2 counts other files than rules 3 to 6 list"),
    Known("codex@1", "detect agrees with scan", _COUNTS, "rule 3 counts files that are too small to be listed"),
    Known("copilot@1", "truncated", _EMPTY, "rules C9 and C10 read a broken document as an empty conversation"),
    Known("codex@1", "ids stable", _MESSAGE_IDS, "rule 13 gives random ids"),
    Known("codex@1", "candidate id = parsed id", _OTHER_ID, "rule 8 takes the id of the last session_meta"),
    Known("copilot@1", "candidate id = parsed id", _OTHER_ID, "rule C21 takes the sessionId in the file"),
    Known("codex@1", "stored rows", _TAKEN, "rule 8 gives a fork its parent's id, which section 3 keys rows by"),
    Known("copilot@1", "stored rows", _TAKEN, "rule C21 can give two files one id, which section 3 keys rows by"),
    Known("cursor@1", "touch", _OWN_TIME, "rule P13 takes the conversation's createdAt for the file's time"),
    Known("trae@1", "touch", _OWN_TIME, "rule T11 takes the conversation's updatedAt for the file's time"),
    Known("codex@1", "reimport", f"{_AGAIN}{_TAKEN_ID}", "rule 8 gives a fork its parent's id, which is taken then"),
    Known("claude-code@1", "candidate ids unique", ".+", "an id is a file's name, and two folders can have the same"),
    Known("copilot@1", "candidate ids unique", ".+", "rule C5: an id is a file's name, and two can have the same"),
    Known("trae@1", "message ids unique", r".+: several messages have the id .+", "rule T28: a turn's id serves"),
    Known("trae@1", "stored rows", _ONE_ID, "rule T32: a turn's two messages can share an id"),
    Known(
        "codex@2",
        "duplicated line",
        _OTHERS,
        "a later rollout says by a byte offset up to where it goes on from this one, and a line more moves that",
    ),
    Known("copilot@2", "duplicated line", _OTHERS, "a log of changes is replayed, twice what stands twice"),
    Known(
        "copilot@2",
        "unknown record",
        r".+: an unknown record as line \d+ changes the hash",
        "a log of changes is replayed; behind an unknown change its state is not known, and the rest is dropped",
    ),
    Known(
        r"(claude-code|cursor)@[12]|copilot@2|gemini@1",
        "stored rows",
        _MOVED,
        "by section 3 a message id moves to the later conversation, and this tool copies ids",
    ),
    Known(
        r"copilot@[12]|(cursor|trae)@2",
        "stored rows",
        _MADE,
        "by section 3 a message id moves to the later conversation; these are made from what is one's own in each only",
    ),
)


def known_for(version: str, check: str, items: Iterable[str]) -> Known | None:
    """The entry that covers all that a check found, if any.

    >>> known_for("codex@1", "ids stable", ["conversations[0].messages[2].id"]).why
    'rule 13 gives random ids'
    >>> known_for("codex@2", "ids stable", ["conversations[0].messages[2].id"]) is None
    True
    """
    items = list(items)
    for known in KNOWN:
        fits = known.check == check and re.fullmatch(known.versions, version)
        if fits and all(re.fullmatch(known.pattern, item, re.DOTALL) for item in items):
            return known
    return None
