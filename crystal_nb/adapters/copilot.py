"""GitHub Copilot Chat in VS Code: the pinned rules and the later ones."""

from __future__ import annotations

from crystal_nb.adapters.copilot_careful import CAREFUL
from crystal_nb.adapters.copilot_pinned import ADAPTER

__all__ = ["ADAPTER", "LATER"]

LATER = (CAREFUL,)
