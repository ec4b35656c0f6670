from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import polars as pl
import pytest

import crystal_nb as cnb
from crystal_nb import adapters as registry
from crystal_nb._loop import twins


@dataclass(frozen=True)
class Fake:
    """An adapter that does as it is told."""

    name: str = "fake"
    display_name: str = "Fake"
    parser_version: str = "fake@1"
    detects: object = field(default_factory=lambda: cnb.SourceInfo("fake", "Fake", "/f", 2))
    scans: object = (cnb.Candidate("fake", "a", "/f/a", 1, "", ""), cnb.Candidate("fake", "b", "/f/b", 1, "", ""))
    fails: str | None = None

    async def detect(self, config):
        return self.answer(self.detects)

    async def scan(self, config):
        return list(self.answer(self.scans))

    async def parse(self, candidate, config):
        if candidate.id == self.fails:
            raise KeyError("a bug")
        return cnb.Parsed(cnb.Conversation("fake", candidate.id, (cnb.Message("user", "x"),)), ())

    @staticmethod
    def answer(value):
        if isinstance(value, Exception):
            raise value
        return value


@pytest.fixture
def only(monkeypatch):
    """Register just these adapters."""

    def register(*adapters):
        monkeypatch.setattr(registry, "_REGISTRY", {a.name: a for a in adapters})
        return cnb.Config(enabled_sources=[a.name for a in adapters])

    return register


BROKEN = cnb.DetectError("no luck", source="broken", path="/b")


def test_discovery_fails_as_a_whole(only):
    only(Fake(), Fake(name="broken", detects=BROKEN))
    with pytest.raises(cnb.DetectError, match="broken: /b: no luck"):
        cnb.detect_all_sources()


def test_sources_collects_each_outcome(only):
    only(Fake(), Fake(name="absent", detects=None), Fake(name="broken", detects=BROKEN))
    found = cnb.sources()
    assert found["status"].to_list() == ["found", "absent", "failed"]
    assert found["conversations"].to_list() == [2, None, None]
    assert found["error"].to_list()[2] == "DetectError: broken: /b: no luck"


def test_discovery_runs_concurrently(only):
    barrier = threading.Barrier(2, timeout=5)

    class Waiting(Fake):
        async def detect(self, config):
            await asyncio.to_thread(barrier.wait)

    only(Waiting(name="a"), Waiting(name="b"))
    assert cnb.detect_all_sources() == []


def test_a_scan_takes_enabled_sources_in_registry_order_and_skips_absent_ones(only):
    only(Fake(), Fake(name="absent", detects=None, scans=BROKEN), Fake(name="off"))
    assert cnb.scan(config=cnb.Config(enabled_sources=["absent", "fake"]))["id"].to_list() == ["a", "b"]


def test_a_failing_scan_fails_the_whole(only):
    config = only(Fake(), Fake(name="broken", scans=cnb.ScanError("no", source="broken", path="/b")))
    with pytest.raises(cnb.ScanError):
        cnb.scan(config=config)
    assert len(cnb.scan("fake", config=config)) == 2


def test_one_failing_parse_is_a_row_and_the_others_go_on(only):
    only(Fake(fails="a"))
    corpus = cnb.parse(cnb.scan("fake"))
    assert corpus.failures.select("id", "error").row(0) == ("a", "KeyError")
    assert corpus.conversations["id"].to_list() == ["b"]


@pytest.mark.parametrize("scans", [None, ["x"], ZeroDivisionError("oops")])
def test_whatever_a_foreign_scan_does_is_a_scan_error(only, scans):
    only(Fake(scans=scans))
    with pytest.raises(cnb.ScanError, match=r"^fake: "):
        cnb.scan("fake")


def test_a_foreign_parse_that_gives_something_else_is_a_row(only):
    class Odd(Fake):
        async def parse(self, candidate, config):
            return cnb.Parsed(cnb.Conversation("fake", "x"), None) if candidate.id == "a" else 5

    only(Odd())
    assert cnb.parse(cnb.scan("fake")).failures["error"].to_list() == ["AdapterError", "AdapterError"]


def test_unregistered_adapters_are_scanned_and_found_again():
    mine = Fake(name="mine-only")
    rows = [cnb.Candidate("mine-only", "a", "/f/a", 1, "", "")]
    assert cnb.scan(Fake(name="mine-only", scans=rows)).height == 1
    assert len(cnb.parse(rows)) == 1
    assert len(cnb.parse(rows, adapters=[mine])) == 1
    assert "mine-only" not in cnb.adapters.registered()


def test_a_filtered_frame_can_be_parsed_lazy_or_not(tree_config):
    cands = cnb.scan("codex", config=tree_config).filter(pl.col("id") == "aaaa")
    assert len(cnb.parse(cands, config=tree_config)) == len(cnb.parse(cands.lazy(), config=tree_config)) == 1
    assert len(cnb.parse(cands.head(0))) == 0


