"""Adapters and announced plugins that are odd, raise or lie: a warning, a row or an error that names the field."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

import crystal_nb as cnb
from crystal_nb import adapters as registry
from crystal_nb.adapters.base import Parsed
from crystal_nb.details import Details
from crystal_nb.discovery import data_folder
from crystal_nb.errors import PluginWarning
from crystal_nb.prototyping import jsonl_adapter
from crystal_nb.records import Candidate, Conversation, Fate, Message, SourceInfo

ESCAPE = "x\x1b[31m\n\u202e"


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class LikeAnInterrupt(BaseException):
    """What is no Exception, as KeyboardInterrupt is none."""


class Odd:
    """A whole adapter; each test gives one thing another value, or has one thing raise."""

    name, display_name, parser_version = "odd", "Odd", "odd@1"

    def __init__(self, **changes):
        for field, value in changes.items():
            setattr(self, field, value)

    info = SourceInfo("odd", "Odd", "/odd", 1)
    listed = (Candidate("odd", "a", "/odd/a", 1, "2026-01-01T00:00:00.000Z", ""),)
    parsed = Parsed(Conversation("odd", "a", (Message("user", "hi", id="1"),)), (Fate("kept", "line", None, 0),))

    async def detect(self, config):
        return given(self.info)

    async def scan(self, config):
        return given(self.listed)

    async def parse(self, candidate, config):
        return given(self.parsed)


def given(value):
    if isinstance(value, BaseException):
        raise value
    return value


def raising(error):
    def raises(*args):
        raise error

    return property(raises)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    from crystal_nb import importer

    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    monkeypatch.setattr(importer, "_UNREGISTERED", {})


UNUSABLE = [
    (Odd, "is a class and no adapter; give an instance"),
    (Odd(parser_version=5), "adapter 'odd': parser_version is a printable text, not 5"),
    (Odd(parser_version=None), "parser_version is a printable text, not None"),
    (Odd(parser_version=ESCAPE), "parser_version is a printable text"),
    (Odd(display_name=None), "display_name is a printable text, not None"),
    (Odd(display_name=ESCAPE), "display_name is a printable text"),
    (Odd(name=5), "name must be a non-empty text, not 5"),
    (Odd(name=""), "name must be a non-empty text"),
    (Odd(name=ESCAPE), "name is a printable text"),
    (Odd(name="\ud800"), "name is a printable text"),
    (Odd(name="x" * 10_000, parser_version=5), "parser_version is a printable text, not 5"),
    (Odd(detect=5), "adapter 'odd': detect is a function, not 5"),
    (Odd(scan=None), "adapter"),
    (Odd(parse="parse"), "adapter 'odd': parse is a function, not 'parse'"),
    (type("Raising", (Odd,), {"name": raising(KeyError("no"))})(), "no adapter: KeyError"),
    (type("Raising", (Odd,), {"parser_version": raising(Wordless())})(), "no adapter: Wordless"),
    (type("Raising", (Odd,), {"__repr__": raising(Wordless()).fget, "parser_version": 5})(), "parser_version"),
    (type("Raising", (Odd,), {"__repr__": raising(Wordless()).fget, "name": Wordless()})(), "non-empty text"),
]
WAYS = {
    "register": cnb.register,
    "scan": cnb.scan,
    "parse": lambda adapter: cnb.parse([], adapters=[adapter]),
    "detect": lambda adapter: cnb.detect_all_sources(adapters=[adapter]),
    "try": lambda adapter: cnb.try_parser(adapter, __file__),
    "check": cnb.check_adapter,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("adapter", "said"), UNUSABLE)
def test_what_can_t_be_used_is_refused_with_its_name_and_field(way, adapter, said):
    with pytest.raises(cnb.AdapterError) as caught:
        WAYS[way](adapter)
    text = str(caught.value)
    assert said in text
    assert text.isprintable()
    assert len(text) < 500
    assert "odd" not in registry._REGISTRY


RAISED = [KeyError("no"), Wordless(), SystemExit(3), RecursionError("deep"), OSError(5, "no"), MemoryError("full")]
DETECTED = [5, True, "found", {"name": "odd"}, *(msgspec.structs.replace(Odd.info, **c) for c in (
    {"name": 5}, {"display_name": None}, {"data_dir": 5}, {"conversation_count": "3"}, {"conversation_count": None}
))]  # fmt: skip
LISTED = [
    (5, "TypeError"),
    (None, "TypeError"),
    (["a"], "a str"),
    *(
        ([Odd.listed[0], msgspec.structs.replace(Odd.listed[0], **{field: value})], rf"candidates\[1\]\.{field} is ")
        for field, values in {
            "source": (5, None, ["odd"]),
            "file_size": ("1", None, 1.5, True, []),
            "file_mtime": (None, 5, b"2026"),
            "project_dir": (None, 5, ["p"]),
        }.items()
        for value in values
    ),
]


@pytest.mark.parametrize("info", [*RAISED, *DETECTED])
def test_whatever_a_foreign_detect_does_is_a_detect_error_and_a_row(info):
    adapter = Odd(info=info)
    for look in (cnb.scan, lambda a: cnb.detect_all_sources(adapters=[a])):
        with pytest.raises(cnb.DetectError, match=r"^odd: "):
            look(adapter)
    cnb.register(adapter)
    (row,) = cnb.sources(config=cnb.samples.config()).filter(source="odd").rows(named=True)
    assert row["status"] == "failed"
    assert row["error"].startswith("DetectError: odd: ")


@pytest.mark.parametrize(("listed", "said"), [*((error, type(error).__name__) for error in RAISED), *LISTED])
def test_whatever_a_foreign_scan_does_is_a_scan_error(listed, said):
    with pytest.raises(cnb.ScanError, match=rf"^odd: .*{said}"):
        cnb.scan(Odd(listed=listed))


def conversation(**changes):
    return Parsed(msgspec.structs.replace(Odd.parsed.conversation, **changes), Odd.parsed.fates)


PARSED = [
    *((error, type(error).__name__) for error in RAISED if not isinstance(error, OSError)),
    (None, "parse gave no Parsed with a tuple of fates, but NoneType"),
    (Parsed(Odd.parsed.conversation, []), "tuple of fates"),
    (Parsed(5, ()), "parse gave a int for a Conversation"),
    (conversation(messages=[]), "conversation.messages is a tuple of Message, not list"),
    (conversation(messages=(5,)), "messages[0] is a Message, not int"),
    (conversation(messages=(Message("user", 5),)), "messages[0].content is text, not int"),
    (conversation(messages=(Message("user", "", has_code=None),)), "messages[0].has_code is True or False"),
    (conversation(messages=(Message("user", "", details=Details(marks=5)),)), "messages[0].details.marks is "),
    (conversation(project_dir=None), "conversation.project_dir is text, not NoneType"),
    (conversation(project_name=5), "conversation.project_name is text, not int"),
    (conversation(links=["x"]), "conversation.links is a tuple of Link"),
    *(
        (
            Parsed(Odd.parsed.conversation, (msgspec.structs.replace(Odd.parsed.fates[0], **{field: value}),)),
            f"fates[0].{field} is ",
        )
        for field, value in {
            "status": "lost", "kind": None, "reason": 5, "message_index": "0", "line": "1", "offset": 1.5,
            "size": "1", "key": 5, "head": "x", "note": 5,
        }.items()
    ),
    (Parsed(Odd.parsed.conversation, (5,)), "fates[0] is a Fate, not int"),
]  # fmt: skip


@pytest.mark.parametrize(("parsed", "said"), PARSED)
def test_whatever_a_foreign_parse_does_is_a_row(tmp_path, parsed, said):
    adapter = Odd(parsed=parsed)
    (failure,) = cnb.parse(cnb.scan(adapter)).failed
    assert said in f"{failure.error}: {failure.message}"
    assert failure.message.isprintable()
    with cnb.open_store(tmp_path / "s.db") as store:
        report = cnb.import_all(store, cnb.scan(adapter), adapters=[adapter], progress=False)
    (outcome,) = report.outcomes
    assert outcome.decision.action == "error"
    assert said.partition(" ")[0] in f"{failure.error} {outcome.decision.reason}"


def test_a_whole_one_is_used():
    corpus = cnb.parse(cnb.scan(Odd()))
    assert (len(corpus), corpus.failures.height, corpus.messages["content"].to_list()) == (1, 0, ["hi"])


@pytest.mark.parametrize("wrong", [{"file_size": "12"}, {"file_mtime": 5}, {"project_dir": None}])
@pytest.mark.parametrize("shape", [list, lambda one: one[0]])
def test_candidates_with_odd_fields_are_refused_by_name(wrong, shape):
    one = msgspec.structs.replace(Candidate("codex", "a", "/f", 1, "", ""), **wrong)
    with pytest.raises(cnb.ConfigError, match=rf"candidates\[0\] of codex: {next(iter(wrong))} is "):
        cnb.parse(shape([one]))


def test_a_frame_with_a_size_of_text_is_refused_by_name():
    import polars as pl

    frame = pl.DataFrame({"source": ["codex"], "id": ["a"], "file_path": ["/f"], "file_size": ["12"]})
    with pytest.raises(cnb.ConfigError, match=r"candidates\[0\] of codex: file_size is a whole number, not str"):
        cnb.parse(frame)


@jsonl_adapter("mytool", root="~/.mytool")
def mytool(record, session):
    yield Message("user", record["text"])


def no_root(config):
    raise KeyError("no root")


ROOTS = [no_root, lambda config: None, lambda config: 5, lambda config: 1 / 0, lambda config: given(SystemExit(2))]


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_that_fails_is_told_by_name(tmp_path, root):
    adapter = replace(mytool, root=root)
    config = cnb.Config(home=tmp_path)
    for look in (cnb.scan, lambda a, config: cnb.detect_all_sources(adapters=[a], config=config)):
        with pytest.raises(cnb.DetectError, match=r"^mytool: the data folder: root "):
            look(adapter, config=config)
    cnb.register(adapter)
    (row,) = cnb.sources(config=config).filter(source="mytool").rows(named=True)
    assert row["status"] == "failed"
    assert "root " in row["error"]
    assert data_folder(replace(mytool, root=no_root), config) is None
    failed = cnb.check_adapter(adapter, tmp_path).filter(ok=False)
    assert "root " in failed["detail"][0]


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"file_size": "12"}, "candidates", "file_size is '12'"),
        ({"file_mtime": 5}, "candidates", "file_mtime is 5"),
        ({"project_dir": None}, "candidates", "project_dir is None"),
        ({"source": 5}, "candidates", "source is 5"),
    ],
)
def test_the_contract_names_an_odd_field_and_goes_on(tmp_path, changes, name, said):
    (tmp_path / ".mytool").mkdir()
    (tmp_path / ".mytool" / "a.jsonl").write_text('{"text":"hi"}\n' * 2)

    def odd(folder, config):
        return [msgspec.structs.replace(c, **changes) for c in mytool.candidates(folder, config)]

    frame = cnb.check_adapter(replace(mytool, candidates=odd), tmp_path)
    assert frame.height == len(cnb.testing.CHECKS)
    assert said in frame.filter(check=name, ok=False)["detail"].item()


class Point:
    """An entry point that gives something, raises it, or is itself hostile."""

    def __init__(self, found, name="mine", value="somewhere:adapter"):
        self.found, self.name, self.value = found, name, value

    def load(self):
        return given(self.found)


@pytest.fixture
def announce(monkeypatch):
    def announced(*points):
        monkeypatch.setattr(registry, "_asked_for_plugins", False)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: list(points))

    return announced


LEFT_OUT = [
    *(adapter for adapter, _ in UNUSABLE),
    ImportError("no such thing"),
    ImportError(ESCAPE),
    Wordless(),
    SystemExit(3),
    GeneratorExit(),
    LikeAnInterrupt(),
    RecursionError(),
    lambda: given(SystemExit(3)),
    lambda: given(LikeAnInterrupt()),
    lambda: None,
    lambda: Odd,
    lambda missing: mytool,
    mytool.function,
    5,
    "mytool",
]


@pytest.mark.parametrize("found", LEFT_OUT)
def test_an_announced_adapter_that_can_t_be_used_is_left_out_with_a_harmless_warning(announce, found):
    announce(Point(found, name=ESCAPE, value=ESCAPE), Point(mytool, name="mytool"))
    with pytest.warns(PluginWarning, match="left out") as caught:
        assert "mytool" in registry.registered()
    assert len(caught) == 1
    assert str(caught[0].message).isprintable()
    assert set(registry.registered()) == {*registry._REGISTRY}


def test_a_person_s_interrupt_goes_through_and_the_rest_is_loaded_the_next_time(announce):
    points = [Point(mytool, name="mytool"), Point(KeyboardInterrupt(), name="other"), Point(Odd(), name="odd")]
    announce(*points)
    with pytest.raises(KeyboardInterrupt):
        registry.registered()
    points[1].found = replace(mytool, name="other")
    announce(*points)
    registry._asked_for_plugins = False
    assert [*registry.registered()][-3:] == ["mytool", "other", "odd"]


def test_an_adapter_that_can_be_called_is_one(announce):
    callable_one = type("Callable", (Odd,), {"__call__": lambda self: 1 / 0})()
    announce(Point(callable_one, name="odd"))
    assert registry.registered()["odd"] is callable_one
