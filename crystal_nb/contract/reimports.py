"""Change policy, persistence and the remote path: what the rest of the package makes of the adapter."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.contract.stage import CannotCheck, Check, Failed, Stage, check, some
from crystal_nb.contract.writers import WRITERS
from crystal_nb.errors import ConfigError
from crystal_nb.policy import CAREFUL, PINNED, Policy
from crystal_nb.records import counted
from crystal_nb.reimport import import_all
from crystal_nb.remote import SUPPORTED_SOURCES, remote_item, validate_remote
from crystal_nb.report import ImportReport
from crystal_nb.scenarios import own_subject, run_scenarios
from crystal_nb.scenarios.subjects import SampleSubject, Subject, subject_for
from crystal_nb.store import Store
from crystal_nb.store_open import open_store

__all__ = ["CHECKS"]

_POLICIES = (PINNED, CAREFUL)
_DONE = ("skip", "skip-short", "metadata-update")
_STAND_IN = "codex"
_NOBODY = "crystal-nb-nobody"
_SUPPORTED = ", ".join(sorted(SUPPORTED_SOURCES))


def _subject(stage: Stage) -> Subject:
    """A made-up conversation where the adapter can write one, else a copy of one of the samples."""
    try:
        if stage.adapter.name in WRITERS:
            return SampleSubject(stage.adapter.name, WRITERS[stage.adapter.name])
        return subject_for(stage.adapter)
    except ConfigError:
        reason = "and no sample has two messages, so that a copy of it would do"
    with stage.registered():  # it is looked for by its name there
        for candidate, parsed in stage.parsed:
            if len(parsed.conversation.messages) > 1:
                try:
                    return own_subject([candidate], config=stage.config())
                except Exception as error:  # whatever keeps a sample from being one is a reason to try the next
                    reason = str(error)
    raise CannotCheck(f"needs write_sample(home, sample), which jsonl_adapter's docstring explains: {reason}")


def _decides(stage: Stage, scenario: str) -> str:
    rows = run_scenarios(adapter=stage.adapter, subject=_subject(stage), names=[scenario])
    wrong = rows.filter(rows["ok"] == False)  # noqa: E712
    if not rows["ok"].any():
        raise CannotCheck(some([str(why) for why in rows["why"].unique(maintain_order=True)]))
    if wrong.height:
        told = wrong.select("policy", "step", "observed", "expected").rows()
        raise Failed("decided otherwise", ["{}, {}: {} instead of {}".format(*row) for row in told])
    return f"decided as documented by {' and '.join(rows['policy'].unique(maintain_order=True))}"


@check("change policy", "touch")
def touch(stage: Stage) -> str:
    """A file with another time: parsed, metadata update; then skipped (scenario ``time-only``)."""
    return _decides(stage, "time-only")


@check("change policy", "append")
def append(stage: Stage) -> str:
    """Messages appended: replaced (scenario ``appended``)."""
    return _decides(stage, "appended")


@check("change policy", "same-size edit")
def same_size_edit(stage: Stage) -> str:
    """Other content, size and time as before: skipped as pinned, replaced by careful rules (``changed-unseen``)."""
    return _decides(stage, "changed-unseen")


@check("change policy", "version bump")
def version_bump(stage: Stage) -> str:
    """Another parser version alone: skipped as pinned, parsed again by careful rules (``new-parser``)."""
    return _decides(stage, "new-parser")


@contextmanager
def _imported(stage: Stage, policy: Policy) -> Iterator[tuple[Store, list[Any], ImportReport]]:
    listed = [s.candidate for s in stage.samples]
    with (
        tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder,
        open_store(Path(folder, "imports.db"), profile=policy, config=stage.config()) as store,
    ):
        yield store, listed, _import(stage, policy, store, listed)


def _import(stage: Stage, policy: Policy, store: Store, listed: list[Any]) -> ImportReport:
    settings: Any = {"profile": policy, "adapters": [stage.adapter], "config": stage.config(), "progress": False}
    return import_all(store, listed, **settings)


@check("persistence", "stored rows")
def stored_rows(stage: Stage) -> str:
    """The rows that are stored give the hash that stands beside them, by both policies."""
    wrong, count = [], 0
    told = _told_elsewhere(stage)
    for policy in _POLICIES:
        with _imported(stage, policy) as (store, _, report):
            moved = {(row["from_conversation"]): row["message_id"] for row in report.stolen.iter_rows(named=True)}
            for outcome in report.outcomes:
                decision = outcome.decision
                if outcome.candidate.id in told:
                    continue
                if decision.action == "error":
                    wrong.append(f"{policy.name}: {decision.candidate_id}: {decision.reason}")
                elif decision.action == "insert" and decision.id is not None:
                    count += 1
                    if decision.content_hash not in store.rehash(decision.source, decision.id):
                        cause = _cause(stage, decision.id, moved.get(decision.id))
                        wrong.append(f"{policy.name}: {decision.id}: its rows give another hash{cause}")
    if wrong:
        raise Failed("not stored as parsed", wrong)
    if not count:
        raise CannotCheck("no sample has two messages, so none is stored")
    return f"{counted(count, 'conversation')} stored and read back"


def _told_elsewhere(stage: Stage) -> set[Any]:
    """Ids of candidates that can't be parsed, and of those that share one: other checks say so."""
    ids = Counter(s.candidate.id for s in stage.samples)
    return {s.candidate.id for s in stage.samples if s.parsed is None or ids[s.candidate.id] > 1}


