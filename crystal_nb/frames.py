"""Records as polars frames: one table per kind of row, a description per column.

The only place that builds frames, and the only one that imports polars at the top, so that the rest
of the package starts without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import polars as pl
from msgspec import UNSET

from crystal_nb import ecma
from crystal_nb.errors import ConfigError

__all__ = [
    "ABLATIONS",
    "CANDIDATES",
    "CONVERSATIONS",
    "DETAILS",
    "FAILURES",
    "FATES",
    "MESSAGES",
    "SOURCES",
    "Column",
    "Table",
    "columns_frame",
    "describe",
    "list_series",
    "repeat_index",
    "running_index",
    "text_series",
    "to_frame",
]

TIME = pl.Datetime("ms", "UTC")
_STATUS = pl.Enum(["kept", "merged", "metadata", "dropped"])
_OUTCOME = pl.Enum(["found", "absent", "failed"])


class Column(NamedTuple):
    """One column: its type and what stands in it."""

    dtype: pl.DataType | type[pl.DataType]
    description: str


Table = Mapping[str, Column]

SOURCES: Table = {
    "source": Column(pl.String, "Adapter name."),
    "display_name": Column(pl.String, "Name for people."),
    "status": Column(_OUTCOME, "found, absent (the tool's rule finds nothing) or failed."),
    "conversations": Column(pl.Int64, "Conversations as the tool's detect rule counts them."),
    "folder": Column(pl.String, "Folder that is looked into."),
    "parser_version": Column(pl.String, "Rules in force."),
    "error": Column(pl.String, "Why detect failed."),
    "note": Column(pl.String, "Anything else, such as a folder that is there while nothing is found."),
}
CANDIDATES: Table = {
    "source": Column(pl.String, "Adapter name."),
    "id": Column(pl.String, "Id that the scan rule gives; null where the tool's list has none."),
    "project_dir": Column(pl.String, "Project as the scan knows it."),
    "file_size": Column(pl.Int64, "Bytes of the file or database that holds it."),
    "file_mtime": Column(TIME, "Time for the change check; null outside years 1 to 9999."),
    "file_mtime_text": Column(pl.String, "The same exactly as the change check compares it."),
    "file_path": Column(pl.String, "File or database that holds it."),
    "parser_version": Column(pl.String, "Rules that listed it and will parse it."),
}
CONVERSATIONS: Table = {
    "conversation_index": Column(pl.UInt32, "Row in this frame; the exact key for joins with messages and fates."),
    "source": Column(pl.String, "Adapter name."),
    "id": Column(pl.String, "Id found inside the conversation."),
    "conversation_id": Column(pl.String, "The id with its source before it; not always unique."),
    "candidate_id": Column(pl.String, "Id that the scan gave."),
    "slug": Column(pl.String, "Title, where the rules know one."),
    "project_name": Column(pl.String, "Short name of the project."),
    "project_dir": Column(pl.String, "Project folder."),
    "cwd": Column(pl.String, "Working directory."),
    "git_branch": Column(pl.String, "Branch."),
    "message_count": Column(pl.UInt32, "Messages; an import skips conversations with fewer than 2."),
    "first_message_at": Column(TIME, "Time of the first message; null where the raw record has none."),
    "last_message_at": Column(TIME, "Time of the last message; null where the raw record has none."),
    "content_hash": Column(pl.String, "SHA-256 of the hashed fields, 64 hex digits."),
    "parent_conversation_id": Column(pl.String, "Namespaced id of the conversation it is part of; careful rules only."),
    "links": Column(pl.List(pl.String), "Edges to other conversations with their evidence; careful rules only."),
    "parser_version": Column(pl.String, "Rules that parsed it."),
    "records": Column(pl.UInt32, "Raw records read; each has one fate."),
    "kept": Column(pl.UInt32, "Raw records that became a message."),
    "merged": Column(pl.UInt32, "Raw records that went into a message of another record."),
    "metadata": Column(pl.UInt32, "Raw records that fed the conversation's own fields."),
    "dropped": Column(pl.UInt32, "Raw records that are lost."),
    "lossy": Column(pl.Boolean, "Whether a text here shows U+FFFD for what UTF-8 can't hold."),
    "file_path": Column(pl.String, "File or database that holds it."),
}
_PLACE: Table = {
    "source": Column(pl.String, "Adapter name."),
    "conversation_id": Column(pl.String, "Namespaced id of the conversation."),
    "conversation_index": Column(pl.UInt32, "Row in the conversations frame; the exact key for joins."),
}
DETAILS: Table = {
    "tool_name": Column(pl.List(pl.String), "Tools that the message called; careful rules only, as all up to marks."),
    "tool_input": Column(pl.List(pl.String), "Arguments of each call, JSON text where they are JSON."),
    "tool_result": Column(pl.List(pl.String), "Answer to each call; null where none is known."),
    "model": Column(pl.String, "Model that answered."),
    "input_tokens": Column(pl.Int64, "Tokens of the input, as the record counts them."),
    "output_tokens": Column(pl.Int64, "Tokens of the output."),
    "cache_tokens": Column(pl.Int64, "Tokens read from the cache."),
    "is_sidechain": Column(pl.Boolean, "Whether it belongs to a side conversation."),
    "parent_conversation_id": Column(pl.String, "Namespaced id of the conversation that its own is a part of."),
    "request_id": Column(pl.String, "Request that it answers."),
    "marks": Column(pl.List(pl.String), "What else is to be known, such as compact summary or an image's kind."),
}
"""Columns of messages that the pinned rules leave null."""
MESSAGES: Table = {
    **_PLACE,
    "index": Column(pl.UInt32, "Position in the conversation."),
    "type": Column(pl.String, "user, assistant or system."),
    "role": Column(pl.String, "Role as the raw record says it."),
    "content": Column(pl.String, "Text after the parser's cleaning."),
    "has_tool_use": Column(pl.Boolean, "Whether a tool call belongs to it."),
    "has_code": Column(pl.Boolean, "Whether the parser saw a code fence."),
    "thinking": Column(pl.String, "Reasoning text."),
    "id": Column(pl.String, "Message id, raw; not unique."),
    "parent_uuid": Column(pl.String, "Id of the message before, where the tool says it."),
    "timestamp": Column(TIME, "Time; null where the raw record has none or no valid one."),
    **DETAILS,
    "lossy": Column(pl.Boolean, "Whether a text here shows U+FFFD for what UTF-8 can't hold."),
}
FATES: Table = {
    **_PLACE,
    "record": Column(pl.UInt32, "Position of the raw record in reading order."),
    "status": Column(_STATUS, "What became of it."),
    "kind": Column(pl.String, "Kind of the record as the tool names it."),
    "reason": Column(pl.String, "Why it was dropped, or how merged."),
    "message_index": Column(pl.UInt32, "Message that it became or went into."),
    "line": Column(pl.Int64, "1-based line of a text file."),
    "offset": Column(pl.Int64, "Byte offset in the file."),
    "size": Column(pl.Int64, "Bytes of the record."),
    "key": Column(pl.String, "Place in a database or document."),
    "excerpt": Column(pl.String, "Start of a dropped record, escaped."),
    "note": Column(pl.String, "Anything else worth knowing."),
}
FAILURES: Table = {
    "source": Column(pl.String, "Adapter name."),
    "id": Column(pl.String, "Id of the candidate."),
    "error": Column(pl.String, "Kind of error."),
    "message": Column(pl.String, "What went wrong and where."),
    "line": Column(pl.Int64, "1-based line, where there is one."),
    "offset": Column(pl.Int64, "Byte offset of that line."),
    "file_path": Column(pl.String, "File or database that failed."),
}
ABLATIONS: Table = {
    "field": Column(pl.String, "Field left out of the hash."),
    "groups": Column(pl.UInt32, "Groups of conversations that then share a hash although theirs differ."),
    "conversations": Column(pl.UInt32, "Conversations in those groups."),
    "example_a": Column(pl.String, "One conversation of such a group, namespaced."),
    "example_b": Column(pl.String, "Another one."),
}


_ALIKE = {
    "frames": ("sources", "candidates", "conversations", "messages", "fates", "failures", "details", "ablations"),
    "losses": ("losses", "books"),
    "decision_frames": ("decisions", "changes", "stolen"),
    "store_frames": (
        "stored_conversations",
        "stored_messages",
        "folded_texts",
        "notes",
        "import_log",
        "clean_up_tasks",
    ),
    "audit.tables": (
        *("findings", "skips", "waste", "ids", "power", "integrity", "causes", "moves"),
        *("kinds_read", "mix", "costs", "coverage"),
    ),
    "contract.frames": ("contract",),
}
_NAMES = {name: f"{module}:{name.upper()}" for module, names in _ALIKE.items() for name in names} | {
    "plan": "decision_frames:DECISIONS",
    "policies": "decision_frames:POLICY_SCORES",
    "comparison": "comparison_frames:COMPARISONS",
    "scenarios": "scenario_frames:SCENARIO_ROWS",
    "remote": "remote_frames:REMOTE_ITEMS",
    "trial": "trial_frames:TRIAL_RECORDS",
}
"""Where each frame's table is; by name, as most modules stand above this one, and only one is wanted."""


