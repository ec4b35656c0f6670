"""See in a notebook what an import of AI-coding-agent conversations really does.

::

    import crystal_nb as cnb
    cands = cnb.scan()            # what is there
    corpus = cnb.parse(cands)     # what a parse makes of it, and what it loses
    corpus.conversations          # polars frames, with content hashes

Nothing is written anywhere, and nothing leaves the machine.
"""

from typing import Any

from crystal_nb import adapters, samples
from crystal_nb._version import __version__
from crystal_nb.adapters import get_adapter, register
from crystal_nb.adapters.base import Adapter, Parsed, Rules, SourceAdapter
from crystal_nb.config import Config
from crystal_nb.corpus import Corpus
from crystal_nb.errors import (
    AdapterError,
    ConfigError,
    CrystalError,
    DetectError,
    DuplicateAdapterWarning,
    ParseError,
    ScanError,
    SourceError,
    UnknownAdapterError,
    UnknownConversationError,
)
from crystal_nb.hashing import HASH_FIELDS, canonical_json, content_hash, explain_difference, hash_input
from crystal_nb.identity import namespace, namespace_collisions, namespace_conversation
from crystal_nb.importer import (
    ablate,
    detect_all_sources,
    detect_all_sources_async,
    parse,
    parse_async,
    scan,
    scan_async,
    sources,
    sources_async,
)
from crystal_nb.records import UNSET, Candidate, Conversation, Fate, Message, SourceInfo

__all__ = [
    "HASH_FIELDS",
    "UNSET",
    "Adapter",
    "AdapterError",
    "Candidate",
    "Config",
    "ConfigError",
    "Conversation",
    "Corpus",
    "CrystalError",
    "DetectError",
    "DuplicateAdapterWarning",
    "Fate",
    "Message",
    "ParseError",
    "Parsed",
    "Rules",
    "ScanError",
    "SourceAdapter",
    "SourceError",
    "SourceInfo",
    "UnknownAdapterError",
    "UnknownConversationError",
    "__version__",
    "ablate",
    "adapters",
    "canonical_json",
    "content_hash",
    "detect_all_sources",
    "detect_all_sources_async",
    "explain_difference",
    "frames",
    "get_adapter",
    "hash_input",
    "namespace",
    "namespace_collisions",
    "namespace_conversation",
    "parse",
    "parse_async",
    "register",
    "samples",
    "scan",
    "scan_async",
    "sources",
    "sources_async",
]


def __getattr__(name: str) -> Any:
    if name == "frames":  # imports polars, so only when asked for
        import crystal_nb.frames

        return crystal_nb.frames
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
