"""Parsing one conversation of Cursor's global database by careful rules.

Source: ``formats/cursor.md`` sections 2.2, 2.3, 2.5 and 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.cursor_bubble import BUBBLES, Bubble, add_bubble, bubble_time
from crystal_nb.adapters.cursor_draft import CarefulDraft, Place, conversation
from crystal_nb.adapters.cursor_overview import Composer, Overview, key_ranges
from crystal_nb.adapters.cursor_places import readable_uri, workspace_place
from crystal_nb.adapters.cursor_rules import CursorRules
from crystal_nb.adapters.cursor_snapshot import ask
from crystal_nb.adapters.cursor_values import dicts, json_of, list_of, members, raw_of, string
from crystal_nb.adapters.typed import NotAnObject
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.records import Candidate

__all__ = ["links_of", "read_composer"]

_COPY = "copy of the bubble's row"
_BODIES = ("composerData", "bubbleId")
_CONTEXT = "messageRequestContext"
_EDITOR_STATE = frozenset(
    ("checkpointId", "codeBlockDiff", "codeBlockPartialInlineDiffFates", "agentKv", "inlineDiff", "ofsContent")
)


class _Row(NamedTuple):
    key: str
    type: str
    data: bytes


class _Body(Struct):
    """A bubble, wherever it stands."""

    id: str
    place: Place
    bubble: Bubble | None
    why: str = ""
    time: Any = None
    is_row: bool = False


class _Rows(NamedTuple):
    composer: _Row | None
    bubbles: list[_Row]
    root: str | None
    """First project root that a request's context names, if it was asked for."""
    others: list[tuple[str, str]]


def read_composer(candidate: Candidate, known: Overview, rules: CursorRules, config: Config) -> Parsed:
    """Parse one conversation; raises as `vscdb.read`."""
    id = str(candidate.id)
    wants_root = rules.readable_projects and not candidate.project_dir
    rows = ask(candidate.file_path, lambda c: _load(c, id, known.families, wants_root), config, logs=rules.read_log)
    composer = known.composers.get(id, Composer())
    draft = CarefulDraft(is_sidechain=True if composer.parent is not None or composer.is_subagent else None)
    row = _note_composer(draft, rows.composer)
    bodies = [_row_body(r) for r in rows.bubbles]
    inline = _inline_bodies(row, f"cursorDiskKV/composerData:{id}") if rules.inline_bodies else []
    _add_bodies(draft, id, row, bodies, inline, rules)
    _note_others(draft, rows, row.get("_v"))
    return conversation(
        candidate,
        draft,
        project=candidate.project_dir or (_project(row, bodies + inline, rows) if rules.readable_projects else ""),
        title=string(row.get("name"), composer.title) if rules.facts else None,
        links=links_of(composer) if rules.subagents else (),
        created=composer.created,
        updated=composer.updated,
    )


def links_of(composer: Composer) -> tuple[Link, ...]:
    """Edge from a sub-agent's conversation to its parent."""
    if composer.parent is not None:
        return (Link("subagent-of", composer.parent, composer.evidence),)
    if composer.is_subagent:
        return (Link("subagent-of", None, "composerHeaders.isSubagent", is_certain=False),)
    return ()


def _load(connection: vscdb.Connection, id: str, families: tuple[str, ...], wants_root: bool) -> _Rows:
    """All rows of one conversation, by the key's index."""
    if not families:
        return _Rows(None, [], None, [])
    one = "SELECT rowid, key, typeof(value), value FROM cursorDiskKV WHERE key = ?"
    some = "SELECT rowid, key, typeof(value), value FROM cursorDiskKV WHERE key >= ? AND key < ?"
    keys = "SELECT key FROM cursorDiskKV WHERE key = ? OR (key >= ? AND key < ?) ORDER BY key"
    composer = _rows(connection, one, (f"composerData:{id}",))
    bubbles = _rows(connection, some, key_ranges(f"bubbleId:{id}:"))
    root = _root(connection, id) if wants_root else None
    others = []
    for family in (f for f in families if f not in _BODIES):
        for prefix in (
            family,
            *(f"{family}:{part}" for part in ("checkpoint", "bubbleCheckpoint") if family == "agentKv"),
        ):
            found = connection.execute(keys, (f"{prefix}:{id}", *key_ranges(f"{prefix}:{id}:")))
            others += [(family, key.decode("utf-8", "replace")) for (key,) in found]
    return _Rows(composer[0] if composer else None, bubbles, root, others)