def describe(table: Table | str) -> pl.DataFrame:
    """The columns of a table, or of the frame of that name: name, type and meaning.

    Names are those of the functions and attributes that give a frame, such as ``messages``, ``books``,
    ``plan``, ``findings`` or one of an audit's tables; a store's messages are ``stored_messages``.

    Raises
    ------
    ConfigError
        If there is no frame of that name; it lists the names.

    >>> describe("candidates").shape
    (8, 3)
    >>> describe("books").row(5)[2]
    'Bytes of records that became messages.'
    """
    columns = _table(table) if isinstance(table, str) else table
    rows = [(name, str(column.dtype), column.description) for name, column in columns.items()]
    return pl.DataFrame(rows, schema=["column", "dtype", "description"], orient="row")


def _table(name: str) -> Table:
    if name not in _NAMES:
        raise ConfigError(f"no frame named {name!r}; known: {', '.join(_NAMES)}")
    module, table = _NAMES[name].split(":")
    found: Table = getattr(import_module(f"crystal_nb.{module}"), table)
    return found


def to_frame(table: Table, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Build a frame from rows; missing keys are null, texts become what UTF-8 can hold.

    >>> to_frame(ABLATIONS, [{"field": "role", "groups": 1}]).row(0)
    ('role', 1, None, None, None)
    """
    rows = list(rows)
    return columns_frame(table, {name: [row.get(name) for row in rows] for name in table})


def columns_frame(table: Table, columns: Mapping[str, Sequence[Any] | pl.Series]) -> pl.DataFrame:
    """Build a frame from columns; in a ``lossy`` column texts that had to be changed are marked."""
    changed: set[int] = set()
    built = [_series(name, column.dtype, columns[name], changed) for name, column in table.items() if name != "lossy"]
    frame = pl.DataFrame(built)
    if "lossy" in table:
        lossy = pl.Series("lossy", [False] * len(frame), dtype=pl.Boolean)
        if changed:
            lossy = lossy.scatter(sorted(changed), True)
        frame = frame.with_columns(lossy).select(list(table))
    return frame


def _series(name: str, dtype: Any, values: Sequence[Any] | pl.Series, changed: set[int]) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    if dtype == TIME:
        return _times(name, values)
    if dtype == pl.String:
        return text_series(name, values, changed)
    return pl.Series(name, values, dtype=dtype)


_PLAIN = frozenset({str, type(None)})


def text_series(name: str, values: Sequence[Any], changed: set[int] | None = None) -> pl.Series:
    """Texts, whatever the values are; rows that UTF-8 can't hold get U+FFFD and are noted in ``changed``."""
    if not set(map(type, values)) <= _PLAIN:  # polars would go through a deep value for ever
        values = [None if v is None or v is UNSET else ecma.to_text(v) for v in values]
    try:
        return pl.Series(name, values, dtype=pl.String)
    except UnicodeEncodeError:
        if changed is not None:
            changed.update(i for i, t in enumerate(values) if t is not None and not ecma.well_formed(t))
        return pl.Series(name, [t if t is None else ecma.to_utf8_safe(t) for t in values], dtype=pl.String)


_PLAIN_TIME = (
    "^(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}Z$"
)
"""Times that polars and JavaScript read alike; nearly all are, and a column of them is parsed at once."""
_PLAIN_FORMAT = "%Y-%m-%dT%H:%M:%S.%3fZ"  # with "%.3f" polars takes six times as long
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


def _times(name: str, values: Sequence[Any]) -> pl.Series:
    """Times of raw values, null where one is missing, invalid or outside years 1 to 9999."""
    texts = text_series(name, [v if type(v) is str else None for v in values])
    plain = texts.set(~texts.str.contains(_PLAIN_TIME), None)
    times = plain.str.to_datetime(_PLAIN_FORMAT, time_unit="ms", time_zone="UTC", cache=False)
    odd = [i for i in times.is_null().arg_true() if values[i] is not None]
    if odd:
        times = times.scatter(odd, pl.Series([_time_ms(values[i]) for i in odd], dtype=pl.Int64).cast(TIME))
    return times


def _time_ms(value: Any) -> int | None:
    ms = ecma.date_ms(value)
    return ms if ms is not None and _FIRST_MS <= ms <= _LAST_MS else None


def repeat_index(counts: Sequence[int]) -> pl.Series:
    """Positions, each repeated as often as its count says.

    >>> repeat_index([2, 0, 1]).to_list()
    [0, 0, 2]
    """
    positions = pl.Series(range(len(counts)), dtype=pl.UInt32)
    index = pl.select(positions.repeat_by(pl.Series(counts, dtype=pl.UInt32)).explode()).to_series()
    return index.drop_nulls()


def list_series(name: str, texts: Sequence[Any], counts: Sequence[int]) -> pl.Series:
    """Lists of texts from all texts in a row and how many belong to each list; null where none does.

    >>> list_series("x", ["a", "b", "c"], [2, 0, 1]).to_list()
    [['a', 'b'], None, ['c']]
    """
    flat = pl.DataFrame({"row": repeat_index(counts), name: text_series(name, texts)})
    lists = flat.group_by("row", maintain_order=True).agg(name)
    rows = pl.DataFrame({"row": pl.Series(range(len(counts)), dtype=pl.UInt32)})
    return rows.join(lists, on="row", how="left", maintain_order="left").get_column(name)


def running_index(counts: Sequence[int]) -> pl.Series:
    """0, 1, 2 … anew for each count.

    >>> running_index([2, 0, 1]).to_list()
    [0, 1, 0]
    """
    ranges = pl.int_ranges(pl.Series(counts, dtype=pl.UInt32), dtype=pl.UInt32)
    return pl.select(ranges.explode()).to_series().drop_nulls()
