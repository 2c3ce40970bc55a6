"""`plan keys`: the key ring that encrypts payloads and stored values. Needs no server; `--print` alone shows a key."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from plansurvive.client.cli.commands import add_commands_of_features
from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.options import AsJson, group
from plansurvive.client.cli.terminal.spans import duration
from plansurvive.features.keys.ring import Key, KeyRing, new_key, parse, written
from plansurvive.features.keys.sealing import SETTING, ring_of, sealing
from plansurvive.features.keys.settings import COMMAND, KeySettings
from plansurvive.features.keys.source import FileSource
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked
from plansurvive.runtime.settings import SettingError, Settings

app = group("Add a key that encrypts, list the keys, and check them.")

_TIME = "%Y-%m-%d %H:%M:%S UTC"


@app.command("new")
def new(
    ahead: Annotated[
        str, typer.Option("--in", metavar="TIME", help="When it begins to encrypt: 30s, 10m, 1d from now.")
    ] = "60s",
    printed: Annotated[
        bool, typer.Option("--print", help="Print the key, for a secrets manager, and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a key to the file PLANS_KEYS. All processes read it at once; it encrypts when they have had time to."""
    later = duration(ahead, "--in")
    if printed:
        now = datetime.now(UTC)
        output.show(written(new_key(now, now + later)).rstrip())
        return
    key = add_key(_file(environment.settings()), later)
    if as_json:
        output.show_json(_row(key, None))
    else:
        output.show(f"added {key.id}, which encrypts from {key.since.strftime(_TIME)} on")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the ids of the keys, the newest last, and which one encrypts now."""
    ring = _ring(environment.settings())
    current = ring.current(datetime.now(UTC))
    if as_json:
        output.show_json([_row(key, current) for key in ring.keys])
        return
    for key in ring.keys:
        since = key.since.strftime(_TIME)
        more = ", encrypts now" if key == current else ", encrypts from then on" if key.since > current.since else ""
        output.show(f"{key.id}  from {since}{more}")


@app.command("check")
def check(as_json: AsJson = False) -> None:
    """Check that the keys can be read here. Machines that print the same line have the same keys."""
    settings = environment.settings()
    ring, plain = _ring(settings), settings.of(KeySettings).plain
    current = ring.current(datetime.now(UTC))
    same = hashlib.sha256(" ".join(sorted(ring.by_id)).encode()).hexdigest()[:12]
    if as_json:
        output.show_json({"keys": len(ring.keys), "encrypts": current.id, "ring": same, "plain": plain})
    else:
        count = len(ring.keys)
        output.show(f"ring {same}: {number_of(count, 'key')}, {current.id} encrypts now; plain payloads: {plain}")


@app.command("read")
def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of the state directory, such as a SUMMARY.md.")],
) -> None:
    """Print a text of ours that is encrypted, such as runs/ID/SUMMARY.md; any other text as it is."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{file} cannot be read as text: {error}", "NOT_FOUND") from None
    output.show(sealing(environment.settings()).plain(text))


def _row(key: Key, current: Key | None) -> dict[str, Any]:
    return {"id": key.id, "from": key.since.isoformat(), "encrypts": key == current}


NOT_SET = (
    "it is not set, so nothing is encrypted; to encrypt, export PLANS_KEYS=~/.config/plans/keys.toml, and then "
    "`plan keys new` makes that file"
)


def _file(settings: Settings) -> Path:
    named = settings.of(KeySettings).keys
    if named is None:
        raise SettingError({SETTING: NOT_SET})
    if named.startswith(COMMAND):
        text = "the keys come from a command; `plan keys new --print` prints a key to add where it reads them"
        raise PlanError(text, "BAD_KEYS")
    return Path(named)


def _ring(settings: Settings) -> KeyRing:
    ring = ring_of(settings)
    if ring is None:
        raise SettingError({SETTING: NOT_SET})
    return ring.refresh()


add_commands_of_features(app, "keys")


AHEAD = timedelta(seconds=60)
"""How long every process has to notice a new key before the first one encrypts with it."""

LOCK_SECONDS = 10.0
"""How long another command may be adding a key."""


def add_key(path: Path, ahead: timedelta = AHEAD, now: datetime | None = None) -> Key:
    """Add a new key, which encrypts after `ahead`; the first key of a ring at once. What is there stays as it is.

    Raises BadRing if the file holds anything but a key ring, or others can read it; OSError if it cannot be written.
    """
    now = now or datetime.now(UTC)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock"), LOCK_SECONDS):
        before = "".join(map(written, FileSource(path).read().keys)) if path.exists() else ""
        key = new_key(now, now + ahead if before else now)
        text = f"{before}{written(key)}"
        parse(text)
        write_whole(path, text.encode())
    return key
