"""`plan limits`: the limits of limits.toml, what of them is used now, and which plans wait."""

from __future__ import annotations

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.features.limits.limits_file import file_of, read_limits
from plansurvive.features.limits.model import LimitRow
from plansurvive.features.limits.views import in_words
from plansurvive.features.limits.views import limits as in_use
from plansurvive.plans.text.safe_text import line


def limits(as_json: AsJson = False) -> None:
    """Show rates and concurrency: what is used, and who waits."""
    session.run(lambda here: _limits(here, as_json))


async def _limits(here: Connected, as_json: bool) -> None:
    settings = here.settings
    named = read_limits(settings)
    rows = await in_use(here.client, queue=settings.task_queue)
    if as_json:
        output.show_json([row.model_dump(mode="json", by_alias=True) for row in rows])
        return
    if named.is_empty and not rows:
        output.show(f"no limits are set; {file_of(settings)} sets them (docs/limits.md)")
    for row in rows:
        output.show("\n".join(_lines(row)))
    unused = [text for bucket, text in named.texts.items() if not any(_is_of(row.bucket, bucket) for row in rows)]
    for text in unused:
        output.show(text)


def _lines(row: LimitRow) -> list[str]:
    more = row.waiting - len(row.first)
    waiting = [f"  waits: {line(each)}" for each in row.first] + ([f"  and {more:,} more"] if more > 0 else [])
    return [f"{line(row.bucket)}: {in_words(row) or 'not used now'}", *waiting]


def _is_of(bucket: str, limit: str) -> bool:
    return bucket == limit or bucket.startswith(f"{limit}[")
