from __future__ import annotations

import crystal_nb as cnb
from crystal_nb.config import BUILT_IN_SOURCES


def test_every_source_has_a_sample_that_gives_a_conversation():
    corpus = cnb.parse(cnb.scan(config=cnb.samples.config()), config=cnb.samples.config())
    full = corpus.conversations.filter(corpus.conversations["message_count"] >= 2)
    assert set(full["source"]) == set(BUILT_IN_SOURCES)
    assert corpus.failures.is_empty()


def test_the_samples_show_losses_of_every_source():
    corpus = cnb.parse(cnb.scan(config=cnb.samples.config()), config=cnb.samples.config())
    assert {source for source, *_ in corpus.loss_reasons()} == set(BUILT_IN_SOURCES)


def test_the_home_is_a_copy_and_the_same_one_each_time():
    assert cnb.samples.home() is cnb.samples.home()
    assert not cnb.samples.home().is_relative_to(cnb.samples.fixtures())


def test_file_times_are_fixed():
    assert cnb.scan("claude-code", config=cnb.samples.config())["file_mtime_text"][0] == "2026-01-01T00:00:00.123Z"
