"""The parts of one response: what each kind adds to the answer.

Source: ``formats/copilot.md`` section 2.3. Text that the tool shows as one run is joined without a
separator, with references inside their sentence; a tool, an edit or a thought between two texts
parts them into paragraphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from crystal_nb import ecma
from crystal_nb.adapters.base import FENCE
from crystal_nb.adapters.copilot_rules import CopilotRules
from crystal_nb.adapters.copilot_tools import EDIT_KINDS, Rounds, edit_call
from crystal_nb.adapters.copilot_values import as_dict, as_list, json_of, mark, place, place_name, text_of
from crystal_nb.details import ToolCall
from crystal_nb.records import FateStatus

__all__ = ["Answer", "Taken"]

Taken = tuple[FateStatus, str, str | None]
"""What became of a part: status, kind and reason of its fate."""
_TRUNCATED = "value truncated for persistence"


class Answer:
    """What the parts of one response add up to.

    >>> from crystal_nb.adapters.copilot_rules import V2
    >>> answer = Answer(V2, Rounds(None))
    >>> parts = [{"value": "See "}, {"kind": "inlineReference", "inlineReference": {"path": "/p/a.py"}}, {"value": "."}]
    >>> [answer.take(part)[0] for part in parts]
    ['merged', 'merged', 'merged']
    >>> answer.content()
    'See a.py.'
    """

    def __init__(self, rules: CopilotRules, rounds: Rounds, version: str = "?") -> None:
        self.rules, self.rounds, self.version = rules, rounds, version
        self.tools: list[ToolCall] = []
        self.thoughts: list[str] = []
        self.marks: list[str] = []
        self.order: list[str] = []
        self.model: str | None = None
        self.has_tool_use = False
        self.taken: list[Taken] = []
        self._placeholders: list[str] = []
        self._paragraphs: list[list[tuple[int, str]]] = [[]]
        self._after_tool = 0
        self._is_in_code = False

    def take(self, part: Any) -> Taken:
        """Read one part; its fate may still change when a later part retracts it."""
        self.taken.append(self._take(part))
        return self.taken[-1]

    def _take(self, part: Any) -> Taken:
        if isinstance(part, str):
            return self._text(part, "text")
        if not isinstance(part, dict):
            return "dropped", "part", "not an object"
        kind = part.get("kind", UNSET)
        if kind is UNSET:
            return self._plain(part)
        if not isinstance(kind, str):
            return "dropped", "part", f"a kind that is no text: {ecma.to_text(kind)[:40]}"
        if kind not in _PINNED_KINDS and not self.rules.reads_every_kind:
            return "dropped", kind, "part kind is not read"
        reader = _READERS.get(kind)
        if reader is None:
            return "dropped", kind, f"unknown part kind (session version {self.version})"
        return reader(self, part, kind)

    def content(self) -> str:
        """The text of the answer."""
        texts = ["".join(text for _, text in paragraph) for paragraph in self._paragraphs]
        if not self.rules.joins_as_shown:
            texts = ["\n".join(text for paragraph in self._paragraphs for _, text in paragraph)]
        return ecma.pair_surrogates(ecma.trim("\n\n".join(t for t in texts if ecma.trim(t))))

    def thinking(self) -> str | None:
        """Its thoughts, a line end between them."""
        return ecma.pair_surrogates("\n".join(self.thoughts)) if self.thoughts else None

    def finish(self) -> None:
        """Add what the parts don't show but ``result.metadata`` has."""
        shown = {call.name for call in self.tools}
        placeholders = [ToolCall(name) for name in self._placeholders if name not in shown]
        if self.rules.details_tools:
            self.tools += [*placeholders, *self.rounds.unseen()]
            self.has_tool_use = self.has_tool_use or bool(self.tools)
        if not self.content():
            self._text(self.rounds.text(), "text")
        if not self.thoughts and (thinking := self.rounds.thinking()):
            self.thoughts.append(thinking)
        if self.rules.details_tools and len(set(self.order)) > 1:
            self.marks.append(mark("order", *self.order))

    def _plain(self, part: dict[str, Any]) -> Taken:
        """A part without kind: markdown, or in old files a tree of files."""
        if "value" not in part and "label" in part and self.rules.reads_every_kind:
            return self._note(part, "treeData")
        return self._text(text_of(part), "text")

    def _text(self, text: str, kind: str) -> Taken:
        if not text:
            return "dropped", kind, "no text"
        self._paragraphs[-1].append((len(self.taken), text))
        self._is_in_code ^= text.count(FENCE) % 2 == 1
        self._block("text")
        if _TRUNCATED in text:
            self.marks.append("truncated by the tool")
        return "merged", kind, None

    def _markdown(self, part: dict[str, Any], kind: str) -> Taken:
        for weakness in as_list(part.get("vulnerabilities")):
            self.marks.append(mark("vulnerability", as_dict(weakness).get("title")))
        return self._text(text_of(part.get("content")) or text_of(part), kind)

    def _reference(self, part: dict[str, Any], kind: str) -> Taken:
        if not self.rules.joins_as_shown:
            return "dropped", kind, "part kind is not read"
        target = part.get("inlineReference")
        self._add_mark("reference", place(target))
        return self._text(text_of(part.get("name")) or place_name(target), kind)

    def _paragraph(self, part: dict[str, Any], kind: str) -> Taken:
        """Text that the tool shows in a box of its own."""
        fields = ("title", "subtitle", "message", "content", "description", "plan", "stopReason", "systemMessage")
        texts = [text_of(part.get(name)) for name in fields]
        texts += [_question_text(q) for q in as_list(part.get("questions"))]
        answered = [part.get(name) for name in ("acceptedResult", "data", "decision")]
        if kind in _ASKING:
            texts += [json_of(a) or "" for a in answered if a]
            self._add_mark(kind, part.get("state"), "answered" if part.get("isUsed") is True else None)
        text = "\n".join(t for t in texts if t)
        if not text:
            return self._note(part, kind)
        self._break()
        taken = self._text(text, kind)
        self._break()
        return taken

    def _think(self, part: dict[str, Any], kind: str) -> Taken:
        text = text_of(part.get("value"), "\n") or text_of(part.get("content"), "\n")
        if not text:
            return "dropped", kind, "no text"
        self._break()
        self._block("thinking")
        self.thoughts.append(text)
        return "merged", kind, None

    def _tool(self, part: dict[str, Any], kind: str) -> Taken:
        self._break()
        self._after_tool = len(self._paragraphs) - 1
        self.has_tool_use = True
        if not self.rules.details_tools:
            return "merged", kind, "only the tool flag is kept"
        self._block("tool")
        self.tools.append(self.rounds.call(part))
        self._add_mark("sub-agent", part.get("subAgentInvocationId") or None)
        return "merged", kind, None

    def _placeholder(self, part: dict[str, Any], kind: str) -> Taken:
        """A tool that is about to run; the part about its run usually follows."""
        self.has_tool_use = True
        self._placeholders.append(text_of(part.get("toolName")) or "tool")
        return "merged", kind, "placeholder of a tool call"

    def _edit(self, part: dict[str, Any], kind: str) -> Taken:
        if not self.rules.details_tools:
            return "dropped", kind, "part kind is not read"
        if not self._is_in_code:  # an edit stands between the fences of the code block that shows it
            self._break()
        self._block("edit")
        self.has_tool_use = True
        self.tools.append(edit_call(kind, part))
        return "merged", kind, None

    def _retract(self, part: dict[str, Any], kind: str) -> Taken:
        """Text since the last tool call no longer holds."""
        for paragraph in self._paragraphs[self._after_tool :]:
            for at, _ in paragraph:
                self.taken[at] = ("dropped", self.taken[at][1], "retracted by the tool")
            paragraph.clear()
        self._is_in_code = False
        return "metadata", kind, "retracts text"

    def _note(self, part: dict[str, Any], kind: str) -> Taken:
        """Something to know that is no text of the answer."""
        tree, changes = as_dict(part.get("treeData")) or part, as_dict(part.get("multiDiffData"))
        facts = [
            text_of(part.get("content")) or text_of(part.get("value")),
            place(part.get("uri")) or place(tree.get("uri")),
            text_of(as_dict(part.get("command")).get("title")) or text_of(part.get("title")),
            text_of(tree.get("label")) or text_of(changes.get("title")),
            " ".join(place(as_dict(r).get("uri") or r) for r in as_list(changes.get("resources"))),
            text_of(part.get("hookType")),
            text_of(part.get("stopReason")) or text_of(part.get("systemMessage")),
            text_of(part.get("toolDisplayName")),
            text_of(part.get("extensions"), ", "),
        ]
        if not any(facts):
            return "metadata", kind, "nothing said"
        self._add_mark(kind, *facts)
        return "merged", kind, "noted as a mark"

    def _choose_model(self, part: dict[str, Any], kind: str) -> Taken:
        resolved = part.get("resolved")
        self.model = text_of(as_dict(resolved).get("id")) or text_of(resolved) or self.model
        return "merged", kind, "model"

    def _machinery(self, part: dict[str, Any], kind: str) -> Taken:
        return "metadata", kind, "nothing said"

    def _add_mark(self, name: str, *details: Any) -> None:
        if any(details) and self.rules.marks_turns:
            self.marks.append(mark(name, *details))

    def _break(self) -> None:
        if self._paragraphs[-1]:
            self._paragraphs.append([])
            self._is_in_code = False

    def _block(self, name: str) -> None:
        if self.order[-1:] != [name]:
            self.order.append(name)


