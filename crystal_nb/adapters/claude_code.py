"""Claude Code: ``~/.claude/projects/<slug>/<session>.jsonl``.

Source: ``formats/claude-code.md`` section 3; the numbers in comments are its rules.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.base import (
    FENCE,
    Adapter,
    Draft,
    Outcome,
    Parsed,
    Rules,
    file_candidate,
    has_fence,
    list_names,
)
from crystal_nb.adapters.claude_careful import CAREFUL
from crystal_nb.adapters.claude_places import NAME, project_name
from crystal_nb.adapters.claude_rules import V1
from crystal_nb.adapters.jsonl import Broken, no_record, read_lines_into
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.config import Config
from crystal_nb.records import Candidate, Conversation, Message

__all__ = ["ADAPTER", "LATER"]

_MIN_BYTES = 100


class ContentBlock(Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None


class RawMessage(Struct, gc=False):
    role: str | None = None
    content: str | list[ContentBlock] | None = None


class RawLine(Struct, gc=False, rename={"parent_uuid": "parentUuid", "git_branch": "gitBranch"}):
    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    message: RawMessage | None = None


_DECODER = TypedDecoder(RawLine)
_NO_MESSAGE = RawMessage()


def _root(config: Config) -> Path:
    return config.folder(NAME, "CLAUDE_PROJECTS_DIR", config.home_path / ".claude" / "projects")


def _count(root: Path, config: Config) -> int:
    """Rule 2."""
    names = [n for n in list_names(root) if not n.startswith(".") and not n.endswith(".json")]
    folders = [root / n for n in names if _is_folder(root / n)]
    return sum(n.endswith(".jsonl") for folder in folders for n in list_names(folder))


def _candidates(root: Path, config: Config) -> list[Candidate]:
    """Rules 3 to 6."""
    folders = [root / name for name in list_names(root) if _is_folder(root / name)]
    found = []
    for folder in folders:
        for name in list_names(folder):
            if name.endswith(".jsonl"):
                path = os.path.join(folder, name)
                status = os.stat(path)
                if status.st_size >= _MIN_BYTES:
                    found.append(file_candidate(NAME, name[:-6], path, status, folder.name))
    return found


def _is_folder(path: Path) -> bool:
    """Follow links; unlike ``Path.is_dir``, a dangling one is an error, as pinned."""
    return stat.S_ISDIR(os.stat(path).st_mode)


class _Session(Draft):
    """State of one parse."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.cwd: Any = None
        self.git_branch: Any = None
        self.slug: Any = None

    def read_line(self, record: RawLine | NotAnObject | Broken) -> Outcome:
        """Rules 8 to 19; a ValueError stands for the pinned parser's TypeError, which loses the file."""
        if type(record) is not RawLine:
            return no_record(record)  # type: ignore[arg-type]
        if record.type == "user":
            kind = "user"
        elif record.type == "assistant":
            kind = "assistant"
        else:
            return "dropped", _kind_text(record.type), "kind is not imported", None
        if not record.uuid and not ecma.truthy(record.uuid):
            return "dropped", kind, "no uuid", None
        if self.slug is None or self.cwd is None or self.git_branch is None:
            self._note_place(record)
        message = record.message if type(record.message) is RawMessage else _NO_MESSAGE
        text, thinking, has_tool_use, has_code = _read_content(message.content)
        if not (text or thinking or has_tool_use):
            return "dropped", kind, _why_empty(message.content), None
        role, time = message.role, record.timestamp
        self.messages.append(
            Message(
                kind,
                text,
                kind if role is None or role == kind else role,
                has_tool_use,
                has_code,
                thinking,
                record.uuid,
                record.parent_uuid,
                self.now() if time is None else time,
                time is None,
            )
        )
        return "kept", kind, None, len(self.messages) - 1

    def _note_place(self, record: RawLine) -> None:
        """Rule 12: the first truthy value of each."""
        if self.cwd is None and record.cwd is not None and ecma.truthy(record.cwd):
            self.cwd = record.cwd
        if self.git_branch is None and record.git_branch is not None and ecma.truthy(record.git_branch):
            self.git_branch = record.git_branch
        if self.slug is None and record.slug is not None and ecma.truthy(record.slug):
            self.slug = record.slug


def _kind_text(type: Any) -> str:
    return sys.intern(ecma.to_text(type)) if type is not None else ""


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    session = _Session(config)
    read_lines_into(session, candidate, _DECODER, partial(map, session.read_line))
    messages = session.by_time()
    first, last = session.span(messages)
    conversation = Conversation(
        source=NAME,
        id=candidate.id,
        messages=messages,
        slug=session.slug,
        project_dir=candidate.project_dir,
        project_name=project_name(candidate.project_dir),
        cwd=session.cwd,
        git_branch=session.git_branch,
        first_message_at=first,
        last_message_at=last,
    )
    return Parsed(conversation, tuple(session.fates))


