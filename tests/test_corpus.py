from __future__ import annotations

import pytest

import crystal_nb as cnb
from crystal_nb.corpus import Corpus, Failure, ParsedConversation

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


def parsed(source="codex", id="7", candidate_id=None, messages=2, fates=(), **fields):
    candidate = cnb.Candidate(source, candidate_id or id, "/f", 1, "", "")
    listed = tuple(cnb.Message("user", f"m{i}") for i in range(messages))
    conversation = cnb.Conversation(source, id, listed, **fields)
    return ParsedConversation(candidate, conversation, tuple(fates), cnb.content_hash(conversation), f"{source}@1")


def test_a_conversation_is_found_by_its_own_and_by_its_candidate_s_id():
    corpus = Corpus([parsed(id="inner", candidate_id="outer")], [])
    assert corpus["codex", "inner"] is corpus["codex", "outer"]
    assert ("codex", "outer") in corpus
    assert [c.id for c in corpus] == ["inner"]


def test_where_ids_meet_the_last_one_wins_and_rows_reach_all():
    corpus = Corpus([parsed(slug="first"), parsed(slug="last")], [])
    assert corpus["codex", "7"].slug == "last"
    assert [corpus[i].slug for i in corpus.conversations["conversation_index"]] == ["first", "last"]


def test_a_fork_does_not_hide_its_parent():
    parent, fork = parsed(id="a", slug="parent"), parsed(id="a", candidate_id="b", slug="fork")
    corpus = Corpus([parent, fork], [])
    assert (corpus["codex", "a"].slug, corpus["codex", "b"].slug) == ("parent", "fork")


@pytest.mark.parametrize("key", [("codex", "8"), ("codx", "7"), "7", ("codex", ["7"]), 1])
def test_an_unknown_id_says_how_to_ask(key):
    with pytest.raises(
        cnb.UnknownConversationError, match=r"corpus\[source, id\].* there are 1: 'codex', '7'"
    ) as caught:
        Corpus([parsed()], [])[key]
    assert isinstance(caught.value, KeyError)


def test_repr_says_what_was_read_and_what_was_lost():
    fates = [
        cnb.Fate("kept", "a", message_index=0),
        cnb.Fate("dropped", "b", "no text"),
        cnb.Fate("dropped", "b", "no text"),
    ]
    failure = Failure(cnb.Candidate("cursor", "x", "/f", 1, "", ""), "ParseError", "cursor: /f: broken")
    text = repr(Corpus([parsed(fates=fates), parsed(messages=1)], [failure]))
    assert text.startswith("Corpus: 2 conversations, 3 messages; 1 with fewer than 2 messages")
    assert "2 × codex b: no text" in text
    assert "failed  cursor: /f: broken" in text


def test_repr_counts_the_losses_that_it_has_no_room_for():
    fates = [cnb.Fate("dropped", f"kind {i}", "no text") for i in range(10)]
    assert "2 × for 2 more reasons: .loss_reasons()" in repr(Corpus([parsed(fates=fates)], []))
    assert "kind 9" in Corpus([parsed(fates=fates)], [])._repr_html_()


def test_everything_shown_is_escaped():
    fates = [cnb.Fate("dropped", HOSTILE, HOSTILE)]
    failure = Failure(cnb.Candidate("cursor", "x", "/f", 1, "", ""), "ParseError", HOSTILE)
    corpus = Corpus([parsed(fates=fates)], [failure])
    html = corpus._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert not set("\x1b\u202e") & set(html + repr(corpus))


def test_frames_join_exactly_even_where_ids_meet():
    corpus = Corpus([parsed(id="7"), parsed(id="codex:7", messages=3)], [])
    assert corpus.conversations["conversation_id"].to_list() == ["codex:7", "codex:7"]
    assert corpus.messages["conversation_index"].to_list() == [0, 0, 1, 1, 1]
    assert corpus.messages["index"].to_list() == [0, 1, 0, 1, 2]


def test_an_empty_corpus_has_all_frames():
    corpus = Corpus([], [])
    shapes = [getattr(corpus, name).height for name in ("conversations", "messages", "fates", "failures")]
    assert shapes == [0, 0, 0, 0]
    assert "nothing" in corpus._repr_html_()


def test_a_kind_of_any_length_does_not_fill_the_summary(tmp_path):
    from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code

    said = tuple(SampleMessage(r, r, f"m-{r}", "2026-01-05T10:00:00.000Z") for r in ("user", "assistant"))
    path = write_claude_code(tmp_path, Sample("s", said))
    path.write_text(path.read_text() + '{"type": "' + "K" * 9000 + '"}\n')
    config = cnb.Config(home=tmp_path, platform="linux")
    for profile in ("chatcrystal", "careful"):
        corpus = cnb.parse(cnb.scan("claude-code", profile=profile, config=config), config=config)
        assert "KKK" in repr(corpus)
        assert len(repr(corpus)) < 1000
        assert len(corpus._repr_html_()) < 5000
        with cnb.Store.in_memory(cnb.PINNED, config) as store:
            report = cnb.audit(store, config=config, questions=["drift"])
        assert len(report.to_html()) < 10_000


def test_where_nothing_was_parsed_the_samples_are_named():
    empty = Corpus([], [])
    assert "cnb.samples.config()" in repr(empty)
    assert "cnb.samples.config()" in empty._repr_html_()


def test_a_page_of_many_reasons_and_failures_stays_small():
    candidate = cnb.Candidate("codex", "7", "/f", 1, "", "")
    fates = tuple(cnb.Fate("dropped", "odd", f"reason {n}") for n in range(5_000))
    parsed = ParsedConversation(candidate, cnb.Conversation("codex", "7"), fates, "", "codex@1")
    corpus = Corpus([parsed], [Failure(candidate, "ParseError", "x" * 1_000_000)] * 500)
    assert "What failed, 500" in corpus._repr_html_()
    assert "more</th>" in corpus._repr_html_()
    assert len(corpus._repr_html_()) < 1_000_000
    assert len(repr(corpus)) < 30_000
