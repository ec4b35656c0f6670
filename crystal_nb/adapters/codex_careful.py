"""Codex CLI by careful rules (``codex@2``): nothing that was said or done is lost without a word.

Source: ``formats/codex.md`` sections 4 and 5. Rollouts are those of ``sessions`` and
``archived_sessions``, compressed ones and the single documents of 2025 included. Messages stand in
the order of the file. Offsets and sizes of fates are positions in the file, of a ``.zst`` file in
its decompressed text. Records of an earlier rollout of the same thread have no offset but its name,
offset and size as their key, such as ``rollout-….jsonl@120+64``.

Candidate ids are thread ids: from a name of the usual form, else from the first line, else the name
itself. Of several rollouts of one thread the newest has that id, the others ``<thread>/<rollout>``.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, file_candidate, last_path_part, read_file
from crystal_nb.adapters.codex_files import Opened, Rollout, rollouts, sessions_root
from crystal_nb.adapters.codex_lineage import Part, border, chain, covered
from crystal_nb.adapters.codex_lines import read_bare
from crystal_nb.adapters.codex_names import thread_name
from crystal_nb.adapters.codex_pinned import ADAPTER, NAME
from crystal_nb.adapters.codex_reading import NO_OBJECT, Outcomes, fates_of, span_key
from crystal_nb.adapters.codex_rules import V2, CodexRules
from crystal_nb.adapters.codex_shapes import DOCUMENT, LINE, Bare, Document, Session, as_text
from crystal_nb.adapters.codex_thread import Thread
from crystal_nb.adapters.jsonl import read_blocks
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate

__all__ = ["CAREFUL"]


def _count(rules: CodexRules, root: Path, config: Config) -> int:
    return len(_found(rules, root, config))


def _candidates(rules: CodexRules, root: Path, config: Config) -> list[Candidate]:
    """Every rollout, empty ones too; a file whose stat fails is left out."""
    listed = []
    for one in _found(rules, root, config):
        try:
            listed.append(file_candidate(NAME, one.id, one.path, os.stat(one.path), ""))
        except OSError:
            continue
    return listed


def _found(rules: CodexRules, root: Path, config: Config) -> list[Rollout]:
    return rollouts(root, config, cold=rules.cold_files, revisions=rules.revisions) if root.exists() else []


def _read(candidate: Candidate, rules: CodexRules, config: Config) -> Parsed:
    thread = Thread(rules, candidate.file_path, f"{ecma.to_text(candidate.id)}:line-")
    fates: list[Fate] = []
    if candidate.file_path.endswith(".json"):
        _read_document(thread, fates)
    else:
        part, link = covered(candidate.file_path, candidate.id, config) if rules.revisions else (None, None)
        thread.links += [link] if link else []
        _read_lines(thread, fates, candidate.file_path, _beginning(thread, fates, config), part)
    _keep_reasoning(thread, fates)
    if fates and not thread.has_meta:
        fates[0] = replace(fates[0], note="no session_meta; the id is the file name's")
    return Parsed(_conversation(thread, candidate, config), tuple(fates))


def _conversation(thread: Thread, candidate: Candidate, config: Config) -> Conversation:
    own, listed = thread.id, candidate.id
    id = listed if own is None or (isinstance(listed, str) and listed.startswith((f"{own}/", f"{own}#"))) else own
    times = [draft.time for draft in thread.drafts if draft.time is not None]
    project_dir = candidate.project_dir or thread.cwd or ""
    name = thread_name(sessions_root(config).parent, own or id)
    return Conversation(
        source=NAME,
        id=id,
        messages=thread.messages(),
        slug=thread.title_or(name),
        project_dir=project_dir,
        project_name=last_path_part(project_dir),
        cwd=thread.cwd,
        git_branch=thread.git_branch,
        first_message_at=times[0] if times else None,
        last_message_at=times[-1] if times else None,
        parent_id=thread.parent_id,
        links=tuple(thread.links),
    )


def _beginning(thread: Thread, fates: list[Fate], config: Config) -> Callable[[], None]:
    """What is to be done once the first lines said where the thread comes from."""

    def look_back() -> None:
        if thread.history_base is not None and thread.rules.history_base:
            base, thread.history_base = thread.history_base, None
            parts, link = chain(thread.id or "", thread.path, base, config)
            thread.links += [link] if link else []
            for part in parts:
                _read_part(thread, fates, part)
        parent = thread.forked_from or thread.copied_from
        if parent is not None and thread.rules.skip_inherited:
            thread.forked_from = thread.copied_from = None
            _skip_inherited(thread, parent, config)

    return look_back


def _read_part(thread: Thread, fates: list[Fate], part: Part) -> None:
    """Read what an earlier rollout holds of the thread."""
    path = part.rollout.path
    line, thread.place = thread.line, f"{part.rollout.rollout}:line-"
    try:
        _read_lines(thread, fates, path, None, part, other=path)
    except (OSError, ParseError) as error:
        evidence = f"session_meta.history_base, which can't be read: {error}"
        thread.links.append(Link("continued-from", part.rollout.id, evidence, False))
    thread.history_base, thread.place, thread.line = None, thread.own_place, line


def _skip_inherited(thread: Thread, parent: str, config: Config) -> None:
    if parent in thread.looked_at:
        return
    thread.looked_at.add(parent)
    found = border(thread.path, parent, config)
    thread.skips_until = found.turn
    if not found.is_certain:
        thread.links.append(Link("copy-of", parent, f"the beginning may be the parent's: {found.evidence}", False))
    for at, link in enumerate(thread.links):
        if link.kind != "copy-of" and link.target == parent:
            thread.links[at] = Link(link.kind, parent, f"{link.evidence}; {found.evidence}", link.is_certain)
            return
    evidence = f"a copy of its session_meta; {found.evidence}"
    thread.links.append(Link("forked-from", parent, evidence, False))


def _read_lines(
    thread: Thread,
    fates: list[Fate],
    path: str,
    look_back: Callable[[], None] | None,
    part: Part | None,
    other: str | None = None,
) -> None:
    """Read a rollout: the candidate's own (then ``part`` is what another one takes over), or an earlier one's part."""
    opened: list[Opened] = []

    def open(path: Any) -> Opened:
        opened.append(Opened(path))
        return opened[0]

    end = 0
    for block in read_blocks(path, LINE, open=open):
        made = Outcomes(thread, block, look_back, part, other).read()
        fates += fates_of(block, made, other)
        end = block.offset + block.end
        if len(made) < len(block.records):
            break
    if damage := opened[0].damage:
        if not end:
            raise ParseError(f"the compressed data is damaged: {damage}", source=NAME, path=path)
        reason = f"the compressed data is damaged from here: {damage}"
        place = {"offset": end, "size": 0} if other is None else {"key": span_key(other, end, 0), "file_path": other}
        fates.append(Fate("dropped", "zstd", reason, **place))


def _keep_reasoning(thread: Thread, fates: list[Fate]) -> None:
    """Where a message is nothing but reasoning, its first record is the one that is kept."""
    alone = {draft.at for draft in thread.drafts if not draft.is_kept}
    if not alone:
        return
    for at, fate in enumerate(fates):
        if fate.message_index in alone:
            alone.discard(fate.message_index)
            fates[at] = Fate("kept", fate.kind, None, fate.message_index, fate.line, fate.offset, fate.size, fate.key)


def _read_document(thread: Thread, fates: list[Fate]) -> None:
    """The single document of spring 2025."""
    try:
        document = DOCUMENT.decode(read_file(thread.path))
    except ValueError as error:
        raise ParseError(f"no JSON document: {error}", source=NAME, path=thread.path) from error
    if not isinstance(document, Document) or not isinstance(document.items, list):
        raise ParseError("unknown layout: no session with items", source=NAME, path=thread.path)
    if isinstance(document.session, Session):
        thread.id, thread.has_meta = as_text(document.session.id) or None, True
        fates.append(Fate("metadata", "session", key="/session"))
    thread.place = thread.own_place.replace("line-", "item-")
    for at, item in enumerate(document.items):
        thread.line = at
        outcome = read_bare(item, thread) if isinstance(item, Bare) else NO_OBJECT
        fates.append(Fate(*outcome, key=f"/items/{at}"))


CAREFUL = dataclasses.replace(
    ADAPTER,
    root=sessions_root,
    count=partial(_count, V2),
    candidates=partial(_candidates, V2),
    read=_read,
    rules=V2,
)
