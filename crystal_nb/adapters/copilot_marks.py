"""Facts about a turn that are no text: its state, attachments, mode, model, tokens.

Source: ``formats/copilot.md`` section 2.2.
"""

from __future__ import annotations

from typing import Any

from crystal_nb.adapters.copilot_values import as_dict, as_list, mark, number, place, text_of

__all__ = ["attachment_marks", "fact_marks", "model_of", "state_marks", "tokens_of"]

_STATES = {0: "pending", 2: "cancelled", 3: "failed", 4: "needs input"}
_VOTES = {0: "vote down", 1: "vote up"}


def state_marks(request: dict[str, Any]) -> list[str]:
    """How a turn ended, where it did not end well.

    >>> state_marks({"modelState": {"value": 2}, "isHidden": True})
    ['cancelled', 'hidden']
    """
    state = number(as_dict(request.get("modelState")).get("value"))
    error = as_dict(as_dict(request.get("result")).get("errorDetails"))
    marks = [
        None if state is None else _STATES.get(state),
        "cancelled" if request.get("isCanceled") is True else None,
        "reverted" if request.get("shouldBeRemovedOnSend") else None,
        "hidden" if request.get("isHidden") is True else None,
        mark("error", error.get("code"), text_of(error.get("message"))) if error else None,
    ]
    return list(dict.fromkeys(m for m in marks if m))


def attachment_marks(request: dict[str, Any], variables: list[Any]) -> list[str]:
    """What was sent with a prompt: attachments, participant, mode, command.

    >>> attachment_marks({}, [{"kind": "file", "name": "a.py", "value": {"path": "/p/a.py"}}])
    ['file /p/a.py']
    """
    mode, command = as_dict(request.get("modeInfo")), request.get("slashCommand")
    agent = text_of(as_dict(request.get("agent")).get("id"))
    known = [
        mark("agent", agent) if agent else "",
        mark("mode", _first_text(mode, "modeId", "telemetryModeId", "kind")) if mode else "",
        mark("command", text_of(as_dict(command).get("name")) or text_of(command)) if command else "",
        mark("confirmation", text_of(request.get("confirmation"))) if request.get("confirmation") else "",
    ]
    return [_variable_mark(as_dict(v)) for v in variables] + [m for m in known if m]


def _first_text(members: dict[str, Any], *names: str) -> str:
    return next((t for t in (text_of(members.get(name)) for name in names) if t), "")


def _variable_mark(variable: dict[str, Any]) -> str:
    """Kind and place of an attachment; of an image its type and size, never its bytes."""
    kind, value = text_of(variable.get("kind")) or "attachment", variable.get("value")
    name = text_of(variable.get("name"))
    if kind == "image":
        size = _byte_count(value)
        return mark("image", text_of(variable.get("mimeType")) or name, None if size is None else f"{size} bytes")
    return mark(kind, (place(value) if isinstance(value, dict) else "") or name)


def _byte_count(value: Any) -> int | None:
    """Size of bytes as JSON holds them: an object or a list of numbers, or base64."""
    inner = as_dict(value).get("data", value)
    if isinstance(inner, str):
        return len(inner) * 3 // 4
    return len(inner) if isinstance(inner, (dict, list)) and inner else None


def fact_marks(request: dict[str, Any]) -> list[str]:
    """What else is known of an answer: files it read and changed, licences, the user's vote.

    >>> fact_marks({"vote": 1, "contentReferences": [{"reference": {"path": "/p/a.py"}}]})
    ['reference /p/a.py', 'vote up']
    """
    references = [as_dict(r).get("reference") for r in as_list(request.get("contentReferences"))]
    citations = [text_of(as_dict(c).get("license")) for c in as_list(request.get("codeCitations"))]
    edited = [place(as_dict(e).get("uri")) for e in as_list(request.get("editedFileEvents"))]
    context = [place(d) for d in as_list(as_dict(request.get("usedContext")).get("documents"))]
    marks = [mark("reference", where) for where in map(place, references) if where]
    marks += [mark("context", where) for where in context if where]
    marks += [mark("citation", licence) for licence in citations if licence]
    marks += [mark("edited", where) for where in edited if where]
    vote = number(request.get("vote"))
    if vote in _VOTES:
        reason = request.get("voteDownReason")
        marks.append(mark(_VOTES[vote], reason if isinstance(reason, str) else None))
    return marks


def model_of(request: dict[str, Any]) -> str | None:
    """The model that answered, else the one that was chosen.

    >>> model_of({"modelId": "copilot/auto", "result": {"metadata": {"resolvedModel": "model-x"}}})
    'model-x'
    """
    metadata = as_dict(as_dict(request.get("result")).get("metadata"))
    known = [metadata.get("resolvedModel"), metadata.get("model"), request.get("modelId")]
    return next((m for m in known if isinstance(m, str) and m), None)


def tokens_of(request: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens of input and output, wherever this build wrote them.

    >>> tokens_of({"usage": {"promptTokens": 5}, "completionTokens": 7})
    (5, 7)
    """
    result = as_dict(request.get("result"))
    places = [request, as_dict(request.get("usage")), result, as_dict(result.get("usage"))]
    places.append(as_dict(result.get("metadata")))
    sent = number(*(p.get("promptTokens") for p in places))
    return sent, number(*(p.get(name) for p in places for name in ("completionTokens", "outputTokens")))