def _rows(connection: vscdb.Connection, query: str, values: tuple[str, ...]) -> list[_Row]:
    """Rows in row order, sorted here lest SQLite scans the table for it."""
    found = sorted(connection.execute(query, values).fetchall(), key=lambda row: int(row[0]))
    return [_Row(key.decode("utf-8", "replace"), type.decode(), raw_of(value)) for _, key, type, value in found]


def _root(connection: vscdb.Connection, id: str) -> str | None:
    """First root that a context names; contexts are large, so none is read beyond it."""
    query = "SELECT value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key"
    values = connection.execute(query, key_ranges(f"{_CONTEXT}:{id}:"))
    return next(filter(None, (_root_path(raw_of(value)) for (value,) in values)), None)


def _place(row: _Row) -> Place:
    return Place(key=f"cursorDiskKV/{row.key}", size=len(row.data), head=row.data)


def _note_composer(draft: CarefulDraft, row: _Row | None) -> dict[str, Any]:
    """Fate of the conversation's own row, and what it holds."""
    if row is None:
        return {}
    place = _place(row)
    if not row.data:
        draft.note("dropped", "composerData", place, "NULL value")
        return {}
    try:
        value = json_of(row.data)
    except ValueError:
        draft.note("dropped", "composerData", place, "not JSON")
        return {}
    if not isinstance(value, dict):
        draft.note("dropped", "composerData", place, "not an object")
        return {}
    draft.note("metadata", "composerData", place)
    if unsent := string(value.get("text")):
        key = f"{place.key}#/text"
        draft.note("dropped", "draft", Place(key, head=unsent[:200].encode("utf-8", "replace")), "unsent draft")
    return value


def _row_body(row: _Row) -> _Body:
    id = row.key.split(":", 2)[2]
    if not row.data:
        return _Body(id, _place(row), None, "NULL value", is_row=True)
    bubble, why = _decode(row.data)
    return _Body(id, _place(row), bubble, why, is_row=True)


def _decode(data: bytes) -> tuple[Bubble | None, str]:
    try:
        bubble = BUBBLES.decode(data)
    except ValueError:
        try:
            bubble = BUBBLES.decode_value(json_of(data))
        except ValueError:
            return None, "not JSON"
    return (None, "not an object") if isinstance(bubble, NotAnObject) else (bubble, "")


def _inline_bodies(row: dict[str, Any], key: str) -> list[_Body]:
    """Bubbles of the old generations, in their order."""
    found = [(f"conversation/{i}", value) for i, value in enumerate(list_of(row.get("conversation")))]
    found += [(f"conversationMap/{_pointer(k)}", v) for k, v in members(row.get("conversationMap")).items()]
    for t, tab in enumerate(list_of(row.get("tabs"))):
        bubbles = list_of(members(tab).get("bubbles"))
        found += [(f"tabs/{t}/bubbles/{b}", value) for b, value in enumerate(bubbles)]
    return [_inline_body(pointer, value, f"{key}#/{pointer}") for pointer, value in found]


def _pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _inline_body(pointer: str, value: Any, key: str) -> _Body:
    bubble = BUBBLES.decode_value(value)
    if isinstance(bubble, NotAnObject):
        return _Body(pointer, Place(key), None, "not an object")
    named = pointer.partition("/")[2] if pointer.startswith("conversationMap/") else None
    return _Body(string(bubble.bubble_id, bubble.id, named) or pointer.replace("/", "-"), Place(key), bubble)


def _add_bodies(
    draft: CarefulDraft, owner: str, row: dict[str, Any], rows: list[_Body], inline: list[_Body], rules: CursorRules
) -> None:
    """Bubbles in the order of the header list; without one, inline ones as they stand, then rows by time."""
    with_row = {body.id for body in rows if body.bubble is not None}
    bodies = [body for body in inline if body.id not in with_row] + rows
    headers = list_of(row.get("fullConversationHeadersOnly")) if rules.header_order else []
    by_id = _by_id(bodies)
    live, times = _live(draft, headers, by_id, f"cursorDiskKV/composerData:{owner}")
    rest = [body for body in bodies if id(body) not in live]
    for body in bodies:
        if body.bubble is not None:
            body.time = bubble_time(body.bubble, rules, times.get(id(body)))
    for body in live.values():
        _add(draft, body, rules, [])
    mark = ["reverted"] if live else []
    inline_rest, row_rest = ([b for b in rest if b.is_row is wanted] for wanted in (False, True))
    for body in inline_rest + _by_time(row_rest):
        _add(draft, body, rules, mark)
    draft.flush()
    _note_copies(draft, [body for body in inline if body.id in with_row], rows)


