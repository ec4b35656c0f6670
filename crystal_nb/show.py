"""What the command prints: rich tables on a terminal, tab-separated lines when piped, or JSON.

Every text from a history is escaped, so no terminal obeys it and no markup is read in it. Columns
are named as in the frames and are the same whatever the data.
"""

from __future__ import annotations

import json as json_module
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.ecma import to_text, to_utf8_safe
from crystal_nb.records import printable
from crystal_nb.report import ImportReport, Outcome

__all__ = [
    "CANDIDATE_COLUMNS",
    "DECISION_COLUMNS",
    "REMOTE_COLUMNS",
    "SCENARIO_COLUMNS",
    "SOURCE_COLUMNS",
    "imported",
    "note",
    "parsed",
    "rows",
]

SOURCE_COLUMNS = ("source", "display_name", "status", "conversations", "folder", "parser_version", "error", "note")
CANDIDATE_COLUMNS = ("source", "id", "project_dir", "file_size", "file_mtime", "file_path")
_ON_TERMINAL = {
    "Plan": ("source", "candidate_id", "action", "reason"),
    "Scenarios": ("scenario", "policy", "step", "ok"),
    "Items": ("index", "source", "status", "rule", "error"),
    "Candidates": ("source", "id", "file_size", "file_mtime", "project_dir"),
    "Sources": ("source", "status", "conversations", "folder", "note"),
    "Findings": ("severity", "kind", "source", "conversation_id", "detail"),
}
"""What a terminal has room for; a pipe and JSON have all columns."""
DECISION_COLUMNS = ("source", "candidate_id", "action", "reason", "path", "message_count", "content_hash", "file_path")
SCENARIO_COLUMNS = ("scenario", "policy", "source", "step", "ok", "expected", "observed", "why")
REMOTE_COLUMNS = ("index", "source", "source_conversation_id", "message_count", "status", "rule", "path", "error")
_CONVERSATION_COLUMNS = (
    "source",
    "id",
    "candidate_id",
    "slug",
    "project_name",
    "message_count",
    "records",
    "dropped",
    "content_hash",
    "parser_version",
)
_TERMINAL_COLUMNS = ("source", "id", "project_name", "slug", "message_count", "dropped", "content_hash")
_ROWS_SHOWN = 20
_REST = "--json lists them"
_SHORT = {"id": 11, "candidate_id": 11, "conversation_id": 11, "content_hash": 8}
_LABELS = {
    "project_name": "project",
    "slug": "title",
    "message_count": "messages",
    "content_hash": "hash",
    "conversation_id": "conversation",
}
_WHOLE = ("source", "action", "policy", "ok", "status", "rule", "severity")
_FOLDED = ("step", "reason", "message", "error", "note", "folder", "file_path", "project_dir", "kind", "detail")
_AT_LEAST = {"Findings": {"kind": 12, "detail": 13}}
"""Width of folded columns that would else shrink to nothing."""


def note(*lines: str) -> None:
    """Say something beside the output; a line break inside a line is escaped."""
    _print(*map(printable, lines), file=sys.stderr)


def _print(*lines: str, file: TextIO | None = None) -> None:
    """Print lines; what the stream's encoding lacks is escaped."""
    stream = file or sys.stdout
    encoding = stream.encoding or "utf-8"
    for line in lines:
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def rows(title: str, table: Sequence[Mapping[str, Any]], columns: Sequence[str], *, json: bool = False) -> None:
    """Print a list of rows with the given columns."""
    if json:
        _print_json([{name: _plain(row.get(name)) for name in columns} for row in table])
    elif sys.stdout.isatty():
        _rich_table(title, table, _ON_TERMINAL.get(title, columns))
    else:
        _tab_separated(table, columns)


def parsed(found: Corpus, *, json: bool = False, samples: bool = False) -> None:
    """Print what a parse read: per conversation, per source, and what was lost."""
    table = [_conversation_row(p) for p in found.parsed]
    if json:
        _print_json(_document(found, table, samples))
    elif sys.stdout.isatty():
        _corpus_tables(found, table)
    else:
        _tab_separated(table, _CONVERSATION_COLUMNS)
        note(*_told(found))


def imported(
    found: Corpus, report: ImportReport, *, json: bool = False, samples: bool = False, store: str | None = None
) -> None:
    """Print what an import parsed and decided."""
    table = [_conversation_row(p) for p in found.parsed]
    if json:
        _print_json({**_document(found, table, samples), **_decided(report), "store": store, "policy": report.policy})
    elif sys.stdout.isatty():
        _corpus_tables(found, table)
        _print(*report.told(_REST).split("\n"))
    else:
        _tab_separated(table, _CONVERSATION_COLUMNS)
        note(*_told(found), *report.told(_REST).split("\n"))


