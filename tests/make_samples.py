"""Write the sample histories under ``fixtures/<source>/sample/home``: ``python tests/make_samples.py``.

The stories are invented; the shapes are those of ``scenario.toml`` beside each. Two runs give the
same bytes. The goldens in ``expected/`` are frozen and not touched.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures"
FENCE = "```"
ORCHARD = "/home/ada/projects/orchard"


def fresh(source: str) -> Path:
    home = FIXTURES / source / "sample" / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


def write_lines(path: Path, records: list[Any], tail: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records]
    path.write_text("\n".join(lines) + "\n" + tail, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8", newline="\n")


def write_database(path: Path, tables: dict[str, list[tuple[str, Any]]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size=1024")
    for table, rows in tables.items():
        connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        texts = [(k, v if v is None or isinstance(v, (str, bytes)) else json.dumps(v)) for k, v in rows]
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", texts)
    connection.commit()
    connection.close()


class ClaudeSession:
    """Builds the lines of one Claude Code session."""

    def __init__(self, session: str, day: str) -> None:
        self.session, self.day = session, day
        self.lines: list[Any] = []
        self.parent: str | None = None

    def add(self, type: str, **fields: Any) -> None:
        uuid = f"{self.session[:4]}-{len(self.lines):02d}"
        line = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": ORCHARD,
            "sessionId": self.session,
            "version": "2.1.40",
            "gitBranch": "main",
            "type": type,
            **fields,
            "uuid": uuid,
            "timestamp": f"{self.day}T09:{len(self.lines):02d}:00.000Z",
        }
        self.lines.append(line)
        self.parent = uuid

    def say(self, text: Any) -> None:
        self.add("user", message={"role": "user", "content": text})

    def answer(self, *blocks: dict[str, Any]) -> None:
        message = {"id": f"msg_{len(self.lines)}", "role": "assistant", "model": "model-x", "content": list(blocks)}
        self.add("assistant", message=message)

    def result(self, call: str, text: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}
        self.add("user", message={"role": "user", "content": [block]}, toolUseResult={"stdout": text})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": "c2ln"}


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def claude_code() -> None:
    projects = fresh("claude-code") / ".claude" / "projects" / "-home-ada-projects-orchard"
    first = ClaudeSession("3f1c9a52-0000-4000-8000-000000000001", "2026-01-05")
    first.say("The harvest report shows <b>last year's</b> totals. Can you find out why?")
    first.answer(thinking("The report is built in report.py; look there first."))
    first.answer(text("I'll look at how the report picks its year."), call("toolu_1", "Read", file_path="report.py"))
    first.result("toolu_1", "def totals(rows):\n    return [r for r in rows if r.year == 2025]\n")
    code = f"{FENCE}python\nyear = max(r.year for r in rows)\n{FENCE}"
    fix = f"The year is hard-coded. Use the newest one instead:\n\n{code}"
    first.answer(text(fix))
    first.say("<system-reminder>The user opened report.py</system-reminder>Yes, please do that.")
    first.answer(call("toolu_2", "Edit", file_path="report.py"))
    first.result("toolu_2", "The file report.py has been updated.")
    first.add("system", subtype="turn_duration", durationMs=8123)
    first.answer(text("Done: the report now takes the newest year — 12 tests pass. 🍎"))
    first.lines.append({"type": "summary", "summary": "Harvest report year", "leafUuid": first.parent})
    write_lines(projects / f"{first.session}.jsonl", first.lines, tail='{"parentUuid":"3f1c-09","type":"user","mess')

    second = ClaudeSession("3f1c9a52-0000-4000-8000-000000000002", "2026-01-06")
    second.say("<command-name>/clear</command-name>")
    second.say("Which apple sorts are in the seed data?")
    write_lines(projects / f"{second.session}.jsonl", second.lines)

    child = ClaudeSession(first.session, "2026-01-05")
    child.say("Find every place that reads the year.")
    child.answer(text("Only report.py and its test do."))
    for line in child.lines:
        line.update(isSidechain=True, agentId="a17")
    write_lines(projects / first.session / "subagents" / "agent-a17.jsonl", child.lines)


def codex_line(second: int, kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-07T10:00:{second:02d}.000Z", "type": kind, "payload": payload}


def codex() -> None:
    home = fresh("codex") / ".codex"
    day = home / "sessions" / "2026" / "01" / "07"
    thread = "0190aaaa-0000-7000-8000-000000000001"
    meta = {"id": thread, "cwd": ORCHARD, "cli_version": "0.104.0", "git": {"branch": "pruning"}}
    answer = "I will list the routes first."
    write_lines(
        day / f"rollout-2026-01-07T10-00-00-{thread}.jsonl",
        [
            codex_line(0, "session_meta", **meta),
            codex_line(1, "turn_context", cwd=ORCHARD, model="model-y"),
            codex_line(2, "response_item", type="message", role="user", content=[{"type": "input_text", "text": "hi"}]),
            codex_line(3, "event_msg", type="user_message", message="Add a --dry-run flag to prune"),
            codex_line(4, "response_item", type="reasoning", summary=[], encrypted_content="AA=="),
            codex_line(5, "event_msg", type="agent_message", message=answer),
            codex_line(
                6, "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": answer}]
            ),
            codex_line(7, "response_item", type="function_call", name="shell", arguments="{}", call_id="c1"),
            codex_line(8, "response_item", type="function_call_output", call_id="c1", output="cli.py\nprune.py"),
            codex_line(9, "event_msg", type="agent_message", message=f"Added.\n{FENCE}sh\nprune --dry-run\n{FENCE}"),
        ],
    )
    fork = "0190aaaa-0000-7000-8000-000000000002"
    write_lines(
        day / f"rollout-2026-01-07T11-00-00-{fork}.jsonl",
        [
            codex_line(0, "session_meta", **{**meta, "id": fork, "forked_from_id": thread}),
            codex_line(0, "session_meta", **meta),
            codex_line(20, "event_msg", type="user_message", message="And a test for it"),
            codex_line(21, "event_msg", type="agent_message", message="The test covers both ways."),
        ],
    )
    paginated = "0190aaaa-0000-7000-8000-000000000003"
    item = {"type": "UserMessage", "id": "m1", "content": [{"type": "text", "text": "Rename prune to trim"}]}
    write_lines(
        day / f"rollout-2026-01-07T12-00-00-{paginated}.jsonl",
        [
            codex_line(0, "session_meta", **{**meta, "id": paginated, "history_mode": "paginated"}),
            codex_line(1, "event_msg", type="item_completed", thread_id=paginated, item=item),
            codex_line(
                2,
                "response_item",
                type="message",
                role="assistant",
                content=[{"type": "output_text", "text": "Renamed."}],
            ),
        ],
    )
    write_lines(home / "session_index.jsonl", [{"id": thread, "thread_name": "Dry run for prune"}])


def bubble(conversation: str, id: str, type: int, text: str, minute: int | None = None, **more: Any) -> tuple[str, Any]:
    value = {"_v": 3, "type": type, "bubbleId": id, "text": text, **more}
    if minute is not None:
        value["createdAt"] = f"2026-01-08T11:{minute:02d}:00.000Z"
    return f"bubbleId:{conversation}:{id}", value


def cursor() -> None:
    user = fresh("cursor") / ".config" / "Cursor" / "User"
    known, orphan = "5a0e0000-0000-4000-8000-00000000000a", "5a0e0000-0000-4000-8000-00000000000b"
    tool = {"tool": 21, "name": "read_file_v2", "status": "completed", "result": "x"}
    write_database(
        user / "globalStorage" / "state.vscdb",
        {
            "ItemTable": [],
            "cursorDiskKV": [
                (f"composerData:{known}", {"_v": 10, "composerId": known, "name": "Rename helper"}),
                bubble(known, "b1", 1, "Rename foo to pick_apples", 1),
                bubble(known, "b2", 2, "", 2, capabilityType=30, thinking={"text": "Find usages first."}),
                bubble(known, "b3", 2, "", 3, capabilityType=15, toolFormerData=tool),
                bubble(known, "b4", 2, "Renamed in two files.", 4, isAgentic=True, codeBlocks=[{"content": "x"}]),
                bubble(orphan, "b1", 1, "What does basket() do?", 10),
                bubble(orphan, "b2", 2, "It sums the weights.", 11),
            ],
        },
    )
    window = user / "workspaceStorage" / "0f00000000000000000000000000000a"
    write_json(window / "workspace.json", {"folder": "file:///home/ada/projects/orchard"})
    head = {"type": "head", "composerId": known, "name": "Rename helper", "createdAt": 1767870060000}
    composers = {"allComposers": [head], "selectedComposerId": known}
    write_database(window / "state.vscdb", {"ItemTable": [("composer.composerData", composers)]})


def trae() -> None:
    user = fresh("trae") / ".config" / "Trae" / "User"
    window = user / "workspaceStorage" / "0f00000000000000000000000000000b"
    write_json(window / "workspace.json", {"folder": "file:///home/ada/projects/my%20orchard"})
    steps = [
        {
            "thought": "Open the file",
            "toolName": "view_files",
            "reasoningContent": "Need context",
            "result": "x = [2,1]",
        },
        {"thought": "Sorted the rows in rows.py.", "toolName": "finish"},
    ]
    task = {
        "proposal": "I will sort them.",
        "proposalReasoningContent": "Small change.",
        "guideline": {"planItems": steps},
    }
    messages = [
        {"role": "system", "content": "Answer briefly.", "turnIndex": 0},
        {"role": "user", "content": "Sort the rows", "turnId": "t1", "turnIndex": 0, "timestamp": 1767952800500},
        {
            "role": "assistant",
            "content": "",
            "turnId": "t1",
            "turnIndex": 0,
            "agentMessageId": "m2",
            "agentTaskContent": task,
        },
    ]
    listed = [
        {
            "sessionId": "665000000000000000000001",
            "createdAt": 1767952800000,
            "updatedAt": 1767952860000,
            "title": "Sort rows",
            "messages": messages,
        },
        {"sessionId": "665000000000000000000002", "createdAt": 1767952900000, "messages": []},
    ]
    storage = {"list": listed, "currentSessionId": "665000000000000000000001"}
    write_database(window / "state.vscdb", {"ItemTable": [("memento/icube-ai-agent-storage", storage)]})


def copilot() -> None:
    user = fresh("copilot") / ".config" / "Code" / "User"
    window = user / "workspaceStorage" / "0f00000000000000000000000000000c"
    write_json(window / "workspace.json", {"folder": "file:///home/ada/projects/orchard"})
    read_file = {
        "kind": "toolInvocationSerialized",
        "toolId": "copilot_readFile",
        "toolCallId": "k1",
        "isComplete": True,
    }
    reference = {"kind": "inlineReference", "inlineReference": {"path": "/home/ada/a.py", "scheme": "file"}}
    request = {
        "requestId": "request_1",
        "timestamp": 1768039200000,
        "message": {"text": "Explain the pruning rule", "parts": []},
        "response": [
            {"kind": "thinking", "value": "Look at the rule."},
            read_file,
            {"value": "Branches older than three years are cut, see "},
            reference,
            {"value": f"{FENCE}python\nage > 3\n{FENCE}"},
        ],
    }
    session = {
        "version": 3,
        "sessionId": "c0de0000-0000-4000-8000-000000000001",
        "creationDate": 1768039200000,
        "customTitle": "Pruning rule",
        "requests": [request],
    }
    write_json(window / "chatSessions" / f"{session['sessionId']}.json", session)
    log = {**session, "sessionId": "c0de0000-0000-4000-8000-000000000002", "customTitle": None, "requests": []}
    prompt = {
        "requestId": "request_2",
        "timestamp": 1768042800000,
        "message": {"text": "And for pears?"},
        "response": [],
    }
    write_lines(
        window / "chatSessions" / f"{log['sessionId']}.jsonl",
        [
            {"kind": 0, "v": log},
            {"kind": 2, "k": ["requests"], "v": [prompt]},
            {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "The same, but after four years."}]},
            {"kind": 1, "k": ["customTitle"], "v": "Pears"},
        ],
    )


if __name__ == "__main__":
    for make in (claude_code, codex, cursor, trae, copilot):
        make()
