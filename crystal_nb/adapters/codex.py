"""Codex CLI: the pinned rules and the careful ones."""

from __future__ import annotations

from crystal_nb.adapters.codex_careful import CAREFUL
from crystal_nb.adapters.codex_pinned import ADAPTER, candidate_id

__all__ = ["ADAPTER", "LATER", "candidate_id"]

LATER = (CAREFUL,)
"""Released versions after the pinned one, oldest first."""