def _note_copies(draft: CarefulDraft, copies: list[_Body], rows: list[_Body]) -> None:
    """Fate of inline bubbles that have a row too: they go where the row went."""
    keys = {body.id: body.place.key for body in rows}
    indexes = {fate.key: fate.message_index for fate in draft.fates}
    for body in copies:
        index = indexes.get(keys[body.id])
        draft.note("dropped" if index is None else "merged", "bubble", body.place, _COPY, message_index=index)


def _by_id(bodies: list[_Body]) -> dict[str, _Body]:
    """By the key's id, else by the id inside."""
    inside = {
        body.bubble.bubble_id: body
        for body in reversed(bodies)
        if body.bubble and isinstance(body.bubble.bubble_id, str)
    }
    return {**inside, **{body.id: body for body in reversed(bodies)}}


def _live(
    draft: CarefulDraft, headers: list[Any], by_id: dict[str, _Body], key: str
) -> tuple[dict[int, _Body], dict[int, Any]]:
    """Bubbles that the headers name, in their order, and the headers' times."""
    live: dict[int, _Body] = {}
    times: dict[int, Any] = {}
    for number, value in enumerate(headers):
        header = members(value)
        body = by_id.get(header["bubbleId"]) if isinstance(header.get("bubbleId"), str) else None
        if body is None:
            place = Place(f"{key}#/fullConversationHeadersOnly/{number}")
            draft.note("dropped", "header", place, "no bubble has this id")
        elif id(body) not in live:
            live[id(body)] = body
            times[id(body)] = header.get("createdAt")
    return live, times


def _by_time(bodies: list[_Body]) -> list[_Body]:
    """By time; what has none stays behind the row before it, or before the first."""
    keys, last = [], float("-inf")
    for body in bodies:
        ms = None if body.time is None else ecma.date_ms(body.time)
        last = last if ms is None else ms
        keys.append(last)
    return [bodies[at] for at in sorted(range(len(bodies)), key=keys.__getitem__)]


def _add(draft: CarefulDraft, body: _Body, rules: CursorRules, marks: list[str]) -> None:
    if body.bubble is None:
        draft.note("dropped", "bubble", body.place, body.why)
    else:
        add_bubble(draft, body.bubble, string(body.bubble.bubble_id) or body.id, body.place, rules, body.time, marks)


def _note_others(draft: CarefulDraft, rows: _Rows, version: Any) -> None:
    draft.flush()
    for family, key in rows.others:
        if family == _CONTEXT:
            draft.note("metadata", family, Place(f"cursorDiskKV/{key}"))
            continue
        known = family in _EDITOR_STATE
        why = "editor state, not read" if known else f"unknown kind (composer version {version or 'unknown'})"
        draft.note("dropped", family, Place(f"cursorDiskKV/{key}"), why)


def _project(row: dict[str, Any], bodies: list[_Body], rows: _Rows) -> str:
    """Project by what the conversation itself says."""
    if own := workspace_place(row.get("workspaceIdentifier")):
        return own
    if rows.root:
        return rows.root
    for bubble in (body.bubble for body in bodies if body.bubble is not None):
        uris = [uri for uri in list_of(bubble.workspace_uris) if string(uri)]
        if place := string(bubble.workspace_project_dir, *uris):
            return readable_uri(place)
    return ""


def _root_path(data: bytes) -> str | None:
    """First ``rootPath`` of a request's project layouts, which are JSON in JSON."""
    try:
        layouts = list_of(members(json_of(data)).get("projectLayouts"))
    except ValueError:
        return None
    for layout in layouts:
        try:
            value = json_of(layout.encode("utf-8", "replace")) if isinstance(layout, str) else layout
        except ValueError:
            continue
        if path := string(*(d.get("rootPath") for d in dicts([value, members(value).get("listDirV2Result")]))):
            return readable_uri(path)
    return None
