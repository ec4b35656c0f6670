"""What the command prints: rich tables on a terminal, tab-separated lines when piped, or JSON.

Every text from a history is escaped, so no terminal obeys it and no markup is read in it.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from crystal_nb.corpus import Corpus, ParsedConversation
from crystal_nb.ecma import to_text, to_utf8_safe
from crystal_nb.records import Candidate, printable

__all__ = ["candidate_row", "corpus", "note", "progress", "rows"]

_ROWS_SHOWN = 20


def note(text: str) -> None:
    """Say something beside the output."""
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr)


def rows(title: str, table: Sequence[Mapping[str, Any]], *, json: bool = False) -> None:
    """Print a list of alike rows."""
    if json:
        _print_json(list(table))
    elif sys.stdout.isatty():
        _rich_table(title, table)
    else:
        _tab_separated(table)


def candidate_row(c: Candidate) -> dict[str, Any]:
    """A candidate as a row."""
    return {
        "source": c.source,
        "id": c.id,
        "project": c.project_dir,
        "bytes": c.file_size,
        "modified": c.file_mtime,
        "file": c.file_path,
    }


def corpus(found: Corpus, *, json: bool = False) -> None:
    """Print what an import read: per conversation, per source, and what was lost."""
    table = [_conversation_row(p) for p in found.parsed]
    if json:
        _print_json(_document(found, table))
    elif sys.stdout.isatty():
        _rich_table("Conversations", [_short(row) for row in table])
        _rich_table("What was read", found.summary())
        _rich_table("What was lost", _loss_rows(found))
        _rich_table("What failed", _failure_rows(found))
    else:
        _tab_separated(table)
        note(repr(found))


def _document(found: Corpus, table: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "conversations": table,
        "sources": found.summary(),
        "losses": _loss_rows(found),
        "failures": _failure_rows(found),
    }


def _conversation_row(p: ParsedConversation) -> dict[str, Any]:
    c = p.conversation
    return {
        "source": c.source,
        "id": c.id,
        "project": c.project_name,
        "title": c.slug,
        "messages": len(c.messages),
        "records": len(p.fates),
        "dropped": sum(f.status == "dropped" for f in p.fates),
        "content_hash": p.content_hash,
        "parser": p.parser_version,
    }


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "content_hash": row["content_hash"][:12] + "…"}


def _loss_rows(found: Corpus) -> list[dict[str, Any]]:
    return [{"source": s, "kind": k, "reason": r, "dropped": n} for s, k, r, n in found.loss_reasons()]


def _failure_rows(found: Corpus) -> list[dict[str, Any]]:
    return [{"source": f.candidate.source, "id": f.candidate.id, "failure": f.message} for f in found.failed]


def _print_json(value: Any) -> None:
    text = json_module.dumps(value, ensure_ascii=False, indent=2, default=to_text)
    print(to_utf8_safe(text))


def _tab_separated(table: Sequence[Mapping[str, Any]]) -> None:
    if table:
        print("\t".join(table[0]))
    for row in table:
        print("\t".join(map(_cell, row.values())))


def _cell(value: Any) -> str:
    return "" if value is None else printable(to_text(value))


def _rich_table(title: str, table: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not table:
        return
    grid = Table(title=title, title_justify="left", header_style="bold")
    for name, value in table[0].items():
        grid.add_column(name, justify="right" if isinstance(value, int) else "left", overflow="fold")
    for row in table[:_ROWS_SHOWN]:
        grid.add_row(*(Text(f"{v:,}" if isinstance(v, int) else _cell(v)) for v in row.values()))
    console.print(grid)
    if len(table) > _ROWS_SHOWN:
        console.print(f"… and {len(table) - _ROWS_SHOWN:,} more; pipe the output or use --json to see all", style="dim")


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields what to call at each step."""
    if not sys.stderr.isatty() or total == 0:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Parsing", total=total)
        yield lambda: bar.advance(task)