def _question_text(question: Any) -> str:
    fields = [as_dict(question).get(name) for name in ("title", "question", "message", "description")]
    return text_of(question) or "\n".join(t for t in map(text_of, fields) if t)


def _kinds(reader: Callable[[Answer, dict[str, Any], str], Taken], *kinds: str) -> dict[str, Any]:
    return dict.fromkeys(kinds, reader)


_ASKING = ("confirmation", "elicitationSerialized", "questionCarousel", "planReview")
_PINNED_KINDS = ("thinking", "text", "toolInvocationSerialized", "prepareToolInvocation")
_READERS: dict[str, Callable[[Answer, dict[str, Any], str], Taken]] = {
    **_kinds(Answer._markdown, "text", "markdownContent", "markdownVuln"),
    **_kinds(Answer._reference, "inlineReference"),
    **_kinds(Answer._think, "thinking"),
    **_kinds(Answer._tool, "toolInvocationSerialized", "toolInvocation"),
    **_kinds(Answer._placeholder, "prepareToolInvocation"),
    **_kinds(Answer._edit, *EDIT_KINDS),
    **_kinds(Answer._retract, "clearToPreviousToolInvocation"),
    **_kinds(Answer._paragraph, *_ASKING, "warning", "info", "systemNotification", "pullRequest"),
    **_kinds(Answer._note, "progressMessage", "progressTaskSerialized", "voiceProgress", "treeData", "multiDiffData"),
    **_kinds(Answer._note, "codeblockUri", "command", "extensions", "hook", "disabledClaudeHooks"),
    **_kinds(Answer._choose_model, "autoModeResolution"),
    **_kinds(Answer._machinery, "mcpServersStarting", "undoStop"),
}
