"""The chat panel from before Composer: one list of tabs in each window's database.

Source: ``formats/cursor.md`` section 2.6.
"""

from __future__ import annotations

from typing import Any

from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.cursor_bubble import BUBBLES, add_bubble
from crystal_nb.adapters.cursor_draft import CarefulDraft, Place, conversation
from crystal_nb.adapters.cursor_places import NAME
from crystal_nb.adapters.cursor_rules import CursorRules
from crystal_nb.adapters.cursor_snapshot import ask
from crystal_nb.adapters.cursor_values import json_of, list_of, members, raw_of, string, time_of
from crystal_nb.adapters.typed import NotAnObject
from crystal_nb.adapters.vscode import item
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate

__all__ = ["read_tab", "tab_id", "tab_times", "tabs_in"]

_KEY = "workbench.panel.aichat.view.aichat.chatdata"


def tabs_in(connection: vscdb.Connection) -> list[Any]:
    """The tabs of a window's database, whatever they are.

    Raises
    ------
    ValueError
        If the list is no JSON.
    """
    row = item(connection, _KEY)
    if row is None or row[1] is None:
        return []
    try:
        return list_of(members(json_of(raw_of(row[1]))).get("tabs"))
    except ValueError:
        raise ValueError(f"ItemTable/{_KEY} is no JSON") from None


def tab_id(tab: Any, number: int) -> str:
    """Id of a tab, or its position.

    >>> tab_id({"tabId": "t"}, 0), tab_id({}, 1)
    ('t', 'tab-2')
    """
    return string(members(tab).get("tabId")) or f"tab-{number + 1}"


def tab_times(tab: Any) -> tuple[Any, Any]:
    """When a tab was made and last used."""
    values = members(tab)
    return time_of(values.get("timestamp")), time_of(values.get("lastSendTime"), values.get("timestamp"))


def read_tab(candidate: Candidate, wanted: str, links: tuple[Link, ...], rules: CursorRules, config: Config) -> Parsed:
    """Parse one tab; raises as `vscdb.read`, and `ParseError` where it is gone."""
    tabs = ask(candidate.file_path, tabs_in, config, logs=rules.read_log)
    at = next((i for i, tab in enumerate(tabs) if tab_id(tab, i) == wanted), None)
    if at is None:
        raise ParseError("the chat tab is gone", source=NAME, path=candidate.file_path, row=f"ItemTable/{_KEY}")
    tab, key = members(tabs[at]), f"ItemTable/{_KEY}#/tabs/{at}"
    draft = CarefulDraft()
    draft.note("metadata", "tab", Place(key))
    for number, value in enumerate(list_of(tab.get("bubbles"))):
        _add(draft, value, number, Place(f"{key}/bubbles/{number}"), rules)
    created, updated = tab_times(tab)
    return conversation(
        candidate,
        draft,
        project=candidate.project_dir,
        title=string(tab.get("chatTitle")) if rules.facts else None,
        links=links,
        created=created,
        updated=updated,
    )


def _add(draft: CarefulDraft, value: Any, number: int, place: Place, rules: CursorRules) -> None:
    bubble = BUBBLES.decode_value(value)
    if isinstance(bubble, NotAnObject):
        draft.note("dropped", "bubble", place, "not an object")
        return
    raw, text = bubble.raw_text, bubble.text
    if bubble.type != "user" and string(raw):
        bubble.text, bubble.raw_text = raw, text  # an answer's ``rawText`` goes before its ``text``
    id = string(bubble.id, bubble.bubble_id) or f"bubble-{number + 1}"
    add_bubble(draft, bubble, id, place, rules, time_of(bubble.timestamp, bubble.created_at), [])
