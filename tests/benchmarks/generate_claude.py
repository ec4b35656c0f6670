"""A Claude Code home folder: ``.claude/projects/<slug>/<session>.jsonl``, records as of 2.0 to 2.1."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from texts import Texts
from writing import LineFile, session_sizes

_PROJECTS = ("-home-ada-projects-shop-api", "-srv-demo", "-Users-ada-code-web-ui", "-home-ada-projects-infra")
_VERSIONS = ("2.0.14", "2.0.76", "2.1.12", "2.1.40")
_READ_HINT = (
    "\n\n<system-reminder>\nWhenever you read a file, you should consider whether it looks malicious. "
    "You must refuse to improve or augment such code.\n</system-reminder>\n"
)


@dataclass(frozen=True)
class Mix:
    """Median lengths in characters, and how often things happen."""

    prompt: float
    answer: float
    thinking: float
    output: float
    steps: tuple[int, int]
    say: float
    """Chance that a step has text before its tool call."""
    progress: float
    """Chance of progress records after a tool call."""
    sigma: float


MIXES = {
    "tool-heavy": Mix(180, 380, 420, 9_000, (4, 26), 0.30, 0.35, 1.25),
    "text-rich": Mix(800, 2_000, 1_700, 1_300, (1, 4), 0.80, 0.25, 0.9),
}


def generate(home: Path, mix: str, total: int, seed: int = 7) -> None:
    """Write sessions until they hold ``total`` bytes."""
    rng = random.Random(f"claude {mix} {seed}")
    texts = Texts(rng)
    for number, size in enumerate(session_sizes(rng, total)):
        project = rng.choice(_PROJECTS)
        path = home / ".claude" / "projects" / project / f"{texts.uuid()}.jsonl"
        with LineFile(path) as file:
            _Session(file, texts, MIXES[mix], number).write(size)


class _Session:
    def __init__(self, file: LineFile, texts: Texts, mix: Mix, number: int) -> None:
        self.file, self.texts, self.mix, self.rng = file, texts, mix, texts.rng
        self.id = file.path.stem
        self.version = self.rng.choice(_VERSIONS)
        self.arrow = "→" if self.version.startswith("2.0") else "\t"
        self.time = datetime(2026, 1, 1) + timedelta(hours=number)
        self.parent: str | None = None
        self.model = "claude-example-4"
        self.slug = f"{texts.words(1)}-{texts.words(1)}-{texts.words(1)}"
        self.tools: list[Callable[[], tuple[str, dict[str, Any], str, Any]]] = [
            self._bash,
            self._bash,
            self._read,
            self._read,
            self._edit,
            self._grep,
        ]

    def write(self, size: int) -> None:
        if self.rng.random() < 0.3:
            self.file.add({"type": "summary", "summary": self.texts.words(5), "leafUuid": self.texts.uuid()})
        while self.file.size < size:
            self._turn(size)
        self.file.add({"type": "last-prompt", "lastPrompt": self.texts.words(9), "sessionId": self.id})
        if self.rng.random() < 0.03:
            self.file.tear()

    def _turn(self, size: int) -> None:
        self._prompt()
        for _ in range(self.rng.randint(*self.mix.steps)):
            self._step()
            if self.file.size > size:
                break
        self._assistant([self._text(self.mix.answer)])
        self._end_of_turn()

    def _prompt(self) -> None:
        rng, texts = self.rng, self.texts
        if rng.random() < 0.04:
            self._command()
        text = texts.prose(texts.size(self.mix.prompt, 1.1, 60_000))
        if rng.random() < 0.1:
            text += f"\n<system-reminder>\n{texts.words(30)}\n</system-reminder>"
        content: Any = text if rng.random() < 0.7 else [{"type": "text", "text": text}]
        if rng.random() < 0.01:
            source = {"type": "base64", "media_type": "image/png", "data": texts.opaque(texts.size(30_000))}
            content = [{"type": "text", "text": text}, {"type": "image", "source": source}]
        self._chain("user", message={"role": "user", "content": content}, permissionMode="default")
        self._snapshot()

    def _command(self) -> None:
        tags = "<command-name>/compact</command-name>\n<command-message>compact</command-message>"
        self._chain("user", message={"role": "user", "content": f"{tags}\n<command-args></command-args>"})
        output = f"<local-command-stdout>{self.texts.words(6)}</local-command-stdout>"
        self._chain("user", message={"role": "user", "content": output})

    def _snapshot(self) -> None:
        backups = {
            self.texts.path(): {"backupFileName": f"{self.texts.hex(16)}@v2", "version": 2, "backupTime": self._stamp()}
            for _ in range(self.rng.randint(0, 8))
        }
        snapshot = {"messageId": self.parent, "trackedFileBackups": backups, "timestamp": self._stamp()}
        record = {"type": "file-history-snapshot", "messageId": self.parent, "snapshot": snapshot}
        self.file.add({**record, "isSnapshotUpdate": False})

    def _step(self) -> None:
        rng, mix = self.rng, self.mix
        blocks: list[dict[str, Any]] = []
        if rng.random() < 0.45:
            thinking = self.texts.prose(self.texts.size(mix.thinking))
            blocks.append(
                {"type": "thinking", "thinking": thinking, "signature": self.texts.opaque(rng.randint(200, 900))}
            )
        if rng.random() < mix.say:
            blocks.append(self._text(mix.answer))
        name, arguments, shown, result = rng.choice(self.tools)()
        call = f"toolu_01{self.texts.hex(22)}"
        self._assistant([*blocks, {"type": "tool_use", "id": call, "name": name, "input": arguments}])
        if rng.random() < mix.progress:
            self._progress(call, rng.randint(1, 6))
        block = {"tool_use_id": call, "type": "tool_result", "content": shown}
        if name == "Bash":
            block["is_error"] = False
        self._chain("user", message={"role": "user", "content": [block]}, toolUseResult=result)

    def _assistant(self, blocks: list[dict[str, Any]]) -> None:
        """One response: a line per content block, usage repeated on each."""
        message_id, request = f"msg_01{self.texts.hex(22)}", f"req_011{self.texts.hex(21)}"
        usage = {
            "input_tokens": self.rng.randint(1, 12),
            "cache_creation_input_tokens": self.rng.randint(0, 9_000),
            "cache_read_input_tokens": self.rng.randint(10_000, 160_000),
            "cache_creation": {"ephemeral_5m_input_tokens": self.rng.randint(0, 9_000), "ephemeral_1h_input_tokens": 0},
            "output_tokens": self.rng.randint(1, 900),
            "service_tier": "standard",
        }
        head = {"model": self.model, "id": message_id, "type": "message", "role": "assistant"}
        for block in blocks:
            tail = {"stop_reason": None, "stop_sequence": None, "usage": usage}
            self._chain("assistant", message={**head, "content": [block], **tail}, requestId=request)

    def _text(self, median: float) -> dict[str, Any]:
        return {"type": "text", "text": self.texts.prose(self.texts.size(median, self.mix.sigma))}

    def _progress(self, call: str, count: int) -> None:
        output = self.texts.log(self.texts.size(300))
        for second in range(count):
            data = {
                "type": "bash_progress",
                "output": output[-400:],
                "fullOutput": output,
                "elapsedTimeSeconds": second,
            }
            self._chain("progress", data=data, toolUseID=f"bash-progress-{second}", parentToolUseID=call)

    def _end_of_turn(self) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            self._chain("system", subtype="turn_duration", durationMs=rng.randint(2_000, 900_000), isMeta=False)
        if rng.random() < 0.08:
            attachment = {"type": "queued_command", "prompt": self.texts.words(12), "commandMode": "prompt"}
            self._chain("attachment", attachment=attachment)
        if rng.random() < 0.02:
            meta = {"trigger": "auto", "preTokens": 155_000}
            self._chain("system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=meta)
            summary = f"This session is being continued.\n{self.texts.prose(self.texts.size(6_000))}"
            self._chain("user", message={"role": "user", "content": summary}, isCompactSummary=True)

    def _chain(self, kind: str, **members: Any) -> None:
        uuid = self.texts.uuid()
        self.time += timedelta(milliseconds=self.rng.randint(1, 9_000))
        self.file.add(
            {
                "parentUuid": self.parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/srv/demo",
                "sessionId": self.id,
                "version": self.version,
                "gitBranch": "main",
                "slug": self.slug,
                "type": kind,
                **members,
                "uuid": uuid,
                "timestamp": self._stamp(),
            }
        )
        self.parent = uuid

    def _stamp(self) -> str:
        return f"{self.time.isoformat(timespec='milliseconds')}Z"

    # Tools: name, input, what the model sees, the structured double of it.

    def _length(self) -> int:
        return self.texts.size(self.mix.output, self.mix.sigma)

    def _bash(self) -> tuple[str, dict[str, Any], str, Any]:
        out = self.texts.log(self._length())
        arguments = {
            "command": f'rg -n "{self.texts.words(1)}" {self.texts.path()} | head -50',
            "description": self.texts.words(5),
        }
        return "Bash", arguments, out, {"stdout": out, "stderr": "", "interrupted": False, "isImage": False}

    def _read(self) -> tuple[str, dict[str, Any], str, Any]:
        path, code = self.texts.path(), self.texts.code(self._length())
        lines = code.split("\n")
        shown = "\n".join(f"{n:>6}{self.arrow}{line}" for n, line in enumerate(lines, 1)) + _READ_HINT
        file = {"filePath": path, "content": code, "numLines": len(lines), "startLine": 1, "totalLines": len(lines)}
        return "Read", {"file_path": path}, shown, {"type": "text", "file": file}

    def _edit(self) -> tuple[str, dict[str, Any], str, Any]:
        path, original = self.texts.path(), self.texts.code(self._length())
        old, new = self.texts.code(160), self.texts.code(200)
        shown = f"The file {path} has been updated. Here's the result of running `cat -n` on a snippet of it:\n{new}"
        patch = [{"oldStart": 4, "oldLines": 6, "newStart": 4, "newLines": 7, "lines": [f"-{old}", f"+{new}"]}]
        result = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": original,
            "structuredPatch": patch,
        }
        return "Edit", {"file_path": path, "old_string": old, "new_string": new}, shown, {**result, "replaceAll": False}

    def _grep(self) -> tuple[str, dict[str, Any], str, Any]:
        paths = [self.texts.path() for _ in range(self.rng.randint(1, 30))]
        shown = f"Found {len(paths)} files\n" + "\n".join(paths)
        result = {"mode": "files_with_matches", "filenames": paths, "numFiles": len(paths)}
        return "Grep", {"pattern": self.texts.words(2), "output_mode": "files_with_matches"}, shown, result
