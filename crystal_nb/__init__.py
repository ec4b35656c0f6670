"""See in a notebook what an import of AI-coding-agent conversations really does.

::

    import crystal_nb as cnb
    cands = cnb.scan()            # what is there
    corpus = cnb.parse(cands)     # what a parse makes of it, and what it loses
    corpus.conversations          # polars frames, with content hashes

The tools' files are only read, and nothing leaves the machine. What is imported goes into a store of
one's own choice, by `open_store` and `import_all`.
"""

from typing import Any

from crystal_nb import adapters, charts, samples
from crystal_nb._version import __version__
from crystal_nb.ablation import ablate
from crystal_nb.adapters import get_adapter, register
from crystal_nb.adapters.base import Adapter, Parsed, Rules, SourceAdapter
from crystal_nb.audit import AuditReport, audit, audit_async
from crystal_nb.comparison import compare_parsers, compare_parsers_async
from crystal_nb.config import Config
from crystal_nb.corpus import Corpus
from crystal_nb.decisions import Decision, Step
from crystal_nb.details import Details, Link, ToolCall
from crystal_nb.discovery import detect_all_sources, detect_all_sources_async, sources, sources_async
from crystal_nb.errors import (
    AdapterError,
    ConfigError,
    CrystalError,
    DetectError,
    DuplicateAdapterWarning,
    ParseError,
    PluginWarning,
    RemotePayloadError,
    ScanError,
    SourceError,
    StoreError,
    UnknownAdapterError,
    UnknownConversationError,
)
from crystal_nb.hashing import HASH_FIELDS, canonical_json, content_hash, explain_difference, hash_input
from crystal_nb.identity import namespace, namespace_collisions, namespace_conversation
from crystal_nb.importer import (
    parse,
    parse_async,
    scan,
    scan_async,
)
from crystal_nb.policy import CAREFUL, PINNED, Policy
from crystal_nb.prototyping import ParserSession, Prototype, RawRecord, json_adapter, jsonl_adapter, sqlite_adapter
from crystal_nb.records import UNSET, Candidate, Conversation, Fate, Message, SourceInfo
from crystal_nb.redaction import Redaction, redact
from crystal_nb.rehearsal import (
    Rehearsal,
    compare_policies,
    compare_policies_async,
    rehearse,
    rehearse_async,
)
from crystal_nb.reimport import import_all, import_all_async, plan, plan_async
from crystal_nb.remote import (
    RemoteBuild,
    build_remote,
    build_remote_async,
    read_item,
    remote_batches,
    remote_item,
    remote_json,
    validate_remote,
)
from crystal_nb.remote_ingest import ingest
from crystal_nb.report import ImportReport
from crystal_nb.scenarios import own_subject, run_scenarios
from crystal_nb.store import Store
from crystal_nb.store_open import open_store
from crystal_nb.trial import ParserTrial, try_parser, try_parser_async

__all__ = [
    "CAREFUL",
    "HASH_FIELDS",
    "PINNED",
    "UNSET",
    "Adapter",
    "AdapterError",
    "AuditReport",
    "Candidate",
    "Config",
    "ConfigError",
    "Conversation",
    "Corpus",
    "CrystalError",
    "Decision",
    "Details",
    "DetectError",
    "DuplicateAdapterWarning",
    "Fate",
    "ImportReport",
    "Link",
    "Message",
    "ParseError",
    "Parsed",
    "ParserSession",
    "ParserTrial",
    "PluginWarning",
    "Policy",
    "Prototype",
    "RawRecord",
    "Redaction",
    "Rehearsal",
    "RemoteBuild",
    "RemotePayloadError",
    "Rules",
    "ScanError",
    "SourceAdapter",
    "SourceError",
    "SourceInfo",
    "Step",
    "Store",
    "StoreError",
    "ToolCall",
    "UnknownAdapterError",
    "UnknownConversationError",
    "__version__",
    "ablate",
    "adapter_contract",
    "adapters",
    "audit",
    "audit_async",
    "build_remote",
    "build_remote_async",
    "canonical_json",
    "charts",
    "check_adapter",
    "compare_parsers",
    "compare_parsers_async",
    "compare_policies",
    "compare_policies_async",
    "content_hash",
    "detect_all_sources",
    "detect_all_sources_async",
    "explain_difference",
    "frames",
    "get_adapter",
    "hash_input",
    "import_all",
    "import_all_async",
    "ingest",
    "json_adapter",
    "jsonl_adapter",
    "namespace",
    "namespace_collisions",
    "namespace_conversation",
    "open_store",
    "own_subject",
    "parse",
    "parse_async",
    "plan",
    "plan_async",
    "read_item",
    "redact",
    "register",
    "rehearse",
    "rehearse_async",
    "remote_batches",
    "remote_item",
    "remote_json",
    "run_scenarios",
    "samples",
    "scan",
    "scan_async",
    "sources",
    "sources_async",
    "sqlite_adapter",
    "testing",
    "try_parser",
    "try_parser_async",
    "validate_remote",
    "widgets",
]


def __getattr__(name: str) -> Any:
    if name == "frames":  # imports polars, so only when asked for
        import crystal_nb.frames

        return crystal_nb.frames
    if name == "widgets":  # imports ipywidgets
        import crystal_nb.widgets

        return crystal_nb.widgets
    if name in ("testing", "check_adapter", "adapter_contract"):  # imports hypothesis
        import crystal_nb.testing

        return crystal_nb.testing if name == "testing" else getattr(crystal_nb.testing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