def _told(found: Corpus) -> list[str]:
    if not (found.parsed or found.failed):
        return ["Nothing was parsed"]
    return found.told(_REST, _REST).split("\n")


def _decided(report: ImportReport) -> dict[str, Any]:
    ids = ("imported_ids", "replaced_ids", "skipped_ids", "error_ids", "summarisation_candidates")
    return {
        "counts": {name: getattr(report, name) for name in ("total", "imported", "replaced", "skipped", "errors")},
        **{name: [to_utf8_safe(id) for id in getattr(report, name)] for name in ids},
        "decisions": [_decision_row(o) for o in report.outcomes],
    }


def _decision_row(outcome: Outcome) -> dict[str, Any]:
    d = outcome.decision
    return {"source": d.source, "candidate_id": d.candidate_id, "action": d.action, "reason": d.reason, "path": d.path}


def _corpus_tables(found: Corpus, table: list[dict[str, Any]]) -> None:
    _rich_table("Conversations", table, _TERMINAL_COLUMNS)
    summary = found.summary()
    _rich_table("What was read", summary, list(summary[0]) if summary else ())
    _rich_table("What was lost", _loss_rows(found), ("source", "kind", "reason", "dropped"))
    _rich_table("What failed", [_failure_row(f) for f in found.failed], ("source", "id", "message"))
    _print(found.headline())


def _document(found: Corpus, table: list[dict[str, Any]], samples: bool) -> dict[str, Any]:
    return {
        "samples": samples,
        "conversations": table,
        "sources": found.summary(),
        "losses": _loss_rows(found),
        "failures": [_failure_row(f) for f in found.failed],
    }


def _conversation_row(p: ParsedConversation) -> dict[str, Any]:
    c = p.conversation
    return {
        "source": c.source,
        "id": _text(c.id),
        "candidate_id": _text(p.candidate.id),
        "slug": _text(c.slug),
        "project_name": c.project_name,
        "message_count": len(c.messages),
        "records": len(p.fates),
        "dropped": sum(f.status == "dropped" for f in p.fates),
        "content_hash": p.content_hash,
        "parser_version": p.parser_version,
    }


def _text(value: Any) -> str | None:
    return None if value is None else to_utf8_safe(to_text(value))


def _loss_rows(found: Corpus) -> list[dict[str, Any]]:
    return [{"source": s, "kind": k, "reason": r, "dropped": n} for s, k, r, n in found.loss_reasons()]


def _failure_row(failure: Failure) -> dict[str, Any]:
    return {
        "source": failure.candidate.source,
        "id": _text(failure.candidate.id),
        "error": failure.error,
        "message": failure.message,
        "line": failure.line,
        "offset": failure.offset,
        "file_path": failure.candidate.file_path,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else _text(value)


def _print_json(value: Any) -> None:
    text = json_module.dumps(value, ensure_ascii=False, indent=2)
    _print(*(_UNPRINTABLE.sub(_escaped, line) for line in text.split("\n")))


_UNPRINTABLE = re.compile("[^ -~]")


def _escaped(match: re.Match[str]) -> str:
    """A character as it is if it can be seen, else as JSON's escape of it."""
    return match[0] if match[0].isprintable() else json_module.dumps(match[0])[1:-1]


def _tab_separated(table: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    _print("\t".join(columns))
    for row in table:
        _print("\t".join(_cell(row.get(name)) for name in columns))


def _cell(value: Any) -> str:
    return "" if value is None else printable(to_text(value))


def _rich_table(title: str, table: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not table:
        return
    grid = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for name in columns:
        label, number = _LABELS.get(name, name), type(table[0].get(name)) is int
        if name in _FOLDED:
            grid.add_column(label, overflow="fold", min_width=_AT_LEAST.get(title, {}).get(name))
        else:
            longest = max(len(_cell(row.get(name))) for row in table[:_ROWS_SHOWN]) if name in _WHOLE else 0
            room = max(len(label) if number else _SHORT.get(name, -1) + 1, longest)
            grid.add_column(label, justify="right" if number else "left", no_wrap=True, min_width=room)
    for row in table[:_ROWS_SHOWN]:
        grid.add_row(*(Text(_short(name, row.get(name))) for name in columns))
    console.print(grid)
    if len(table) > _ROWS_SHOWN:
        console.print(f"… and {len(table) - _ROWS_SHOWN:,} more; pipe the output or use --json to see all", style="dim")


def _short(name: str, value: Any) -> str:
    """A cell as a terminal has room for: ids keep their end, which tells them apart, hashes their start."""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, int):
        return f"{value:,}"
    text, room = _cell(value), _SHORT.get(name, 0)
    if not room or len(text) <= room:
        return text
    return f"{text[:room]}…" if name == "content_hash" else f"…{text[-room:]}"
