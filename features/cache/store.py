"""The store of results on a worker's disk: entries by key, contents by hash, and which plan had which result.

    key                  the secret of the keys, 32 random bytes
    entries/ab/cd.../N   entries of a key, one file for each set of files read
    contents/            contents of files and of large values
    last/                by place in a plan, the entry of its last run: to say what changed
    plans/               by plan, the entries whose result it has: for `--since`

Every file is written whole or not at all, so that workers of one state directory need no lock: of two that keep the
same result, one wins. Entries begin with a keyed hash of text and place, and contents are named by their hash: what was
altered, moved or half written is noticed and counts as not there. All of it may be deleted at any time.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from plansurvive.activities.workspace.content_store import ContentStore
from plansurvive.features.cache.entries import Entry
from plansurvive.features.cache.keys import digest
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.errors import KeyMissing, Unauthentic
from plansurvive.runtime.sealing import UNSEALED, Sealing

FOLDER = "cache"
"""In the state directory."""
MAX_CONTENT = 64 * 1024 * 1024
"""Bytes of a file or value; a result with a larger one is not kept."""
MAX_ENTRIES = 8
"""Entries of a key: that many states of the files read are told apart."""
MAX_ENTRY = 8 * 1024 * 1024
MAX_LISTED = 64 * 1024 * 1024
_SECRET = 32


@dataclass
class ResultStore:
    """The store in a directory that all workers of a state directory share."""

    directory: Path
    sealing: Sealing = UNSEALED
    max_total: int = 1024 * 1024 * 1024
    """Approximate limit on the size of the contents, in bytes."""

    def __post_init__(self) -> None:
        self.contents = ContentStore(self.directory / "contents", MAX_CONTENT, self.max_total, self.sealing)
        self._secret = b""

    @property
    def secret(self) -> bytes:
        """The secret of the keys; made when it is first needed. Raises OSError."""
        if not self._secret:
            self._secret = self._read_secret()
        return self._secret

    @property
    def exists(self) -> bool:
        """Whether anything has been kept."""
        return (self.directory / "key").is_file()

    def entries(self, key: str) -> Iterator[tuple[str, Entry | None]]:
        """The entries of a key with their ids, the last one used first; None for one that is damaged."""
        folder = self._folder(key)
        with suppress(OSError):
            for path in sorted(folder.iterdir(), key=_used, reverse=True)[:MAX_ENTRIES]:
                if not path.name.startswith("."):
                    yield f"{key}/{path.name}", self._entry(path)

    def put(self, entry: Entry) -> str:
        """Keep an entry; returns its id. Raises OSError."""
        files = {path: stamp and [stamp.hash, stamp.size] for path, stamp in entry.reads.items()}
        folder, name = self._folder(entry.key), digest(self.secret, "files", files)[:32]
        self._write(folder / name, entry.model_dump_json(exclude_defaults=True))
        with suppress(OSError):
            for path in sorted(folder.iterdir(), key=_used, reverse=True)[MAX_ENTRIES:]:
                path.unlink(missing_ok=True)
        return f"{entry.key}/{name}"

    def used(self, entry_id: str) -> None:
        """Its result was taken: it is kept longer."""
        key, _, name = entry_id.partition("/")
        with suppress(OSError):
            os.utime(self._folder(key) / name)

    def drop(self, entry_id: str) -> None:
        """Remove an entry that cannot be used any more."""
        key, _, name = entry_id.partition("/")
        with suppress(OSError):
            (self._folder(key) / name).unlink(missing_ok=True)

    def last(self, place: str) -> Entry | None:
        """The entry of the last call at a place, without its value."""
        return self._entry(self._named("last", place))

    def put_last(self, place: str, entry: Entry) -> None:
        """Remember what the last call at a place was. Raises OSError."""
        said = entry.model_copy(update={"value": None, "large": None, "outputs": []})
        self._write(self._named("last", place), said.model_dump_json(exclude_defaults=True))

    def of_plan(self, plan_id: str) -> frozenset[str]:
        """The ids of the entries whose results a plan has."""
        try:
            with self._named("plans", plan_id).open("rb") as file:
                return frozenset(file.read(MAX_LISTED).decode("ascii", "replace").split("\n"))
        except OSError:
            return frozenset()

    def add_to_plan(self, plan_id: str, entry_id: str) -> None:
        """A plan has the result of an entry. Raises OSError."""
        path = self._named("plans", plan_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{entry_id}\n".encode())  # one short write: lines of other workers stay whole
        finally:
            os.close(descriptor)

    def _folder(self, key: str) -> Path:
        return self.directory / "entries" / key[:2] / key[2:]

    def _named(self, folder: str, name: str) -> Path:
        return self.directory / folder / digest(self.secret, folder, name)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = self.sealing.text(f"{self._mac(path, text)}\n{text}").encode()
        write_whole(path, data, durable=False)  # a crash may leave it damaged; `_entry` checks its hash

    def _entry(self, path: Path) -> Entry | None:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_ENTRY + 1)
            mac, _, text = self.sealing.plain(data.decode()).partition("\n")
            return Entry.model_validate_json(text) if hmac.compare_digest(mac, self._mac(path, text)) else None
        except (OSError, ValueError, TypeError, ValidationError, KeyMissing, Unauthentic):
            return None

    def _mac(self, path: Path, text: str) -> str:
        """Of the text at its place: an entry that was moved is no entry."""
        return digest(self.secret, "entry", str(path.relative_to(self.directory)), text)

    def _read_secret(self) -> bytes:
        path = self.directory / "key"
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            found = path.read_bytes()
            if len(found) == _SECRET:
                return found
            path.unlink()  # half written by a crash of the machine
        temporary = self.directory / f".{secrets.token_hex(8)}.tmp"
        write_whole(temporary, secrets.token_bytes(_SECRET))
        try:
            with suppress(FileExistsError):
                os.link(temporary, path)  # the first of several workers makes it
        finally:
            temporary.unlink(missing_ok=True)
        return path.read_bytes()


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
