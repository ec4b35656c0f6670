"""Texts of Codex messages: content blocks, injected envelopes, IDE context, images, tool results.

Source: ``formats/codex.md`` section 2.4.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.codex_shapes import Block, as_text

__all__ = ["block_texts", "image_mark", "images_in", "split_prompt", "without_envelopes"]

_AGENTS = "# AGENTS.md instructions"
_TAG = re.compile(
    "<(user_instructions|INSTRUCTIONS|environment_context|permissions instructions|collaboration_mode|skill"
    "|recommended_plugins|turn_aborted|subagent_notification|user_shell_command|hook_prompt|goal_context"
    "|codex_internal_context)(?: [^<>]*)?>"
)
_IDE = "# Context from my IDE setup:"
_REQUEST = re.compile("## My request for Codex:\r?\n")
_IMAGE_TAG = re.compile("</?image[^<>]*>")
_DATA_URL = re.compile("data:([^;,]*)")
_HEAD = 300


def without_envelopes(text: str) -> tuple[list[str], str]:
    r"""Names of the injected envelopes that a user item begins with, and what follows them.

    Only closed ones count, since a user may quote a tag.

    >>> without_envelopes("<skill>a</skill> <turn_aborted>b</turn_aborted>\n do it ")
    (['skill', 'turn_aborted'], 'do it')
    >>> without_envelopes("<skill> is what?")
    ([], '<skill> is what?')
    """
    names: list[str] = []
    text = ecma.trim(text)
    while text[:1] in ("<", "#") and (found := _envelope(text)):
        name, end = found
        names.append(name)
        text = ecma.trim(text[end:])
    return names, text


def _envelope(text: str) -> tuple[str, int] | None:
    if text.startswith(_AGENTS):
        name, closing = "AGENTS.md", "</INSTRUCTIONS>"
    elif match := _TAG.match(text):
        name, closing = match[1], f"</{match[1]}>"
    else:
        return None
    at = text.find(closing)
    return None if at < 0 else (name, at + len(closing))


def split_prompt(text: str) -> tuple[str, str]:
    r"""What an IDE put before the request, and the request.

    >>> split_prompt("# Context from my IDE setup:\n- a.py\n## My request for Codex:\n do it")
    ('# Context from my IDE setup:\n- a.py', 'do it')
    >>> split_prompt("What does ## My request for Codex:\n mean?")[0]
    ''
    """
    text = ecma.trim(text)
    if text.startswith(_IDE) and (match := _REQUEST.search(text)):
        return ecma.trim(text[: match.start()]), ecma.trim(text[match.end() :])
    return "", text


def block_texts(content: Any) -> list[str]:
    """Texts of content blocks of whatever kind; tags around an image are left out.

    >>> block_texts([Block("input_text", "a"), Block("text", ""), Block("input_text", "b")]), block_texts("c")
    (['a', 'b'], ['c'])
    """
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        return []
    if len(content) == 1 and type(content[0]) is Block:
        return [content[0].text] if content[0].text and isinstance(content[0].text, str) else []
    parts = [(text, kind) for block in content for text, kind in [_text_and_kind(block)]]
    tagged = any(kind == "input_image" for _, kind in parts)
    return [text for text, _ in parts if text and not (tagged and _IMAGE_TAG.fullmatch(text))]


def _text_and_kind(block: Any) -> tuple[str, Any]:
    if isinstance(block, Block):
        return as_text(block.text), block.type
    if isinstance(block, dict):
        return as_text(block.get("text")), block.get("type")
    return as_text(block), None


def images_in(content: Any) -> list[str]:
    """Marks for the images of content blocks."""
    if not isinstance(content, list) or (len(content) == 1 and type(content[0]) is Block and not content[0].image_url):
        return []
    return [image_mark(url) for url in _image_urls(content)]


def _image_urls(content: list[Any]) -> Iterator[Any]:
    for block in content:
        if isinstance(block, Block):
            if block.image_url is not None:
                yield block.image_url
        elif isinstance(block, dict):
            urls = [block[k] for k in ("image_url", "url", "path") if block.get(k) is not None]
            if urls and block.get("type") in ("input_image", "image", "local_image"):
                yield urls[0]


def image_mark(url: Any) -> str:
    """Name an image by kind, size and the beginning of its hash, or by its address.

    >>> image_mark("data:image/png;base64,AAAA")
    'image image/png 3 bytes sha256:709e80c88487'
    >>> image_mark("/tmp/a.png")
    'image /tmp/a.png'
    """
    if isinstance(url, dict):
        url = url.get("url")
    text = as_text(url)
    match = _DATA_URL.match(text)
    if match is None:
        return f"image {text[:_HEAD]}".strip()
    data = text[text.find(",") + 1 :]
    encoded = data.encode("utf-8", "surrogatepass")
    try:
        decoded = binascii.a2b_base64(encoded)
    except ValueError:
        decoded = encoded
    return f"image {match[1] or 'unknown'} {len(decoded)} bytes sha256:{hashlib.sha256(decoded).hexdigest()[:12]}"
