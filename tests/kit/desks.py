"""People with keys of their own, and the policy of a worker that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporalio.client import Client

from plansurvive.client import decisions
from plansurvive.client.decisions import Choice
from plansurvive.features.signing.connection import interceptors
from plansurvive.features.signing.own_keys import Kind, Own, make, speak_for
from plansurvive.plans.run import Decision
from plansurvive.runtime.settings import Settings
from tests.kit.driving import Started


def signing(client: Client, settings: Settings) -> Client:
    config = client.config()
    config["interceptors"] = interceptors(settings)
    return Client(**config)


class Desk:
    """A state directory of somebody's own, with a client that signs as a command of theirs does."""

    def __init__(self, client: Client, settings: Settings, home: Path, name: str, kind: Kind = "person") -> None:
        self.settings = settings.model_copy(update={"state_dir": home / name})
        self.own: Own = make(self.settings, kind, name)[0]
        if kind == "person":
            speak_for(self.own)
        self.client = signing(client, self.settings)

    async def decide(self, plan: Started, **more: Any) -> Decision:
        """Approve the step, as they are called unless it says otherwise."""
        return await decisions.decide(
            self.client, plan.id, Choice(step_id="gate", **{"by": self.own.name, **more}), approved=True
        )


class Policy:
    """The policy.toml of the worker."""

    def __init__(self, settings: Settings, *desks: Desk) -> None:
        self._path, self._desks = settings.state_dir / "policy.toml", desks

    def rule(
        self, more: str, rest: str = "", tool: str = "work", decide: str = "ask", bob: str = "", mode: int = 0o600
    ) -> None:
        """One rule about the step `w`, with the keys of all people; `bob`: his line in place of that with his key."""
        lines = {each.own.name: known(each) for each in self._desks if each.own.kind == "person"}
        people = "\n".join((lines | ({"bob": f"bob = {bob}"} if bob else {})).values())
        pages = "\n".join(each.own.line for each in self._desks if each.own.kind == "page")
        text = f'[[rule]]\nname = "release"\ntool = "{tool}"\ndecide = "{decide}"\n{more}\n[people]\n{people}\n'
        new = self._path.with_suffix(".new")
        new.write_text(f"{text}[pages]\n{pages}\n{rest}")
        new.chmod(mode)
        new.replace(self._path)


def known(desk: Desk) -> str:
    """A person's line in [people], with the login that a page knows them by."""
    name, _, key = desk.own.line.partition(" = ")
    return f'{name} = {{key = {key}, logins = ["{name}@example.org"]}}'