def _read_content(content: Any) -> _Content:
    """Text, thinking, hasToolUse and hasCode (rules 13 to 16)."""
    if isinstance(content, str):
        text = clean(content)
        return text, None, False, has_fence(text)
    if isinstance(content, list):
        usual = _read_lone_block(content[0]) if len(content) == 1 else None
        return usual or _read_blocks(content)
    if ecma.truthy(content):
        raise ValueError(f"message.content can't be iterated: {type(content).__name__}")
    return _NOTHING


_Content = tuple[str, str | None, bool, bool]
_NOTHING: _Content = ("", None, False, False)
_TOOL_USE: _Content = ("", None, True, False)


def _read_lone_block(block: Any) -> _Content | None:
    """What `_read_blocks` gives for one block of a usual kind: current versions write each in a line of its own."""
    if type(block) is not ContentBlock:
        return None
    kind = block.type
    if kind == "tool_result":
        return _NOTHING
    if kind == "tool_use":
        return _TOOL_USE
    if kind == "text" and type(block.text) is str:
        return clean(block.text), None, False, has_fence(block.text)
    if kind == "thinking" and type(block.thinking) is str:
        return "", block.thinking or None, False, False
    return None


def _read_blocks(blocks: list[Any]) -> _Content:
    texts: list[Any] = []
    thoughts: list[Any] = []
    has_tool_use = has_code = False
    for block in blocks:
        if type(block) is not ContentBlock:
            if block is None:
                raise ValueError("message.content holds null")
            continue
        kind = block.type
        if kind == "text":
            text = block.text
            if ecma.truthy(text):
                has_code = (has_fence(text) if type(text) is str else _holds_fence(text)) or has_code
                texts.append(text)
        elif kind == "tool_use":
            has_tool_use = True
        elif kind == "thinking" and ecma.truthy(block.thinking):
            thoughts.append(block.thinking)
    joined = clean(ecma.join(texts, "\n")) if texts else ""
    return joined, ecma.join(thoughts, "\n") if thoughts else None, has_tool_use, has_code


def _holds_fence(text: Any) -> bool:
    """``text.includes("```")`` of what is no text: an array has that method too, for an equal element."""
    if isinstance(text, list):
        return FENCE in text
    raise ValueError(f"a text block's text is no string: {type(text).__name__}")


def _why_empty(content: Any) -> str:
    if isinstance(content, list):
        if len(content) == 1 and type(content[0]) is ContentBlock and content[0].type == "tool_result":
            return "only tool_result"
        kinds = [_kind_text(b.type) if isinstance(b, ContentBlock) else "?" for b in content]
        kinds = [kind for kind in kinds if kind not in ("text", "thinking")]
        if kinds:
            return _only(*sorted(set(kinds)) if len(kinds) > 1 else kinds)
    return "nothing left after cleaning" if content else "no content"


@functools.lru_cache(maxsize=256)
def _only(*kinds: str) -> str:
    return f"only {', '.join(kinds)}"


_FEW = 20
_CLEANERS = (
    ("<system-reminder>", "</system-reminder>", True),
    ("<command-name>", "</command-name>", False),
    ("<command-message>", "</command-message>", False),
    ("<command-args>", "</command-args>", False),
    ("<local-command-stdout>", "</local-command-stdout>", False),
    ("<local-command-caveat>", "</local-command-caveat>", True),
)


def clean(text: str) -> str:
    """Remove the harness's tags with their bodies, each kind in turn, then trim (rule 17).

    >>> clean("<command-<system-reminder>x</system-reminder>name>q</command-name>end")
    'end'
    """
    if "<" in text and _holds_end_tag(text) and ("<system-reminder>" in text or "command-" in text):
        for opening, closing, any_body in _CLEANERS:
            if opening in text:
                text = ecma.pair_surrogates(_remove(text, opening, closing, any_body))
    return ecma.trim(text)


def _holds_end_tag(text: str) -> bool:
    """``"</" in text``, by way of each ``<`` as long as they are few: one character is found many times faster."""
    at = text.find("<")
    for _ in range(_FEW):
        if text.startswith("/", at + 1):
            return True
        at = text.find("<", at + 1)
        if at < 0:
            return False
    return text.find("</", at) >= 0


def _remove(text: str, opening: str, closing: str, any_body: bool) -> str:
    """Drop each opening tag up to its closing one; unless any body will do, no ``<`` may stand between."""
    kept, done, at = [], 0, text.find(opening)
    while at >= 0:
        body = at + len(opening)
        end = text.find(closing if any_body else "<", body)
        if end < 0:
            break
        if text.startswith(closing, end):
            kept.append(text[done:at])
            done = end = end + len(closing)
        at = text.find(opening, end)
    return "".join((*kept, text[done:]))


ADAPTER = Adapter(
    name=NAME,
    display_name="Claude Code",
    root=_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V1,
)
LATER = (CAREFUL,)
