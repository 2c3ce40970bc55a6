"""`plan keys person` and `plan keys page`: make a key that proves who decides, and print its line for policy.toml."""

from __future__ import annotations

from typing import Annotated

import typer

from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.features.signing.own_keys import Kind, make, path_of

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that policy.toml lists it under.")]


def person(name: Name, as_json: AsJson = False) -> None:
    """Make the key with which a person decides from this state directory, and print its line for policy.toml."""
    _made("person", name, as_json)


def page(name: Name, as_json: AsJson = False) -> None:
    """Make the key with which the web page of this state directory vouches for its logins, and print its line."""
    _made("page", name, as_json)


def _made(kind: Kind, name: str, as_json: bool) -> None:
    settings = environment.settings()
    table = "people" if kind == "person" else "pages"
    found, is_new = make(settings, kind, name)
    if as_json:
        output.show_json({"name": name, "line": found.line, "file": str(path_of(settings, kind)), "new": is_new})
        return
    said = "made" if is_new else "it was made before:"
    output.say(f"{said} {path_of(settings, kind)}; below [{table}] in the policy.toml of the workers, write:")
    output.show(found.line)
