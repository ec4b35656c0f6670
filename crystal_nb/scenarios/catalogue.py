"""Every acceptance scenario with what has to come out, written down and not computed.

Source: ``pinned-importer.md`` sections 3, 9 and 10.
"""

from __future__ import annotations

from crystal_nb.scenarios import acts, remote_acts
from crystal_nb.scenarios.scenario import Scenario, apart, both
from crystal_nb.scenarios.subjects import Ability

__all__ = ["SCENARIOS"]


NEW = "insert (stored: no, adapter registered: yes, enough messages: yes, id free: yes)"
SKIP = "skip (stored: yes, same size: yes, same time: yes)"
SEEN = "skip (stored: yes, same size: yes, same time: yes, same bytes: yes, same parser: yes)"
OTHER_TIME = "stored: yes, same size: yes, same time: no, adapter registered: yes, enough messages: yes"
OTHER_SIZE = "stored: yes, same size: no, adapter registered: yes, enough messages: yes"
CHANGED = f"replace ({OTHER_SIZE}, same hash: no)"
TOUCHED = f"metadata-update ({OTHER_TIME}, same hash: yes)"
ONE = "conversations 1, messages {base}, log 1 success"
ONE_OTHER = "conversations 1, messages 2, log 1 success"
FIRST = {"first import": both(NEW, ONE)}
_COPIES: frozenset[Ability] = frozenset({"copies"})

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "unchanged",
        "Nothing changed since the last import",
        acts.unchanged,
        {**FIRST, "again": apart((SKIP, ONE), (SEEN, ONE))},
    ),
    Scenario(
        "changed-unseen",
        "Other content with the size and the time of before: the blind spot",
        acts.changed_unseen,
        {
            **FIRST,
            "again": apart(
                (SKIP, ONE),
                (
                    "replace (stored: yes, same size: yes, same time: yes, same bytes: no, adapter registered: yes, "
                    "enough messages: yes, same hash: no)",
                    "conversations 1, messages {base}, log 2 success",
                ),
            ),
        },
    ),
    Scenario(
        "time-only",
        "Only the file's time changed",
        acts.time_only,
        {**FIRST, "touched": both(TOUCHED, ONE), "again": apart((SKIP, ONE), (SEEN, ONE))},
    ),
    Scenario(
        "size-only",
        "The file's size changed, its messages are equal",
        acts.size_only,
        {**FIRST, "padded": both(f"metadata-update ({OTHER_SIZE}, same hash: yes)", ONE)},
    ),
    Scenario(
        "appended",
        "Content was appended",
        acts.appended,
        {**FIRST, "appended": both(CHANGED, "conversations 1, messages {appended}, log 2 success")},
        needs=frozenset({"append"}),
    ),
    Scenario(
        "edited",
        "Content was edited",
        acts.edited,
        {**FIRST, "edited": both(CHANGED, "conversations 1, messages {base}, log 2 success")},
    ),
    Scenario(
        "new-parser",
        "Only the parser's version changed",
        acts.new_parser,
        {
            **FIRST,
            "new parser": apart(
                (SKIP, ONE),
                (
                    "metadata-update (stored: yes, same size: yes, same time: yes, same bytes: yes, same parser: no, "
                    "adapter registered: yes, enough messages: yes, same hash: yes)",
                    f"{ONE}, parser @2",
                ),
            ),
        },
    ),
    Scenario(
        "new-parser-and-touched",
        "The parser's version and the file's time changed",
        acts.new_parser_and_touched,
        {**FIRST, "new parser": both(TOUCHED, f"{ONE}, parser @2")},
    ),
    Scenario(
        "same-id-two-sources",
        "The same raw id in two sources",
        acts.same_id_in_two_sources,
        {
            "import": apart(
                (
                    f"{NEW} | error (stored: no, adapter registered: yes, enough messages: yes, id free: no)",
                    "conversations 1, messages 2, log 1 success, log 1 error",
                ),
                (f"{NEW} | {NEW}", "conversations 2, messages 4, log 2 success"),
            ),
            "again": apart(
                (
                    f"{SKIP} | error (stored: no, adapter registered: yes, enough messages: yes, id free: no)",
                    "conversations 1, messages 2, log 1 success, log 2 error",
                ),
                (f"{SEEN} | {SEEN}", "conversations 2, messages 4, log 2 success"),
            ),
        },
        needs=_COPIES,
    ),
    Scenario(
        "candidate-id-differs",
        "The candidate's id is not the parsed one",
        acts.candidate_id_differs,
        {
            "import": apart((f"{NEW} | stored as inside", ONE), (f"{NEW} | stored as s1", ONE)),
            "again": apart(
                (
                    "error (stored: no, adapter registered: yes, enough messages: yes, id free: no)",
                    "conversations 1, messages 2, log 1 success, log 1 error",
                ),
                (SEEN, ONE),
            ),
        },
        needs=frozenset({"inner-id"}),
        inner_id="inside",
    ),
    Scenario(
        "row-of-another-id",
        "The stored row has an id that is neither the candidate's nor the parsed one",
        acts.row_of_another_id,
        {
            **FIRST,
            "again": apart((NEW, "conversations 2, messages 4, log 2 success"), (SEEN, ONE)),
        },
        needs=_COPIES,
    ),
    Scenario(
        "shared-message-id",
        "Two conversations share a message id",
        acts.shared_message_id,
        {
            **FIRST,
            "resumed": apart(
                (
                    f"{SKIP} | {NEW}",
                    "conversations 2, messages 4, log 2 success, messages of s1 don't fit its hash",
                ),
                (f"{SEEN} | {NEW}", "conversations 2, messages 5, log 2 success"),
            ),
        },
        needs=frozenset({"copies", "message-ids"}),
    ),
    Scenario(
        "duplicate-registration",
        "An adapter is registered twice",
        acts.duplicate_registration,
        {"registered twice": both("DuplicateAdapterWarning; 2 adapters; first, the new one", "empty")},
    ),
    Scenario(
        "detect-fails",
        "A source's detect fails, in discovery and in an import",
        acts.detect_fails,
        {
            "discovery": both("it fails: DetectError", "empty"),
            "import": apart(
                ("the import ended: DetectError", "empty"), (f"{{source}} failed: DetectError | {NEW}", ONE_OTHER)
            ),
        },
    ),
    Scenario(
        "scan-fails",
        "A source's scan fails",
        acts.scan_fails,
        {
            "import": apart(
                ("the import ended: ScanError", "empty"), (f"{{source}} failed: ScanError | {NEW}", ONE_OTHER)
            )
        },
    ),
    Scenario(
        "parse-fails",
        "One parse fails, the others go on",
        acts.parse_fails,
        {
            "import": both(
                f"error (stored: no, adapter registered: yes) | {NEW}",
                "conversations 1, messages 2, log 1 error, log 1 success",
            ),
            "again": apart(
                (f"{NEW} | {SKIP}", "conversations 2, messages 4, log 1 error, log 2 success"),
                (f"{NEW} | {SEEN}", "conversations 2, messages 4, log 1 error, log 2 success"),
            ),
        },
        needs=_COPIES,
    ),
    Scenario(
        "parse-fails-log-broken",
        "One parse fails and the log can't be written",
        acts.parse_fails_log_broken,
        {
            "import": apart(
                ("the import ended: StoreError", "empty"), (f"error (stored: no, adapter registered: yes) | {NEW}", ONE)
            )
        },
        needs=_COPIES,
    ),
    Scenario(
        "short",
        "Fewer than two messages",
        acts.short,
        {
            "import": both("skip-short (stored: no, adapter registered: yes, enough messages: no)", "empty"),
            "again": apart(
                ("skip-short (stored: no, adapter registered: yes, enough messages: no)", "empty"),
                (
                    "skip-short (stored: yes, same size: yes, same time: yes, same bytes: yes, same parser: yes)",
                    "empty",
                ),
            ),
            "grown": apart((NEW, ONE), (f"insert ({OTHER_SIZE}, id free: yes)", ONE)),
        },
        needs=frozenset({"short"}),
    ),
    Scenario(
        "notes",
        "An edited note is kept, an unedited one dropped with a clean-up task",
        acts.notes,
        {
            "first import": both(f"{NEW} | {NEW}", "conversations 2, messages 4, log 2 success"),
            "replaced": apart(
                (
                    f"{CHANGED} | {CHANGED}",
                    "conversations 2, messages 4, notes 1, tags 2, tasks 1, log 4 success, summarized, note of s1",
                ),
                (
                    f"{CHANGED} | {CHANGED}",
                    "conversations 2, messages 4, notes 1, tags 1, tasks 1, log 4 success, summarized, note of s1",
                ),
            ),
        },
        needs=_COPIES,
    ),
    Scenario(
        "rejected",
        "A person's rejection is kept",
        acts.rejected,
        {**FIRST, "replaced": both(CHANGED, "conversations 1, messages {base}, log 2 success, filtered, score kept")},
    ),
    Scenario(
        "crash",
        "A crash before the final save",
        acts.crash,
        {
            "crash": apart(("crash", "empty"), ("crash", "conversations 2, messages 4, log 2 success")),
            "again": apart(
                (f"{NEW} | {NEW} | {NEW}", "conversations 3, messages 6, log 3 success"),
                (f"{SEEN} | {SEEN} | {NEW}", "conversations 3, messages 6, log 3 success"),
            ),
        },
        needs=_COPIES,
    ),
    Scenario(
        "tags-of-notes",
        "What hangs on a dropped note, after the first save",
        acts.tags_of_notes,
        {
            "first import": both(NEW, ONE),
            "replaced": apart(
                (CHANGED, "conversations 1, messages 2, tags 1, tasks 1, log 2 success"),
                (CHANGED, "conversations 1, messages 2, tasks 1, log 2 success"),
            ),
        },
        needs=_COPIES,
    ),
    Scenario(
        "newest-rules",
        "Content that only newer parsing rules read",
        acts.newest_rules,
        {
            "import": apart(
                ("skip-short (stored: no, adapter registered: yes, enough messages: no)", "empty"),
                (NEW, f"{ONE_OTHER}, parser @2"),
            )
        },
    ),
    Scenario(
        "meeting-ids",
        "Raw ids 7 and codex:7 are sent to a remote store",
        remote_acts.meeting_ids,
        {"sent": both("7: insert | codex:7: replace", "conversations 1, messages 2, log 2 success")},
    ),
    Scenario(
        "remote-validation",
        "Each rule of a remote payload broken in turn",
        remote_acts.validation,
        {name: both(f"error: {rule}", "empty") for name, rule in remote_acts.BROKEN_RULES.items()},
    ),
    Scenario(
        "lost-built-in",
        "A saved configuration that lost a built-in source",
        acts.lost_built_in,
        {"loaded": both("codex, copilot, claude-code, cursor, trae", "empty")},
    ),
)