def _cause(stage: Stage, id: str, message_id: str | None) -> str:
    """Why rows give another hash: messages of one id, or who made the id with which one moved elsewhere."""
    if message_id is None:
        own = [[m.id for m in p.conversation.messages] for _, p in stage.parsed if p.conversation.id == id]
        return ": several of its messages have one id" if any(len(set(ids)) < len(ids) for ids in own) else ""
    files = {s.candidate.file_path for s in stage.samples}
    copies = sum(Path(file).read_bytes().count(message_id.rpartition(":")[2].encode()) for file in files)
    whose = "the tool's own, in several records" if copies > 1 else "not in the files"
    return f": the message id {message_id} moved; it is {whose}"


@check("persistence", "reimport")
def reimport(stage: Stage) -> str:
    """Importing again changes nothing: every candidate is skipped, or its metadata noted, by both policies."""
    wrong = []
    for policy in _POLICIES:
        with _imported(stage, policy) as (store, listed, first):
            failed = {o.candidate.id for o in first.outcomes if o.decision.action == "error"} | _told_elsewhere(stage)
            again = _import(stage, policy, store, listed)
        wrong += [
            f"{policy.name}: {o.decision.candidate_id}: {o.decision.action}: {o.decision.reason}"
            for o in again.outcomes
            if o.decision.action not in _DONE and o.candidate.id not in failed
        ]
    if wrong:
        raise Failed("a second import changes these", wrong)
    return "a second import changes nothing"


@check("remote", "payload")
def payload(stage: Stage) -> str:
    """What the remote path sends of each conversation keeps every rule of a server.

    A server takes only five sources, so another one is sent under the name of one of them here.
    """
    name = stage.adapter.name if stage.adapter.name in SUPPORTED_SOURCES else _STAND_IN
    items = [_item(stage, c, p, name) for c, p in stage.parsed if len(p.conversation.messages) > 1]
    if not items:
        raise CannotCheck("no sample has two messages, so none is sent")
    refused = _refused(items)
    if refused:
        raise Failed("a server refuses these", [f"{path}: {reason}" for path, _, reason in refused])
    as_another = f", sent as {name}'s, since a server takes no source of another name than {_SUPPORTED}"
    return counted(len(items), "item") + (as_another if name != stage.adapter.name else "")


@check("remote", "unsupported source")
def unsupported(stage: Stage) -> str:
    """Under a name that a server does not know every item is refused for that."""
    name = _NOBODY if stage.adapter.name in SUPPORTED_SOURCES else stage.adapter.name
    items = [_item(stage, c, p, name) for c, p in stage.parsed]
    rules = [rule for _, rule, _ in _refused(items)]
    if rules != ["supported-source"] * len(items):
        sent = counted(len(items), "item")
        raise Failed(f"of {sent} of {name!r} {rules.count('supported-source')} are refused for their source")
    return f"{counted(len(items), 'item')} of {name} refused"


def _item(stage: Stage, candidate: Any, parsed: Any, name: str) -> dict[str, Any]:
    conversation = replace(parsed.conversation, source=name)
    named = replace(candidate, source=name, id=ecma.to_text(candidate.id))
    return remote_item(named, conversation, parser_version=stage.adapter.parser_version)


def _refused(items: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    frame = validate_remote({"version": 1, "items": items})
    wrong = frame.filter(frame["status"] == "error")
    return [(row["path"], row["rule"], row["error"]) for row in wrong.iter_rows(named=True)]


CHECKS: tuple[Check, ...] = (
    touch,
    append,
    same_size_edit,
    version_bump,
    stored_rows,
    reimport,
    payload,
    unsupported,
)
