"""The command `watch-files`: reports to a running plan which files of its workspace others change."""

from __future__ import annotations

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, Id
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.ids import plan_id


def watch_files(plan: Id, as_json: AsJson = False) -> None:
    """Report files that others change to a plan. The plan reads them again before it edits them."""
    from plansurvive.client.watchers.file_watcher import watch_files as watch

    async def follow(here: Connected) -> None:
        async for paths in watch(here.client, plan, output.say):
            for path in paths:
                if as_json:
                    output.show_json({"planId": plan_id(plan), "path": path}, on_one_line=True)
                else:
                    output.show(f"{path} was changed by others; {plan_id(plan)} has to read it again before editing it")

    session.run(follow)
