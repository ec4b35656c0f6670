"""Commands about conversations and stores: parse, import, plan, scenarios, remote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from crystal_nb import importer, reimport, remote, samples, scenarios, show
from crystal_nb.cli_common import (
    Home,
    Json,
    Names,
    OptionalProfile,
    ProfileName,
    StorePath,
    configuration,
    default_store,
    run,
    stop,
)
from crystal_nb.config import Config
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.errors import RemotePayloadError
from crystal_nb.policy import CAREFUL, Policy, policy_of
from crystal_nb.progress import shown
from crystal_nb.records import Candidate
from crystal_nb.report import ImportReport, Outcome
from crystal_nb.store import Store
from crystal_nb.store_open import open_store

__all__ = ["import_", "parse", "plan", "remote_app", "run_scenarios"]


Parquet = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the four frames as Parquet files into this folder.")
]


class Found(NamedTuple):
    """What there is to read."""

    candidates: list[Candidate]
    config: Config
    are_samples: bool


def _find(names: list[str] | None, home: Path | None, profile: str) -> Found:
    """Candidates; without SOURCE and --home those of the samples where the machine has none."""
    config = configuration(home)
    found = run(importer.find_candidates, *names or (), profile=profile, config=config)
    if found or home is not None or names:
        if not found:
            show.note(f"No histories found of {', '.join(names or ['any source'])} in {config.home_path}")
        return Found(found, config, False)
    show.note("No histories found here; reading the bundled samples instead. (See: crystal-nb sources)")
    config = samples.config()
    return Found(run(importer.find_candidates, profile=profile, config=config), config, True)


def parse(
    names: Names = None,
    home: Home = None,
    json: Json = False,
    profile: ProfileName = "chatcrystal",
    parquet: Parquet = None,
) -> None:
    """Parse what is there and show it: conversations, content hashes, and what was lost; nothing is stored.

    Without SOURCE and --home, and with no histories on the machine, the bundled samples are read
    instead; it says so, and JSON has "samples": true.

    Exit codes: 0 all parsed, 1 some conversations failed, 2 could not run.
    """
    candidates, config, are_samples = _find(names, home, run(_profile, None, profile))
    with shown(len(candidates), "Parsing") as step:
        corpus = run(importer.parse, candidates, config=config, on_progress=lambda *_: step())
    if parquet is not None:
        _write_parquet(corpus, parquet)
    show.parsed(corpus, json=json, samples=are_samples)
    if corpus.failed:
        raise typer.Exit(1)


def import_(
    names: Names = None,
    home: Home = None,
    json: Json = False,
    store: StorePath = None,
    profile: OptionalProfile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
) -> None:
    """Import what is there into a store: conversations, content hashes, decisions, and what was lost.

    What looks unchanged since the last import is skipped. No tool's file is touched. Without SOURCE
    and --home, and with no histories on the machine, the bundled samples are read instead; it says
    so, and JSON has "samples": true. Samples and another --home are stored only where --store says.

    Exit codes: 0 all imported, 1 some conversations failed, 2 could not run.
    """
    profile = run(_profile, store, profile)
    candidates, config, are_samples = _find(names, home, profile)
    path = store or (None if are_samples or home is not None else default_store(profile))
    with _opened(path, profile, config, write=not dry_run) as opened:
        corpus, report = run(_import_into, opened, candidates, profile, config)
    if dry_run:
        show.note("Dry run: nothing was written.")
    else:
        show.note("Nothing was stored; --store FILE does that." if path is None else f"Stored in {path}")
    show.imported(corpus, report, json=json, samples=are_samples, store=None if path is None else str(path))
    if report.errors and not are_samples:
        raise typer.Exit(1)


def _profile(store: Path | None, wanted: str | None) -> str:
    """The profile that was asked for, else that of the store that is there, else the pinned one."""
    if wanted is not None:
        return _profile_of(policy_of(wanted))
    if store is None or not store.exists():
        return "chatcrystal"
    with open_store(store, read_only=True) as there:
        return _profile_of(there.policy())


def _profile_of(policy: Policy) -> str:
    return "careful" if policy is CAREFUL else "chatcrystal"


def _opened(path: Path | None, profile: str, config: Config, *, write: bool) -> Store:
    """The store to write to, or a copy of it, or an empty one in memory."""
    if path is not None and (write or path.exists()):
        if write and path == default_store(profile):
            _make_folder(path.parent)
        opened = run(open_store, path, profile=profile, read_only=not write, config=config)
        return opened if write else run(opened.copy, policy_of(profile))
    return Store.in_memory(policy_of(profile), config)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"can't write to {folder}: {error.strerror or error}")


def _import_into(store: Store, found: list[Candidate], profile: str, config: Config) -> tuple[Corpus, ImportReport]:
    """Import, and keep what was parsed on the way to be shown."""
    parsed: list[ParsedConversation] = []

    def keep(outcome: Outcome) -> None:
        d, result = outcome.decision, outcome.parsed
        if result is not None:
            parsed.append(
                ParsedConversation(
                    outcome.candidate, result.conversation, result.fates, d.content_hash or "", d.parser_version or ""
                )
            )

    report = reimport.import_all(store, found, profile=profile, config=config, on_outcome=keep)
    unparsed = (o for o in report.outcomes if o.decision.action == "error" and o.decision.message_count is None)
    failures = [Failure(o.candidate, "error", o.decision.reason) for o in unparsed]
    return Corpus(parsed, failures), report


def _write_parquet(corpus: Corpus, folder: Path) -> None:
    _make_folder(folder)
    try:
        for name in ("conversations", "messages", "fates", "failures"):
            getattr(corpus, name).write_parquet(folder / f"{name}.parquet")
    except OSError as error:
        stop(f"can't write to {folder}: {error.strerror or error}")
    show.note(f"Wrote conversations, messages, fates and failures to {folder}")


def plan(
    names: Names = None,
    home: Home = None,
    json: Json = False,
    store: StorePath = None,
    profile: OptionalProfile = None,
) -> None:
    """Say what an import would do with each conversation, and why; nothing is written.

    The store can be a ChatCrystal database, which is only read. Samples and another --home are
    compared with an empty store unless --store names one, as an import would not store them.

    Exit codes: 0 all would go well, 1 some conversations would fail, 2 could not run.
    """
    if store is not None and not store.exists():
        stop(f"--store: there is no {store}")
    rules = run(_profile, store, profile)
    candidates, config, are_samples = _find(names, home, rules)
    path = store or (None if are_samples or home is not None else default_store(rules))
    if path is None or not path.exists():
        show.note("Compared with an empty store." if path is None else f"No store at {path} yet; everything is new.")
    known = run(open_store, path, read_only=True, config=config) if path is not None and path.exists() else None
    with known or Store.in_memory(policy_of(rules), config) as opened:
        frame = run(reimport.plan, candidates, opened, profile=rules, config=config)
    show.rows("Plan", list(frame.iter_rows(named=True)), show.DECISION_COLUMNS, json=json)
    if not opened.suits(policy_of(rules)):
        show.note(f"An import by these rules needs a store of its own: this one keeps {opened.layout.describe()}.")
    if "error" in frame["action"] and not are_samples:
        raise typer.Exit(1)


def run_scenarios(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Default: all.")] = None,
    source: Annotated[
        str | None, typer.Option(help="claude-code, codex or copilot; default: the first one that can play it.")
    ] = None,
    json: Json = False,
) -> None:
    """Act out the acceptance scenarios in temporary folders, by the pinned and the careful policy.

    Exit codes: 0 all hold, 1 some do not, 2 could not run.
    """
    frame = run(scenarios.run_scenarios, adapter=source, names=names or None)
    show.rows("Scenarios", list(frame.iter_rows(named=True)), show.SCENARIO_COLUMNS, json=json)
    if (frame["ok"] == False).any():  # noqa: E712 - a column, and null is not False
        raise typer.Exit(1)


remote_app = typer.Typer(no_args_is_help=True, help="Build and check payloads for a remote store; nothing is sent.")


@remote_app.command()
def build(
    home: Home = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a file per request into this folder.")] = None,
) -> None:
    """Build the requests that an upload would send, a line each."""
    built = run(remote.build_remote, config=configuration(home))
    if not (built.items or built.failures or built.short):
        show.note("Nothing to send: no histories were found. --home DIR reads another home.")
    elif out is not None:
        _make_folder(out)
    for number, request in enumerate(built.batches, 1):
        text = remote.remote_json(request)
        if out is None:
            sys.stdout.buffer.write(text + b"\n")
        else:
            _write(out / f"request-{number:03}.json", text)
    show.note(*repr(built).split("\n"))
    if built.failures or built.too_large:
        raise typer.Exit(1)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        stop(f"can't write {path}: {error.strerror or error}")


@remote_app.command()
def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A request as JSON; - for standard input.")],
    json: Json = False,
) -> None:
    """Check each item of a request; the first rule that it breaks is named."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        stop(f"can't read {file}: {error.strerror or error}")
    try:
        rows: list[dict[str, Any]] = list(remote.validate_remote(data).iter_rows(named=True))
    except RemotePayloadError as error:
        stop(f"{file}: {error}")
    show.rows("Items", rows, show.REMOTE_COLUMNS, json=json)
    if any(row["status"] == "error" for row in rows):
        raise typer.Exit(1)
