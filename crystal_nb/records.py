"""The small typed records that adapters, rules and decisions speak in.

All are frozen `msgspec.Struct` values. Fields that come from a transcript may hold any JSON value,
since the tools' files promise nothing; `UNSET` means that the raw record has no such key, which the
content hash tells apart from null. Their representations say how long a text is, not what it says.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from crystal_nb.details import Details, Link, without_text

__all__ = [
    "UNSET",
    "Candidate",
    "Conversation",
    "Fate",
    "FateStatus",
    "Message",
    "SourceInfo",
    "UnsetType",
    "counted",
    "excerpt",
    "printable",
    "said",
]

FateStatus = Literal["kept", "merged", "metadata", "dropped"]


class SourceInfo(Struct, frozen=True):
    """What a detect found.

    Attributes
    ----------
    name : str
        Adapter name, such as ``codex``.
    display_name : str
        Name for people, such as ``Codex CLI``.
    data_dir : str
        Folder that was looked into.
    conversation_count : int
        Conversations as the tool's detect rule counts them; a scan may list more or fewer.
    """

    name: str
    display_name: str
    data_dir: str
    conversation_count: int


class Candidate(Struct, frozen=True):
    """One conversation that a scan listed; nothing has been parsed yet.

    Attributes
    ----------
    source : str
        Adapter name.
    id : Any
        Id that the scan rule gives it; None where the tool's list has none.
    file_path : str
        File or database that holds it.
    file_size : int
        Size of that file in bytes.
    file_mtime : str
        Time that the change check compares as a string: ISO 8601, ms, ``Z``.
    project_dir : str
        Project as the scan knows it; ``""`` where it knows none.
    parser_version : str | None
        Rules that listed it and should parse it; None: those of the registered adapter.
    """

    source: str
    id: Any
    file_path: str
    file_size: int
    file_mtime: str
    project_dir: str
    parser_version: str | None = None


class Message(Struct, frozen=True, gc=False):
    """One message of a parsed conversation.

    ``type``, ``role``, ``content``, ``has_tool_use``, ``has_code`` and ``thinking`` feed the content
    hash, together with the position and the source; the other fields don't.

    Attributes
    ----------
    type : str
        ``user``, ``assistant`` or ``system``.
    content : str
        Text after the parser's cleaning.
    role : Any
        Role as the raw record says it; usually equal to ``type``.
    has_tool_use : bool
        Whether a tool call belongs to the message.
    has_code : bool
        Whether the parser saw a code fence.
    thinking : Any
        Reasoning text; None: none; `UNSET`: the parser gives no such key at all.
    id : Any
        Message id, unique only as far as the tool makes it so.
    parent_uuid : Any
        Id of the message before, where the tool says it.
    timestamp : Any
        Time exactly as the raw record has it (text or number).
    timestamp_from_clock : bool
        True where the raw record has no time and the pinned rule took the clock's.
    details : Details | None
        What careful rules know beyond that.

    Examples
    --------
    >>> Message(type="user", content="hello").role is None
    True
    """

    type: str
    content: str
    role: Any = None
    has_tool_use: bool = False
    has_code: bool = False
    thinking: Any = None
    id: Any = None
    parent_uuid: Any = None
    timestamp: Any = None
    timestamp_from_clock: bool = False
    details: Details | None = None

    def __repr__(self) -> str:
        return without_text(self, "content", "thinking")


class Conversation(Struct, frozen=True):
    """What a parse makes of one candidate.

    Attributes
    ----------
    source : str
        Adapter name.
    id : Any
        Id found inside; can differ from the candidate's.
    messages : tuple[Message, ...]
        Messages in order.
    slug : Any
        Title, where the rules know one.
    project_dir : str
        Project folder.
    project_name : str
        Short name of the project.
    cwd : Any
        Working directory.
    git_branch : Any
        Branch.
    first_message_at : Any
        Time of the first message; the clock's in an empty conversation.
    last_message_at : Any
        Time of the last message; the clock's in an empty conversation.
    parent_id : Any
        Conversation that this one is a part of, as careful rules know it.
    links : tuple[Link, ...]
        Edges to other conversations, as careful rules know them.
    """

    source: str
    id: Any
    messages: tuple[Message, ...] = ()
    slug: Any = None
    project_dir: str = ""
    project_name: str = ""
    cwd: Any = None
    git_branch: Any = None
    first_message_at: Any = None
    last_message_at: Any = None
    parent_id: Any = None
    links: tuple[Link, ...] = ()

    def __repr__(self) -> str:
        return without_text(self, "messages", "slug")


class Fate(Struct, frozen=True, gc=False):
    """What became of one raw record (a line, a row, a turn of a document). Every record has one.

    Attributes
    ----------
    status : FateStatus
        ``kept`` and ``merged`` name a message; ``metadata`` fed the conversation; ``dropped`` is lost.
    kind : str
        Kind of the record as the tool names it.
    reason : str | None
        Why it was dropped, or how it was merged.
    message_index : int | None
        Position of the message it became or went into.
    line : int | None
        1-based line of a text file.
    offset : int | None
        Byte offset of the record in its file.
    size : int | None
        Bytes of the record, line end included; of a database value, its length.
    key : str | None
        Place in a database or document: table and key, or a JSON pointer.
    head : bytes
        First bytes of a dropped record; `excerpt` shows them.
    note : str | None
        Anything else worth knowing, such as a line that Node 24 would split.
    also : tuple[int, ...]
        Positions of further messages that it became or went into.
    file_path : str | None
        File or database that holds it; None: the candidate's own.
    """

    status: FateStatus
    kind: str
    reason: str | None = None
    message_index: int | None = None
    line: int | None = None
    offset: int | None = None
    size: int | None = None
    key: str | None = None
    head: bytes = b""
    note: str | None = None
    also: tuple[int, ...] = ()
    file_path: str | None = None

    @property
    def messages(self) -> tuple[int, ...]:
        """Positions of all messages that the record became or went into.

        >>> Fate("kept", "x", message_index=4, also=(5,)).messages, Fate("dropped", "x").messages
        ((4, 5), ())
        """
        return () if self.message_index is None else (self.message_index, *self.also)

    def __repr__(self) -> str:
        return without_text(self, "head")

    @property
    def excerpt(self) -> str:
        r"""The head as one harmless line: control, format and other invisible characters escaped.

        >>> Fate("dropped", "x", head=b"a\x1b[31m\xff").excerpt
        'a\\x1b[31m\\xff'
        """
        return excerpt(self.head)


def excerpt(head: bytes) -> str:
    r"""Show bytes as one line of printable text, everything else escaped.

    >>> excerpt("é\u202e\n".encode() + b"\xff")
    'é\\u202e\\n\\xff'
    """
    return printable(head.decode("utf-8", "backslashreplace"))


def counted(number: int, thing: str) -> str:
    """A number with its noun.

    >>> counted(1, "cause"), counted(2000, "query")
    ('1 cause', '2,000 queries')
    """
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing[:-1]}ies" if thing.endswith("y") else f"{number:,} {thing}s"


def printable(text: str) -> str:
    r"""Escape control, format, surrogate and other invisible characters; no terminal obeys the result.

    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_LONGEST = 400


def said(error: BaseException) -> str:
    r"""What an exception says, as one harmless line of bounded length.

    >>> said(ValueError("a\x1b"))
    'a\\x1b'
    """
    try:
        text = str(error)
    except Exception as inner:  # a person's exception may raise anything here, too
        return f"(its text can't be shown: {type(inner).__name__})"
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
