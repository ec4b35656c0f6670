from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

import crystal_nb as cnb
from crystal_nb import adapters as registry
from crystal_nb.config import BUILT_IN_SOURCES


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


BUILT_INS = (*BUILT_IN_SOURCES, "gemini")
"""The pinned five in their order, then what came later."""


def test_the_built_ins_come_in_the_pinned_order():
    assert tuple(cnb.adapters.registered()) == BUILT_INS


def test_what_came_later_has_to_be_asked_for():
    config = cnb.samples.config()
    assert "gemini" not in set(cnb.scan(config=config)["source"])
    asked = cnb.Config(home=config.home, enabled_sources=("gemini",))
    for frame in (cnb.scan("gemini", config=config), cnb.scan(config=asked, profile="careful")):
        assert set(frame["source"]) == {"gemini"}


def test_versions_are_the_pinned_ones():
    assert {a.parser_version for a in cnb.adapters.registered().values()} == {f"{name}@1" for name in BUILT_INS}


def test_a_duplicate_name_warns_and_overwrites_in_place():
    new = replace(cnb.get_adapter("codex"), display_name="Mine")
    with pytest.warns(cnb.DuplicateAdapterWarning, match="'codex'"):
        cnb.register(new)
    assert cnb.get_adapter("codex") is new
    assert tuple(cnb.adapters.registered()) == BUILT_INS


def test_a_new_name_comes_last():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cnb.register(replace(cnb.get_adapter("codex"), name="mine"))
    assert tuple(cnb.adapters.registered()) == (*BUILT_INS, "mine")


@pytest.mark.parametrize("name", ["Bad Name:1", "a:b", "a b", " a", "a\u00a0b"])
def test_a_name_that_would_blur_ids_is_refused(name):
    with pytest.raises(cnb.AdapterError, match=r"no white space and no ':'|printable"):
        cnb.register(replace(cnb.get_adapter("codex"), name=name))


@pytest.mark.parametrize(
    "wrong", [None, object(), replace(cnb.get_adapter("codex"), name=""), replace(cnb.get_adapter("codex"), name=5)]
)
def test_what_is_no_adapter_is_refused(wrong):
    with pytest.raises(cnb.AdapterError):
        cnb.register(wrong)


def test_an_unknown_name_lists_the_known_ones():
    known = "claude-code, codex, copilot, cursor, gemini, trae"
    with pytest.raises(cnb.UnknownAdapterError, match=f"'cody'; known: {known}"):
        cnb.get_adapter("cody")
    with pytest.raises(cnb.UnknownAdapterError):
        cnb.get_adapter(["codex"])


def test_the_view_is_read_only():
    with pytest.raises(TypeError):
        cnb.adapters.registered()["x"] = None
