"""Reading one bubble of Cursor by careful rules.

Source: ``formats/cursor.md`` sections 2.3, 2.4 and 2.6.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from crystal_nb import ecma
from crystal_nb.adapters.cursor_draft import CarefulDraft, Piece, Place
from crystal_nb.adapters.cursor_rules import CursorRules
from crystal_nb.adapters.cursor_values import dicts, integer, json_of, list_of, members, string, text_of, time_of
from crystal_nb.adapters.typed import TypedDecoder
from crystal_nb.details import ToolCall

__all__ = ["BUBBLES", "Bubble", "add_bubble", "bubble_time", "lexical_text"]

_COMPACTION = 22
_KNOWN_CAPABILITIES = frozenset({15, 22, 30})
_ATTACHMENTS = ("attachedCodeChunks", "attachedFolders", "docsReferences", "webReferences", "commits", "pullRequests")
_SELECTIONS = ("fileSelections", "folderSelections", "selections", "terminalSelections")
_LONGEST_MARK = 300


class Bubble(Struct, gc=False, rename="camel"):
    """The fields that the rules read, of whatever type they are."""

    version: Any = field(name="_v", default=None)
    type: Any = None
    text: Any = None
    raw_text: Any = None
    content: Any = None
    message: Any = None
    rich_text: Any = None
    delegate: Any = None
    init_text: Any = None
    bubble_id: Any = None
    id: Any = None
    created_at: Any = None
    timestamp: Any = None
    timing_info: Any = None
    is_agentic: Any = None
    capability_type: Any = None
    tool_former_data: Any = None
    tool_results: Any = None
    thinking: Any = None
    all_thinking_blocks: Any = None
    code_blocks: Any = None
    suggested_code_blocks: Any = None
    token_count: Any = None
    model_info: Any = None
    model_type: Any = None
    model: Any = None
    request_id: Any = None
    error_details: Any = None
    images: Any = None
    context: Any = None
    attached_code_chunks: Any = None
    attached_folders: Any = None
    docs_references: Any = None
    web_references: Any = None
    commits: Any = None
    pull_requests: Any = None
    workspace_uris: Any = None
    workspace_project_dir: Any = None


BUBBLES = TypedDecoder(Bubble)


def is_user(bubble: Bubble) -> bool:
    """Whether a person wrote it."""
    return bubble.type == "user" or (bubble.type == 1 and not isinstance(bubble.type, bool))


def bubble_time(bubble: Bubble, rules: CursorRules, header_time: Any = None) -> Any:
    """Time of a bubble; None where it has none."""
    if not rules.other_times:
        return time_of(bubble.created_at)
    timing = members(bubble.timing_info)
    clients = (timing.get(k) for k in ("clientStartTime", "clientRpcSendTime", "clientEndTime"))
    return time_of(bubble.created_at, header_time, bubble.timestamp, *clients)


def add_bubble(
    draft: CarefulDraft, bubble: Bubble, id: str, place: Place, rules: CursorRules, time: Any, marks: list[str]
) -> None:
    """Make of a bubble a message, a part of the next one, or a dropped record."""
    piece = _piece(bubble, id, rules, time, marks)
    if piece.role == "user" or piece.text or piece.tools or any(m.startswith("error") for m in piece.marks):
        draft.keep(piece, place)
    elif rules.thinking_bubbles and (piece.thinking or "compact boundary" in piece.marks):
        draft.wait(piece, place)
    else:
        draft.note("dropped", piece.kind, place, _why_empty(bubble))


def _piece(bubble: Bubble, id: str, rules: CursorRules, time: Any, marks: list[str]) -> Piece:
    user = is_user(bubble)
    text = ecma.trim(_text(bubble, rules, user=user) or "")
    tools = _tools(bubble) if rules.tool_calls else []
    thinking = _thinking(bubble)
    blocks = (bubble.code_blocks, bubble.suggested_code_blocks)
    piece = Piece(
        kind=_kind(bubble, user=user, has_tools=bool(tools), has_thinking=bool(thinking), has_text=bool(text)),
        role="user" if user else "assistant",
        id=id,
        text=text,
        thinking=thinking,
        tools=tools,
        is_tool=bubble.is_agentic is True and not rules.tool_calls,
        has_code=any(map(list_of, blocks)),
        time=time,
        marks=marks,
    )
    if rules.facts:
        _add_facts(piece, bubble)
    return piece


def _kind(bubble: Bubble, *, user: bool, has_tools: bool, has_thinking: bool, has_text: bool) -> str:
    """Name of what the bubble is; one of an unknown type or capability goes by its number."""
    capability = bubble.capability_type
    if not user and bubble.type not in (2, "ai", "assistant") and bubble.type is not None:
        return f"bubble type {text_of(bubble.type)}"[:_LONGEST_MARK]
    if not (user or has_text or has_tools or has_thinking or _is_known(capability)):
        return f"capability {text_of(capability)}"[:_LONGEST_MARK]
    if capability == _COMPACTION:
        return "compaction"
    return "user" if user else "tool" if has_tools else "thinking" if has_thinking and not has_text else "assistant"


def _is_known(capability: Any) -> bool:
    return capability is None or (isinstance(capability, (int, float)) and capability in _KNOWN_CAPABILITIES)


def _why_empty(bubble: Bubble) -> str:
    if bubble.type not in (2, "ai", "assistant", None) or not _is_known(bubble.capability_type):
        return f"unknown kind (bubble version {text_of(bubble.version) or 'unknown'})"[:_LONGEST_MARK]
    return "assistant bubble without text"


def _text(bubble: Bubble, rules: CursorRules, *, user: bool) -> str | None:
    if not rules.other_texts:
        return string(bubble.text)
    return (
        string(bubble.text, bubble.raw_text, bubble.content, bubble.message)
        or lexical_text(bubble.rich_text)
        or (string(members(bubble.delegate).get("a")) if user else None)
        or (lexical_text(bubble.init_text) if user else None)
    )


def lexical_text(value: Any) -> str | None:
    """Text of a Lexical editor document, one line per paragraph; a text that is none stays as it is.

    >>> lexical_text('{"root":{"children":[{"type":"paragraph","children":[{"text":"a"},{"text":"b"}]}]}}')
    'ab'
    """
    if isinstance(value, str):
        try:
            value = json_of(value.encode("utf-8", "replace"))
        except ValueError:
            return string(value)
    if not isinstance(value, dict):
        return None
    lines, open_nodes = [""], [value]
    while open_nodes:
        node = open_nodes.pop()
        if node.get("type") == "paragraph" and lines[-1]:
            lines.append("")
        if node.get("type") == "linebreak":
            lines.append("")
        if isinstance(node.get("text"), str):
            lines[-1] += node["text"]
        open_nodes += reversed(dicts(node.get("children")))
        open_nodes += [node["root"]] if isinstance(node.get("root"), dict) else []
    return string("\n".join(lines))


def _thinking(bubble: Bubble) -> list[str]:
    blocks = [string(b.get("thinking"), b.get("text")) for b in dicts(bubble.all_thinking_blocks)]
    if any(blocks):
        return [text for text in blocks if text]
    text = string(bubble.thinking, members(bubble.thinking).get("text"), members(bubble.thinking).get("thinking"))
    return [text] if text else []


def _tools(bubble: Bubble) -> list[ToolCall]:
    data = members(bubble.tool_former_data)
    calls = [_tool(data)] if any(ecma.truthy(v) for v in data.values()) else []
    return calls + [_legacy_tool(v) for v in list_of(bubble.tool_results)]


def _tool(data: dict[str, Any]) -> ToolCall:
    """Section 2.4; what has no name goes by its number."""
    number = integer(data.get("tool"))
    status = string(data.get("status"), members(data.get("additionalData")).get("status"))
    error = text_of(data.get("error")) or None
    failed = error is not None or status == "error"
    arguments = data.get("rawArgs") if ecma.truthy(data.get("rawArgs")) else data.get("params")
    result = text_of(data.get("result"))
    return ToolCall(
        name=string(data.get("name")) or (f"tool {number}" if number is not None else "unknown"),
        input=text_of(arguments),
        raw_result=error if result is None else result,
        id=string(data.get("toolCallId")),
        is_error=True if failed else False if status == "completed" else None,
    )


def _legacy_tool(value: Any) -> ToolCall:
    item = members(value)
    name = string(item.get("name"), item.get("toolName"))
    return ToolCall(name or "unknown", raw_result=text_of(value), id=string(item.get("toolCallId")))


def _add_facts(piece: Piece, bubble: Bubble) -> None:
    tokens = members(bubble.token_count)
    piece.input_tokens, piece.output_tokens = (integer(tokens.get(k)) or None for k in ("inputTokens", "outputTokens"))
    piece.model = string(members(bubble.model_info).get("modelName"), bubble.model_type, bubble.model)
    piece.request_id = string(bubble.request_id)
    piece.marks = [*piece.marks, *_facts(bubble, has_text=bool(piece.text))]


def _facts(bubble: Bubble, *, has_text: bool) -> list[str]:
    marks = [_image_mark(image) for image in list_of(bubble.images)]
    for name in _ATTACHMENTS:
        if found := list_of(getattr(bubble, _FIELDS[name])):
            marks.append(f"{name} {len(found)}")
    for name in _SELECTIONS:
        if found := list_of(members(bubble.context).get(name)):
            marks.append(f"{name} {len(found)}")
    if bubble.capability_type == _COMPACTION:
        marks.append("compact summary" if has_text else "compact boundary")
    status = members(bubble.tool_former_data).get("status")
    if isinstance(status, str) and status not in ("", "completed", "error"):
        marks.append(f"tool {status}"[:_LONGEST_MARK])
    if ecma.truthy(bubble.error_details):
        marks.append(f"error {text_of(bubble.error_details)}"[:_LONGEST_MARK])
    return marks


_FIELDS = dict(zip(Bubble.__struct_encode_fields__, Bubble.__struct_fields__, strict=True))


def _image_mark(value: Any) -> str:
    """An image by its type and name."""
    image = members(value)
    words = [string(image.get(k)) for k in ("mimeType", "mediaType", "name", "path", "uuid")]
    return " ".join(["image", *(w for w in words if w)])[:_LONGEST_MARK]
