"""The contract's checks on the fixtures' own odd homes: red is only what is wrong in the home on purpose.

The homes are those on which a check once was red for no fault of the adapter. Checks that do not depend on
what a home holds (another clock, zone, locale, process; the change policy on written samples) are left to
`test_testing`. All homes: ``check_adapter(version, home)`` for each ``fixtures/<source>/*/home``.
"""

from __future__ import annotations

import pytest

import crystal_nb as cnb
from crystal_nb import samples, testing

ELSEWHERE = {
    *("clock", "time zone", "locale", "hash seed", "directory order", "same again"),
    *("touch", "append", "same-size edit", "version bump"),
}
BROKEN_ON_PURPOSE = {"samples parse"}
HOMES: dict[tuple[str, str], set[str]] = {
    ("claude-code@1", "lineage"): set(),  # two folders, one session
    ("claude-code@1", "sidechains"): BROKEN_ON_PURPOSE,  # nothing else can be parsed
    ("claude-code@2", "damaged"): set(),  # two records on one line
    ("claude-code@2", "harness"): set(),  # a fate for several lines
    ("claude-code@2", "mended"): BROKEN_ON_PURPOSE,  # CRLF without an end, a spliced line
    ("claude-code@2", "sidechains"): set(),  # a chain that begins in the middle
    ("codex@1", "forks"): set(),
    ("codex@2", "cold"): set(),  # compressed
    ("codex@2", "paginated"): BROKEN_ON_PURPOSE,  # rollouts that refer to bytes of others
    ("cursor@2", "agents"): set(),  # text transcripts
    ("trae@1", "answers"): set(),  # two messages of a turn with one id
    ("trae@2", "answers"): set(),  # records inside records
    ("trae@2", "products"): set(),
    ("copilot@1", "old_shapes"): set(),  # a document on one line
    ("copilot@1", "stores"): set(),
    ("copilot@2", "log"): set(),  # a log that lost its head
    ("copilot@2", "stores"): set(),
    ("gemini@1", "replay"): set(),
}


@pytest.mark.parametrize(("version", "name"), HOMES)
def test_red_is_only_what_is_wrong_on_purpose(version, name):
    home = samples.fixtures() / version.partition("@")[0] / name / "home"
    with testing._stage(cnb.get_adapter(version), home, cnb.Config()) as stage:
        rows = [testing._row(stage, check) for check in testing.CHECKS if check.name not in ELSEWHERE]
    assert {row["check"]: row["detail"] for row in rows if row["ok"] is False}.keys() == HOMES[version, name]
    held = [row["check"] for row in rows if row["ok"]]
    assert held
    assert "fates" in held or HOMES[version, name]


def test_the_homes_are_there_and_the_checks_are_known():
    assert {name for _, name in HOMES} <= {home.parent.name for home in samples.fixtures().glob("*/*/home")}
    assert {check.name for check in testing.CHECKS} > ELSEWHERE
