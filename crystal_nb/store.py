"""A database of imported conversations: this package's own, or a ChatCrystal one to look at.

Source: ``pinned-importer.md`` sections 3 and 8.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from crystal_nb import ecma, store_schema
from crystal_nb.config import Config
from crystal_nb.decisions import Decision, StoredConversation
from crystal_nb.errors import ConfigError, StoreError
from crystal_nb.policy import CAREFUL, PINNED, Policy, policy_of
from crystal_nb.records import Candidate, Conversation, counted, printable
from crystal_nb.rehash import rehash, stored_conversation, whole_conversation
from crystal_nb.states import States
from crystal_nb.store_copy import copy_database, new_database, reported
from crystal_nb.store_schema import Layout
from crystal_nb.store_writes import Applied, write, write_log, write_short

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Store"]

_SHORT_COLUMNS = ("source", "candidate_id", "file_size", "file_mtime", "parser_version", "fingerprint")


class Store:
    """Imported conversations in an SQLite database; `open_store` makes one.

    Attributes
    ----------
    path : Path | None
        The database; None for one in memory.
    read_only : bool
        Whether it is a copy to look at.
    layout : Layout
        What identifies its rows.
    """

    def __init__(
        self,
        path: Path | None,
        connection: sqlite3.Connection,
        *,
        config: Config,
        read_only: bool = False,
        folder: str | None = None,
    ) -> None:
        self.path, self.read_only = path, read_only
        self.layout = Layout.found_in(connection)
        self._connection, self._config = connection, config
        self._in_batch, self._version = False, 0
        self._running = threading.Lock()
        self._discard = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True) if folder else None

    @classmethod
    def in_memory(cls, policy: Policy, config: Config) -> Store:
        """An empty store that goes with the process.

        >>> from crystal_nb.policy import PINNED
        >>> Store.in_memory(PINNED, Config())
        Store: in memory, 0 conversations
        """
        return cls(None, new_database(Layout.of(policy), ecma.iso_time(config.clock())), config=config)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; a second time does nothing."""
        self._connection.close()
        if self._discard is not None:
            self._discard()

    def __repr__(self) -> str:
        count = "closed"
        try:
            (found,) = self._connection.execute("SELECT count(*) FROM conversations").fetchone()
            count = counted(found, "conversation")
        except sqlite3.Error:
            pass
        place = printable(str(self.path or "in memory"))
        return f"Store: {place}, {count}{', read-only' if self.read_only else ''}"

    def states(self) -> States:
        """All that decisions look at, by one query."""
        with self.reported():
            known = store_schema.columns_of(self._connection, "conversations")
            names = ("source", "id", "source_conversation_id", "file_size", "file_mtime", "content_hash")
            fields = [name if name in known else "NULL" for name in (*names, "parser_version", "fingerprint")]
            query = f"SELECT {', '.join(fields)}, 0 FROM conversations"
            if set(_SHORT_COLUMNS) <= set(store_schema.columns_of(self._connection, "short_candidates")):
                query += (
                    " UNION ALL SELECT source, candidate_id, candidate_id, file_size, file_mtime, NULL,"
                    " parser_version, fingerprint, 1 FROM short_candidates"
                )
            self._version = self._data_version()
            return States(map(_stored, self._connection.execute(query)))

    def changed_elsewhere(self) -> bool:
        """Whether another connection wrote to the database since `states`."""
        with self.reported():
            return not self._in_batch and self._data_version() != self._version

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def conversations(self) -> pl.DataFrame:
        """One row per stored conversation; columns: ``store_frames.STORED_CONVERSATIONS``."""
        return self._frame("conversations")

    def messages(self) -> pl.DataFrame:
        """One row per stored message; columns: ``store_frames.STORED_MESSAGES``."""
        return self._frame("messages")

    def notes(self) -> pl.DataFrame:
        """One row per note; columns: ``store_frames.NOTES``."""
        return self._frame("notes")

    def import_log(self) -> pl.DataFrame:
        """One row per entry of the import log; columns: ``store_frames.IMPORT_LOG``."""
        return self._frame("import_log")

    def clean_up_tasks(self) -> pl.DataFrame:
        """One row per clean-up of a deleted note's vectors; columns: ``store_frames.CLEAN_UP_TASKS``."""
        return self._frame("clean_up_tasks")

    def conversation(self, source: str, id: str) -> Conversation:
        """One stored conversation as its rows have it; no other one's messages are read.

        Its hash is the stored one as long as nobody took or changed its rows. Tool calls and losses
        are not stored.

        Raises
        ------
        UnknownConversationError
            If it is not here.
        """
        with self.reported():
            return whole_conversation(self._connection, self.layout, source, id)

    def folded_texts(self) -> pl.DataFrame:
        """Texts of all messages without their case, to search in; columns: ``store_frames.FOLDED_TEXTS``."""
        from crystal_nb import store_frames

        with self.reported():
            return store_frames.folded_texts(self._connection)

    def _frame(self, name: str) -> pl.DataFrame:
        from crystal_nb import store_frames

        with self.reported():
            return store_frames.read(self._connection, name)

    def copy(self, policy: Policy | None = None) -> Store:
        """A copy in memory, to try things on.

        Parameters
        ----------
        policy
            Lays the copy's rows out as this policy needs them; default: as they are.
        """
        layout = None if policy is None else Layout.of(policy)
        with self.reported():
            return Store(None, copy_database(self._connection, layout, self._now()), config=self._config)

    @property
    def connection(self) -> sqlite3.Connection:
        """The SQLite connection, for questions that no method answers."""
        return self._connection

    def rehash(self, source: str, id: str) -> frozenset[str]:
        """Hashes that the stored rows of a conversation can stand for."""
        with self.reported():
            return rehash(stored_conversation(self._connection, self.layout, source, id))

    def _now(self) -> str:
        return ecma.iso_time(self._config.clock())

    def policy(self, profile: str | Policy | None = None) -> Policy:
        """The policy of a profile; by default the one whose layout this store has."""
        if profile is None:
            return CAREFUL if self.suits(CAREFUL) else PINNED
        return policy_of(profile)

    def suits(self, policy: Policy) -> bool:
        """Tell whether the policy identifies rows as this store does.

        >>> from crystal_nb.policy import CAREFUL, PINNED
        >>> with Store.in_memory(PINNED, Config()) as store:
        ...     store.suits(PINNED), store.suits(CAREFUL)
        (True, False)
        """
        return Layout.of(policy) == self.layout

    def check_policy(self, policy: Policy) -> None:
        """Refuse what can't be written here.

        Raises
        ------
        StoreError
            If the store is a copy to look at.
        ConfigError
            If the policy identifies rows in another way than this store.
        """
        if self.read_only:
            reason = "opened to be looked at, as a ChatCrystal database always is; import into another file"
            raise StoreError(reason, path=self.path)
        if not self.suits(policy):
            raise ConfigError(
                f"{self.path}: this store keeps {self.layout.describe()}, the policy {policy.name!r} needs "
                f"{Layout.of(policy).describe()}; create another store with open_store(path, profile=…)"
            )

    @contextmanager
    def batch(self, policy: Policy) -> Iterator[None]:
        """Hold a run, one at a time; by ``save="at-end"`` the file changes when it ends well, and only then."""
        if not self._running.acquire(blocking=False):
            raise StoreError("another import is running into this store; wait for it, or open it twice", path=self.path)
        try:
            if policy.save == "each":
                yield
            else:
                yield from self._one_transaction()
                self._saved(policy)
        finally:
            self._running.release()

    def _one_transaction(self) -> Iterator[None]:
        with self.reported():
            self._connection.execute("BEGIN IMMEDIATE")
        self._in_batch = True
        try:
            yield
            with self.reported():
                self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._in_batch = False

    def _saved(self, policy: Policy) -> None:
        """The pinned importer's way to save resets the pragma."""
        if policy.foreign_keys == "until-saved":
            self._connection.execute("PRAGMA foreign_keys = OFF")  # without effect inside a batch

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One conversation's changes: a transaction, or a part of the run's."""
        inside = self._in_batch
        self._connection.execute("SAVEPOINT one" if inside else "BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("RELEASE one" if inside else "COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO one" if inside else "ROLLBACK")
                if inside:
                    self._connection.execute("RELEASE one")
            raise

    def apply(
        self, decision: Decision, candidate: Candidate, conversation: Conversation | None, policy: Policy
    ) -> Applied:
        """Write one decision in one transaction; durable when it returns, unless a batch holds it.

        Raises
        ------
        StoreError
            If it can't be written; then nothing of it is.
        """
        with self.reported():
            if policy.remember_short and decision.is_short_reading:
                with self._transaction():
                    write_short(self._connection, decision, candidate)
            if decision.action not in ("insert", "replace", "metadata-update") or conversation is None:
                return Applied()
            with self._transaction():
                done = write(self._connection, self.layout, policy, decision, candidate, conversation, self._now())
            self._saved(policy)
            return done

    def log_error(self, file_path: str, message: str) -> None:
        """Add a row ``error`` to the import log; raises `StoreError` when it can't."""
        with self.reported(), self._transaction():
            write_log(self._connection, file_path, "error", message, self._now())

    @property
    def foreign_keys(self) -> bool:
        """Whether messages need the row of their conversation now; see ``Policy.foreign_keys``."""
        with self.reported():
            return bool(self._connection.execute("PRAGMA foreign_keys").fetchone()[0])

    @property
    def batch_lost(self) -> bool:
        """Whether SQLite gave up the transaction of a running batch, as on a full disk."""
        return self._in_batch and not self._connection.in_transaction

    def reported(self) -> Any:
        """Context in which SQLite's errors become `StoreError`."""
        return reported(self.path or "in memory")


def _stored(row: tuple[Any, ...]) -> StoredConversation:
    source, id, candidate_id, size, mtime, digest, version, fingerprint, is_short = row
    return StoredConversation(source, id, candidate_id, size, mtime, digest, version, fingerprint, bool(is_short))
