"""A Codex home folder: ``.codex/sessions/YYYY/MM/DD/rollout-….jsonl``, legacy history mode, early 2026."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from texts import Texts
from writing import LineFile, session_sizes


@dataclass(frozen=True)
class Mix:
    """Median lengths in characters, and how often things happen."""

    prompt: float
    answer: float
    output: float
    steps: tuple[int, int]
    say: float
    sealed: int
    """Length of a reasoning item's encrypted content."""
    instructions: int
    """Length of the base instructions in the first line."""


MIXES = {
    "tool-heavy": Mix(200, 420, 16_000, (3, 20), 0.35, 900, 18_000),
    "text-rich": Mix(1_400, 3_600, 330, (1, 3), 0.95, 400, 2_000),
}


def generate(home: Path, mix: str, total: int, seed: int = 7) -> None:
    """Write sessions until they hold ``total`` bytes."""
    rng = random.Random(f"codex {mix} {seed}")
    texts = Texts(rng)
    for number, size in enumerate(session_sizes(rng, total)):
        start = datetime(2026, 1, 1) + timedelta(hours=2 * number)
        thread = texts.uuid()
        name = f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        with LineFile(home / ".codex" / "sessions" / f"{start:%Y/%m/%d}" / name) as file:
            _Thread(file, texts, MIXES[mix], thread, start).write(size)


class _Thread:
    def __init__(self, file: LineFile, texts: Texts, mix: Mix, id: str, start: datetime) -> None:
        self.file, self.texts, self.mix, self.rng = file, texts, mix, texts.rng
        self.id, self.time, self.turn = id, start, 0
        self.tokens = 0

    def write(self, size: int) -> None:
        self._meta()
        while self.file.size < size:
            self._turn(size)
        if self.rng.random() < 0.03:
            self.file.tear()

    def _meta(self) -> None:
        self._line(
            "session_meta",
            {
                "id": self.id,
                "timestamp": self._stamp(),
                "cwd": "/srv/demo",
                "originator": "codex_cli_rs",
                "cli_version": "0.104.0",
                "source": "cli",
                "model_provider": "openai",
                "base_instructions": {"text": self.texts.prose(self.mix.instructions)},
                "git": {
                    "commit_hash": self.texts.hex(40),
                    "branch": "main",
                    "repository_url": "https://git.invalid/demo",
                },
            },
        )

    def _turn(self, size: int) -> None:
        self.turn += 1
        self._event("task_started", turn_id=f"t{self.turn}", model_context_window=258_400)
        self._context()
        self._user(self.texts.prose(self.texts.size(self.mix.prompt, 1.1, 60_000)))
        for _ in range(self.rng.randint(*self.mix.steps)):
            self._step()
            if self.file.size > size:
                break
        self._say(self.mix.answer, "final_answer")
        self._event("task_complete", turn_id=f"t{self.turn}", last_agent_message=None)

    def _context(self) -> None:
        sandbox = {"type": "workspace-write", "network_access": False}
        context = {
            "turn_id": f"t{self.turn}",
            "cwd": "/srv/demo",
            "approval_policy": "on-request",
            "sandbox_policy": sandbox,
        }
        self._line("turn_context", {**context, "model": "model-x-codex", "effort": "medium", "summary": "auto"})
        if self.turn == 1:
            text = f"<environment_context>\n  <cwd>/srv/demo</cwd>\n  {self.texts.words(20)}\n</environment_context>"
            self._item("message", role="user", content=[{"type": "input_text", "text": text}])

    def _user(self, text: str) -> None:
        if self.rng.random() < 0.1:
            tabs = f"# Context from my IDE setup:\n\n## Open tabs:\n- {self.texts.path()}"
            text = f"{tabs}\n\n## My request for Codex:\n{text}\n"
        self._item("message", role="user", content=[{"type": "input_text", "text": text}])
        self._event("user_message", message=text, images=[], local_images=[], text_elements=[])

    def _step(self) -> None:
        rng, texts = self.rng, self.texts
        if rng.random() < 0.6:
            title = f"**{texts.words(4).capitalize()}**"
            self._event("agent_reasoning", text=title)
            sealed = texts.opaque(texts.size(self.mix.sealed, 0.5))
            self._item(
                "reasoning", summary=[{"type": "summary_text", "text": title}], content=None, encrypted_content=sealed
            )
        if rng.random() < self.mix.say:
            self._say(self.mix.answer * 0.5, "commentary")
        self._call()
        self._tokens()

    def _say(self, median: float, phase: str) -> None:
        text = self.texts.prose(self.texts.size(median))
        self._event("agent_message", message=text, phase=phase)
        self._item("message", role="assistant", content=[{"type": "output_text", "text": text}], phase=phase)

    def _call(self) -> None:
        texts, call = self.texts, f"call_{self.texts.hex(24)}"
        length = texts.size(self.mix.output, 1.1)
        if self.rng.random() < 0.2:
            patch = f"*** Begin Patch\n*** Update File: {texts.path()}\n@@\n{texts.code(length // 8)}\n*** End Patch"
            self._item("custom_tool_call", status="completed", call_id=call, name="apply_patch", input=patch)
            self._item(
                "custom_tool_call_output", call_id=call, output="Success. Updated the following files:\nM app.py\n"
            )
            return
        command = {"cmd": f'sed -n "1,200p" {texts.path()}', "workdir": "/srv/demo"}
        self._item("function_call", name="exec_command", arguments=json.dumps(command), call_id=call)
        body = texts.log(length) if self.rng.random() < 0.5 else texts.code(length)
        head = f"Chunk ID: {texts.hex(6)}\nWall time: 0.0521 seconds\nProcess exited with code 0\nOutput:\n"
        self._item("function_call_output", call_id=call, output=head + body)

    def _tokens(self) -> None:
        used = self.rng.randint(1_000, 120_000)
        self.tokens += used
        last = {
            "input_tokens": used,
            "cached_input_tokens": used // 2,
            "output_tokens": 210,
            "reasoning_output_tokens": 64,
        }
        total = {**last, "input_tokens": self.tokens, "total_tokens": self.tokens + 210}
        info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
        limits = {"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1767323045}, "secondary": None}
        self._event("token_count", info=info, rate_limits=limits)

    def _event(self, kind: str, **members: Any) -> None:
        self._line("event_msg", {"type": kind, **members})

    def _item(self, kind: str, **members: Any) -> None:
        self._line("response_item", {"type": kind, **members})

    def _line(self, kind: str, payload: dict[str, Any]) -> None:
        self.time += timedelta(milliseconds=self.rng.randint(0, 4_000))
        self.file.add({"timestamp": self._stamp(), "type": kind, "payload": payload})

    def _stamp(self) -> str:
        return f"{self.time.isoformat(timespec='milliseconds')}Z"
