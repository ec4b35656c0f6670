"""Blocks of one Trae answer in reading order, each with its place in the database.

Source: ``formats/trae.md`` section 2.4; the agent's plan has changed its shape more than once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.trae_facts import content_of, json_of, members, text_of
from crystal_nb.adapters.trae_rules import TraeRules
from crystal_nb.details import ToolCall

__all__ = ["DONE", "FINISH", "Block", "answer_blocks", "unknown_parts"]

FINISH = "finish"
"""The step that ends a turn, which is no tool."""
DONE = frozenset({"", "completed", "success", "succeeded", "done", "finished"})
_FAILED = frozenset({"error", "failed", "failure"})
_TASK = frozenset({"proposal", "proposalReasoningContent", "content", "text", "guideline"})
_GUIDELINE = frozenset({"thought", "planItems"})
_STEP = frozenset(
    {"thought", "toolName", "reasoningContent", "params", "result", "content", "status"}
    | {"toolCallId", "id", "startTime", "endTime"}
)


class Block(Struct, eq=False):
    """A part of a message, and what becomes of it."""

    key: str
    kind: str
    raw: Any
    text: str = ""
    thinking: str | None = None
    tool: ToolCall | None = None
    time: Any = None
    marks: tuple[str, ...] = ()
    is_own: bool = False
    """Whether it is the record's own text, not one of its parts."""
    is_repeated: bool = False
    """Whether earlier blocks have the text already."""
    index: int | None = None
    """Position of the message that it went into."""
    is_main: bool = False
    """Whether it is the one that this message is; the others are merged into it."""

    @property
    def is_thinking(self) -> bool:
        """Whether it holds reasoning and nothing else."""
        return bool(self.thinking) and not self.text and self.tool is None

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing at all."""
        return not (self.text or self.thinking or self.tool)


def answer_blocks(own: Block, task: Any, rules: TraeRules) -> list[Block]:
    """Blocks of an answer: those of its task, then its own text.

    >>> task = {"proposal": "I sort.", "guideline": {"planItems": [{"toolName": "finish", "thought": "Sorted."}]}}
    >>> own = Block("k", "assistant", {}, text="Sorted.", is_own=True)
    >>> [(b.text, b.is_repeated) for b in answer_blocks(own, task, TraeRules(version="trae@0", whole_answer=True))]
    [('I sort.', False), ('Sorted.', False), ('Sorted.', True)]
    """
    blocks = list(_task_blocks(f"{own.key}/agentTaskContent", task, rules))
    if own.text and not rules.whole_answer:
        for block in blocks:
            block.text, block.thinking = "", None
    own.is_repeated = _is_repeated(own.text, blocks)
    return [*blocks, own]


def _task_blocks(key: str, task: Any, rules: TraeRules) -> Iterator[Block]:
    if isinstance(task, str) and rules.whole_answer:
        yield Block(key, "agentTaskContent", task, ecma.trim(task))
    if not isinstance(task, dict):
        return
    blocks = list(_opening(key, task))
    guideline = task.get("guideline")
    plan = guideline if isinstance(guideline, dict) else {"thought": guideline}
    steps = [_step(f"{key}/guideline/planItems/{step}", item, rules) for step, item in members(plan.get("planItems"))]
    thought = _text_block(f"{key}/guideline/thought", "guideline", plan.get("thought"), [*blocks, *steps])
    if rules.whole_answer or not any(block.text for block in [*blocks, *steps]):
        is_new = not any(block.is_repeated for block in thought)
        blocks += [*thought, *steps] if is_new else [*steps, *thought]
    else:
        blocks += steps
    if rules.whole_answer:
        for name in ("content", "text"):
            blocks += _text_block(f"{key}/{name}", name, task.get(name), blocks)
    yield from blocks


def _opening(key: str, task: dict[str, Any]) -> Iterator[Block]:
    text, thinking = ecma.trim(text_of(task.get("proposal"))), _thinking(task.get("proposalReasoningContent"))
    name = "proposal" if text else "proposalReasoningContent"
    if text or thinking:
        yield Block(f"{key}/{name}", name, task[name], text, thinking)


def _text_block(key: str, kind: str, raw: Any, others: list[Block]) -> list[Block]:
    text = content_of(raw)[0]
    return [Block(key, kind, raw, text, is_repeated=_is_repeated(text, others))] if text else []


def _is_repeated(text: str, blocks: list[Block]) -> bool:
    """Tell whether a body only says again what the parts say, one of them or all together."""
    said = [block for block in blocks if block.text and not block.is_repeated]
    ends = [block.text for block in said if block.kind in ("proposal", FINISH)]
    return bool(text) and text in {"\n\n".join(b.text for b in said), "\n\n".join(ends), *(b.text for b in said)}


def _thinking(value: Any) -> str | None:
    text = text_of(value)
    return text if ecma.trim(text) else None


def _step(key: str, item: Any, rules: TraeRules) -> Block:
    if not isinstance(item, dict):
        return Block(key, "step", item, ecma.trim(text_of(item)) if rules.whole_answer else "")
    tool = text_of(item.get("toolName"))
    texts = [ecma.trim(text_of(item.get("thought"))), content_of(item.get("content"))[0]]
    if not rules.whole_answer:
        texts = texts[:1] if tool == FINISH else []
    elif tool == FINISH and not any(texts):
        texts = [_summary(item.get("params"))]
    return Block(
        key,
        tool or "step",
        item,
        "\n\n".join(dict.fromkeys(filter(None, texts))),
        _thinking(item.get("reasoningContent")),
        _call(tool, item),
        item.get("startTime"),
        _step_marks(item),
    )


def _summary(params: Any) -> str:
    if isinstance(params, str):
        try:
            params = ecma.parse_json(params)
        except ValueError:
            return ecma.trim(params)
    return ecma.trim(text_of(params.get("summary"))) if isinstance(params, dict) else ""


def _call(tool: str, item: dict[str, Any]) -> ToolCall | None:
    input, result = json_of(item.get("params")), json_of(item.get("result"))
    if input is None and result is None and tool in ("", FINISH):
        return None
    status = text_of(item.get("status")).lower()
    is_error = True if status in _FAILED else False if status in DONE - {""} else None
    id = text_of(item.get("toolCallId")) or text_of(item.get("id")) or None
    return ToolCall(tool or "(unnamed)", input, result, id, is_error)


def _step_marks(item: dict[str, Any]) -> tuple[str, ...]:
    status = text_of(item.get("status"))
    return () if status.lower() in DONE | _FAILED else (f"step {status}",)


def unknown_parts(key: str, task: Any) -> Iterator[tuple[str, str, Any]]:
    """Place, name and value of what a task holds that no rule reads.

    >>> list(unknown_parts("k", {"proposal": "a", "diagram": "b", "guideline": {"planItems": 5}}))
    [('k/diagram', 'agentTaskContent.diagram', 'b'), ('k/guideline/planItems', 'guideline.planItems', 5)]
    """
    if not isinstance(task, dict):
        if task is not None and not isinstance(task, str):
            yield key, "agentTaskContent", task
        return
    yield from _unknown(key, "agentTaskContent", task, _TASK)
    guideline = task.get("guideline")
    if isinstance(guideline, dict):
        yield from _unknown(f"{key}/guideline", "guideline", guideline, _GUIDELINE)
        items = guideline.get("planItems")
        if items and not isinstance(items, (list, dict)):
            yield f"{key}/guideline/planItems", "guideline.planItems", items
        for step, item in members(items):
            if isinstance(item, dict):
                yield from _unknown(f"{key}/guideline/planItems/{step}", "planItem", item, _STEP)
    elif guideline and not isinstance(guideline, str):
        yield f"{key}/guideline", "agentTaskContent.guideline", guideline


def _unknown(key: str, kind: str, value: dict[str, Any], known: frozenset[str]) -> Iterator[tuple[str, str, Any]]:
    """Fields that hold text or more; a number or a flag carries no part of an answer."""
    for (step, inner), name in zip(members(value), value, strict=True):
        if name not in known and inner and isinstance(inner, (str, list, dict)):
            yield f"{key}/{step}", f"{kind}.{name}", inner
