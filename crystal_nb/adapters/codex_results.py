"""Results of Codex tool calls as text.

Source: ``formats/codex.md`` sections 2.4 and 5.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Raw

from crystal_nb import ecma
from crystal_nb.adapters.codex_shapes import json_or_text
from crystal_nb.adapters.codex_text import block_texts, images_in

__all__ = ["Result", "read_output"]

Result = tuple[str | bytes | None, bool | None, list[str]]
"""Text, or the JSON string that holds it, whether the tool failed (None: nothing says so), and marks."""

_HEAD = 300
_EXIT = re.compile("(?:Process exited with code|Exit code:) (-?[0-9]+)")
_EXIT_OF_TOKEN = re.compile(_EXIT.pattern.encode())
_NO_MARKS: list[str] = []


def read_output(output: Any) -> Result:
    r"""Read what a tool answered, in any of its forms; a plain text stays the JSON string that it is.

    >>> read_output('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}')
    ('no', True, [])
    >>> read_output("Process exited with code 0\nOutput:\nok")[1], read_output({"content": "x", "success": True})[:2]
    (False, ('x', False))
    """
    if type(output) is Raw:
        token = bytes(output)
        if token.startswith(b'"') and not token.startswith(b'"{\\"output\\":'):
            return token, _exit_of_token(token), _NO_MARKS
        output = ecma.parse_json(token.decode("utf-8", "replace")) if token else None
    if isinstance(output, str):
        return _of_text(output)
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        success = output.get("success")
        return output["content"], not success if isinstance(success, bool) else None, _NO_MARKS
    if isinstance(output, list):
        texts = block_texts(output)
        if texts or any(isinstance(block, dict) and block.get("image_url") for block in output):
            return "\n".join(texts), None, images_in(output)
    return json_or_text(output), None, _NO_MARKS


def _exit_of_token(token: bytes) -> bool | None:
    """What the head of a JSON string says of an exit code: the same that `_of_text` would find in the text."""
    at = token.find(b"code", 1, 6 * _HEAD)
    match = _EXIT_OF_TOKEN.search(token, max(1, at - 20), 6 * _HEAD) if at > 0 else None
    if match is None:
        return None
    if match.end() <= _HEAD:
        return match[1] != b"0"
    head = token[1 : match.end()].decode("utf-8", "replace")
    if len(json.loads(f'"{head}"', strict=False)) > _HEAD:
        return None
    return match[1] != b"0"


def _of_text(text: str) -> Result:
    if text[:10] == '{"output":' and (inner := _wrapped(text)) is not None:
        return inner
    if text.find("code", 0, _HEAD) < 0:
        return text, None, _NO_MARKS
    match = _EXIT.search(text, 0, _HEAD)
    return text, None if match is None else match[1] != "0", _NO_MARKS


def _wrapped(text: str) -> Result | None:
    """The 2025 form: JSON text that holds the output and the exit code."""
    try:
        value = ecma.parse_json(text)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(value, dict) and isinstance(value.get("output"), str)):
        return None
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return value["output"], code != 0 if isinstance(code, int) else None, _NO_MARKS