def test_wrong_input_is_a_clear_error():
    with pytest.raises(cnb.ConfigError, match=r"lacks id, file_path"):
        cnb.parse(pl.DataFrame({"source": ["codex"]}))
    with pytest.raises(cnb.ConfigError, match="not str"):
        cnb.parse(["x"])
    with pytest.raises(cnb.ConfigError, match="unknown profile 'x'; allowed: chatcrystal"):
        cnb.scan(profile="x")
    with pytest.raises(cnb.UnknownAdapterError):
        cnb.scan("x")
    with pytest.raises(cnb.AdapterError, match="not int"):
        cnb.scan(5)
    with pytest.raises(cnb.AdapterError, match=r'write scan\("codex", "cursor"\)'):
        cnb.scan(["codex", "cursor"])
    with pytest.raises(cnb.AdapterError, match=r"write scan\(config"):
        cnb.scan(cnb.Config())
    with pytest.raises(cnb.AdapterError, match="list of adapters"):
        cnb.parse([], adapters="codex")
    with pytest.raises(TypeError, match=r"^parse\(\) missing"):
        cnb.parse()
    with pytest.raises(cnb.UnknownAdapterError):
        cnb.parse([cnb.Candidate("x", "a", "/f/a", 1, "", "")])


@pytest.mark.parametrize("wrong", [None, 5, "path.jsonl", [None], [""]])
def test_parse_says_what_it_takes(wrong):
    with pytest.raises(cnb.ConfigError, match="a frame made by scan or Candidate records, not"):
        cnb.parse(wrong)


def test_a_forgotten_await_is_named():
    work = cnb.scan_async()
    with pytest.raises(cnb.ConfigError, match="an await is missing"):
        cnb.parse(work)
    work.close()


@pytest.mark.parametrize(
    "config",
    [
        {"codex": "/x"},
        cnb.Config(home="/nowhere/at/all"),
        cnb.Config(folders={"codx": "/tmp"}),
        cnb.Config(enabled_sources=["codx"]),
    ],
)
def test_a_wrong_configuration_is_refused_and_not_an_empty_result(config):
    with pytest.raises(cnb.CrystalError, match=r"Config, not dict|no folder|codx"):
        cnb.scan(config=config)


def test_a_frame_of_conversations_can_be_parsed_again(tree_config):
    corpus = cnb.parse(cnb.scan("codex", config=tree_config), config=tree_config)
    again = cnb.parse(corpus.conversations, config=tree_config)
    assert again.conversations["candidate_id"].to_list() == corpus.conversations["candidate_id"].to_list()
    assert again.conversations["content_hash"].to_list() == corpus.conversations["content_hash"].to_list()


def test_an_adapter_named_twice_is_scanned_once(tree_config):
    assert cnb.scan("codex", "codex", config=tree_config).height == 4


def test_a_folder_that_is_there_while_nothing_is_found_is_noted(tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    notes = cnb.sources(config=cnb.Config(home=tmp_path))["note"]
    assert [note is not None for note in notes] == [True, False, False, False, False, False]


def test_progress_is_told_after_each(tree_config):
    seen = []
    cnb.parse(cnb.scan("codex", config=tree_config), config=tree_config, on_progress=lambda *a: seen.append(a[:2]))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_blocking_functions_work_inside_a_running_loop(tree_config):
    async def notebook():
        blocking = cnb.scan("codex", config=tree_config)
        awaited = await cnb.scan_async("codex", config=tree_config)
        return (
            blocking,
            awaited,
            len(await cnb.parse_async(awaited, config=tree_config)),
            cnb.sources(config=tree_config),
        )

    blocking, awaited, parsed, found = asyncio.run(notebook())
    assert blocking.equals(awaited)
    assert (parsed, found.height) == (4, 6)


def test_errors_and_interrupts_come_through_from_the_other_thread(only):
    only(Fake(detects=BROKEN))
    with pytest.raises(cnb.DetectError):
        asyncio.run(asyncio.to_thread(cnb.detect_all_sources))

    async def notebook():
        cnb.detect_all_sources()

    with pytest.raises(cnb.DetectError):
        asyncio.run(notebook())


def test_an_awaited_scan_can_be_cancelled(only):
    class Slow(Fake):
        async def scan(self, config):
            await asyncio.sleep(60)

    config = only(Slow())

    async def cancel():
        await asyncio.wait_for(cnb.scan_async(config=config), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(cancel())


def test_a_blocking_call_never_formats_its_result():
    shown = []

    class Large:
        def __repr__(self) -> str:
            shown.append(self)
            return "Large"

    async def _make() -> Large:
        return Large()

    make, _ = twins(_make)
    assert isinstance(make(), Large)
    assert not shown


def test_an_error_of_a_blocking_function_comes_without_another_one_before_it():
    async def _fail():
        raise cnb.ConfigError("no such thing")

    async def notebook():
        return fail()

    fail, _ = twins(_fail)
    for call in (fail, lambda: asyncio.run(notebook())):
        with pytest.raises(cnb.ConfigError) as caught:
            call()
        assert caught.value.__context__ is None
