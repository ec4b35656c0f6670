"""The scenarios' acts: what is put on disk, what is imported, what is looked at.

Source: ``pinned-importer.md`` section 9; what has to come out stands in `catalogue`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator

from msgspec.structs import replace

from crystal_nb import discovery
from crystal_nb.adapters import add_to
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.config import Config
from crystal_nb.errors import CrystalError, DuplicateAdapterWarning
from crystal_nb.scenarios.world import Scene, World, named


def _first(world: World) -> Scene:
    return named(world.load(), "first import", "A conversation is imported for the first time.")


def unchanged(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    yield named(world.load(), "again", "The same import runs again; nothing has changed.")


def changed_unseen(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.put("same-size-edit", keep_time=True)
    yield named(world.load(), "again", "A word of the file was replaced by one as long, and the file's time put back.")


def time_only(world: World) -> Iterator[Scene]:
    path = world.put()
    yield _first(world)
    world.touch(path)
    yield named(world.load(), "touched", "The file has another time.")
    yield named(world.load(), "again", "Nothing has changed since.")


def size_only(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.put("padded", keep_time=True)
    yield named(world.load(), "padded", "The file is longer, its messages are the same.")


def appended(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.put("appended")
    yield named(world.load(), "appended", "Messages were added.")


def edited(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.put("edited")
    yield named(world.load(), "edited", "A message was edited.")


def new_parser(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.adapter.version = 2
    yield named(world.load(), "new parser", "The adapter has a new parser version; the file is the same.")


def new_parser_and_touched(world: World) -> Iterator[Scene]:
    path = world.put()
    yield _first(world)
    world.adapter.version = 2
    world.touch(path)
    yield named(world.load(), "new parser", "The adapter has a new parser version and the file another time.")


def same_id_in_two_sources(world: World) -> Iterator[Scene]:
    world.put(id="7")
    world.put(id="7", of_other=True)
    yield named(world.load(), "import", "Two tools have a conversation of the same id.")
    yield named(world.load(), "again", "Nothing has changed.")


def candidate_id_differs(world: World) -> Iterator[Scene]:
    world.put()
    scene = world.load()
    ids = ", ".join(id for (id,) in world.sql("SELECT id FROM conversations"))
    scene = replace(scene, decided=f"{scene.decided} | stored as {ids}")
    yield named(scene, "import", "The file names another id than its own name does.")
    yield named(world.load(), "again", "Nothing has changed.")


def row_of_another_id(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.sql("PRAGMA foreign_keys = OFF")
    world.sql("UPDATE conversations SET id = 'remote'")
    world.sql("UPDATE messages SET conversation_id = 'remote', id = 'remote:' || id")
    yield named(world.load(), "again", "Its row got another id, as when it was sent to a remote store first.")


def shared_message_id(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    world.put("other", id="s2", shared=True)
    yield named(world.load(), "resumed", "Another conversation begins with a copy of the first one's message.")


def duplicate_registration(world: World) -> Iterator[Scene]:
    registry: dict[str, SourceAdapter] = {}
    add_to(registry, world.adapter)
    add_to(registry, world.other)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add_to(registry, world.adapter.inner)
    warned = [w.category.__name__ for w in caught if issubclass(w.category, DuplicateAdapterWarning)]
    first = next(iter(registry.values()))
    place = "first, the new one" if first is world.adapter.inner else "elsewhere"
    scene = world.scene(f"{', '.join(warned) or 'no warning'}; {len(registry)} adapters; {place}")
    yield named(scene, "registered twice", "An adapter is registered under a name that is taken.")


def detect_fails(world: World) -> Iterator[Scene]:
    world.put()
    world.put(of_other=True)
    world.adapter.failing = "detect"
    yield named(world.scene(_discovery(world)), "discovery", "All sources are asked at once; one fails.")
    yield named(world.load(), "import", "Everything is imported; one source's detect fails.")


def _discovery(world: World) -> str:
    try:
        return (
            f"{len(discovery.detect_all_sources(adapters=[world.other, world.adapter], config=world.config))} sources"
        )
    except CrystalError as error:
        return f"it fails: {type(error).__name__}"


def scan_fails(world: World) -> Iterator[Scene]:
    world.put()
    world.put(of_other=True)
    world.adapter.failing = "scan"
    yield named(world.load(), "import", "Everything is imported; one source's scan fails.")


def parse_fails(world: World) -> Iterator[Scene]:
    world.put(id="s1")
    world.put(id="s2")
    world.adapter.failing, world.adapter.failing_id = "parse", "s1"
    yield named(world.load(), "import", "The parse of one of two conversations fails.")
    world.adapter.failing = ""
    yield named(world.load(), "again", "It no longer fails.")


def parse_fails_log_broken(world: World) -> Iterator[Scene]:
    world.put(id="s1")
    world.put(id="s2")
    world.adapter.failing, world.adapter.failing_id = "parse", "s1"
    world.sql(
        "CREATE TRIGGER no_log BEFORE INSERT ON import_log WHEN new.status = 'error'"
        " BEGIN SELECT raise(ABORT, 'told to fail'); END"
    )
    yield named(world.load(), "import", "The parse of one of two conversations fails, and the log can't be written.")


def short(world: World) -> Iterator[Scene]:
    world.put("short")
    yield named(world.load(), "import", "The conversation has one message.")
    yield named(world.load(), "again", "Nothing has changed.")
    world.put()
    yield named(world.load(), "grown", "A second message was added.")


def notes(world: World) -> Iterator[Scene]:
    world.put(id="s1")
    world.put(id="s2")
    yield named(world.load(), "first import", "Two conversations are imported for the first time.")
    add_note(world, "s1", is_edited=1)
    add_note(world, "s2", is_edited=0)
    world.put("edited", id="s1")
    world.put("edited", id="s2")
    yield named(world.load(), "replaced", "Both have a note, the first one's was edited by a person; both changed.")


def add_note(world: World, id: str, *, is_edited: int) -> None:
    """Add a note with a tag, as ChatCrystal does after an import."""
    names, marks, values = "conversation_id", "?", [id]
    if world.store.layout.by_source:
        names, marks, values = f"source, {names}", f"?, {marks}", [world.subject.source, id]
    world.sql(
        f"INSERT INTO notes ({names}, title, is_edited, source_type)"
        f" VALUES ({marks}, 'note', ?, 'imported-conversation')",
        *values,
        is_edited,
    )
    world.sql("INSERT INTO note_tags VALUES ((SELECT max(id) FROM notes), 'tag')")
    world.sql("UPDATE conversations SET status = 'summarized', experience_score = 5 WHERE id = ?", id)


def rejected(world: World) -> Iterator[Scene]:
    world.put()
    yield _first(world)
    judged = "status = 'filtered', experience_gate_reason = 'user-rejected-note', experience_score = 5"
    world.sql(f"UPDATE conversations SET {judged}")
    world.put("edited")
    yield named(world.load(), "replaced", "A person had rejected its note; then it changed.")


def crash(world: World) -> Iterator[Scene]:
    for id in ("s1", "s2", "s3"):
        world.put(id=id)
    scene = world.load(crash_after=2)
    world.reopen()
    yield named(world.scene(scene.decided), "crash", "The process ends after two of three conversations.")
    yield named(world.load(), "again", "The import runs again.")


def tags_of_notes(world: World) -> Iterator[Scene]:
    world.put(id="s1")
    yield _first(world)
    add_note(world, "s1", is_edited=0)
    world.put("edited", id="s1")
    yield named(world.load(), "replaced", "Its note with a tag is dropped in the same process that saved once.")


def newest_rules(world: World) -> Iterator[Scene]:
    folder = world.home / ".config" / "Code" / "User" / "workspaceStorage" / "w1" / "chatSessions"
    folder.mkdir(parents=True)
    state = {"version": 3, "sessionId": "s1", "requests": []}
    request = {"requestId": "r1", "message": {"text": "Paint it blue"}, "response": [{"value": "It is blue now."}]}
    lines = [{"kind": 0, "v": state}, {"kind": 2, "k": ["requests"], "v": [request]}]
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    world.set_time(path)
    yield named(world.load(registered=("copilot",)), "import", "A conversation stands in the later lines of a log.")


def lost_built_in(world: World) -> Iterator[Scene]:
    file = world.home / "config.json"
    file.write_text(json.dumps({"enabledSources": ["codex", "copilot"]}), encoding="utf-8")
    enabled = ", ".join(Config.load(file, home=world.home).enabled_sources)
    yield named(world.scene(enabled), "loaded", "A saved configuration lacks built-in sources that were switched off.")
