"""Whether a call may use the secrets that its arguments name: in checks of plans, as a step starts, and in the worker.

The tool's spec says which secrets the worker allows it (secrets.toml). Code is no place for a secret: a command line is
readable for everybody on the machine, and code is kept with the files it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plansurvive.features.secrets.model import SecretsOfTool, SecretUse
from plansurvive.features.secrets.naming import SECRET, misuse, names_in, places_of
from plansurvive.plans.definition.language import Wrong
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.expressions.references import Location, in_text, strings
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.model.receivers import receives

UNKNOWN, REFUSED, MISPLACED = "UNKNOWN_SECRET", "SECRET_REFUSED", "SECRET_MISPLACED"
ANY_HOST = "*"
NOT_HERE = "a secret has a value only in the arguments of a tool, while its worker makes the call; name it there"


def allowed_to(spec: ToolSpec) -> Mapping[str, SecretUse]:
    """The secrets that steps may name in the arguments of a tool, by name."""
    return spec.part(SecretsOfTool).allowed if SecretsOfTool.feature in spec.parts else {}


def with_allowed(spec: ToolSpec, allowed: Mapping[str, SecretUse]) -> ToolSpec:
    """The spec of a tool that may have these secrets and no others; `for_models` names those that models may name."""
    if not allowed and SecretsOfTool.feature not in spec.parts:
        return spec
    parts = {name: part for name, part in spec.parts.items() if name != SecretsOfTool.feature}
    if allowed:
        parts[SecretsOfTool.feature] = SecretsOfTool(allowed=dict(allowed))
    named = [
        f"{name}{f' (for {chr(44).join(use.hosts)} only)' if use.hosts else ''}"
        for name, use in allowed.items()
        if use.models
    ]
    text = f"secrets, written as {{{{secret.NAME}}}} in a text argument and never seen: {', '.join(named)}"
    withheld = [*(name for name in spec.withheld if name != SECRET), *([SECRET] if allowed else [])]
    return spec.model_copy(update={"parts": parts, "withheld": withheld, "for_models": text if named else ""})


def problems(spec: ToolSpec, args: Mapping[str, Any], tools: Mapping[str, ToolSpec], hints: Hints) -> Iterator[Wrong]:
    """What is wrong with the secrets in the arguments of a call. `tools`: all, to tell unknown names from refused."""
    for place, text in strings(args):
        if SECRET in text and any(each.root == SECRET for each in in_text(text)):
            yield from _of_text(spec, place, text, tools, hints, args)


def places(args: Mapping[str, Any]) -> list[Location]:
    """The places that a worker fills in with secrets, or refuses."""
    found = ((place, text) for place, text in strings(args) if SECRET in text)
    return [list(place) for place, text in found if any(each.root == SECRET for each in in_text(text))]


def places_of_agent(spec: ToolSpec, args: Mapping[str, Any]) -> list[Location]:
    """The places of an agent's call that a worker fills in. Any other text of an agent stays as it is."""
    known = {name for name, use in allowed_to(spec).items() if use.models}
    found = [place for place, names in places_of(args) if known.issuperset(names)]
    return [place for place in found if not _is_code(spec, place)]


def host_problem(spec: ToolSpec, names: list[str], args: Mapping[str, Any]) -> str:
    """Why these arguments, filled in, would carry a secret to a host that may not have it; empty if they would not."""
    if "url" not in spec.args_schema.get("properties", {}):
        return ""
    for name in names:
        hosts = allowed_to(spec)[name].hosts
        if ANY_HOST not in hosts and not receives(args.get("url"), hosts):
            return f"the secret {name} may be sent to {', '.join(hosts) or 'no host'} only; secrets.toml says so"
    return ""


def _of_text(
    spec: ToolSpec, place: tuple[str | int, ...], text: str, tools: Mapping[str, ToolSpec], hints: Hints,
    args: Mapping[str, Any],
) -> Iterator[Wrong]:  # fmt: skip
    if wrong := misuse(text):
        yield Wrong(MISPLACED, place, wrong)
        return
    if spec.durable:
        yield Wrong(MISPLACED, place, f"{spec.name} cannot have a secret: {_DURABLE}")
        return
    if _is_code(spec, place):
        how = "; pass it in `env` and use the variable" if "env" in spec.args_schema.get("properties", {}) else ""
        yield Wrong(MISPLACED, place, f"a secret cannot be used in the argument '{place[0]}', which is code{how}")
        return
    names = names_in(text)
    refused = [_refusal(spec, name, tools, hints) for name in names]
    yield from (Wrong(code, place, message) for code, message in refused if code)
    url = args.get("url")
    is_known = isinstance(url, str) and not in_text(url) and not any(code for code, _ in refused)
    if is_known and (problem := host_problem(spec, names, args)):
        yield Wrong(REFUSED, place, problem)


_DURABLE = "its arguments are kept with the plan, and people or models read them. Name the secret where it is used"


_WRITE = "write [secrets.{}] with `from`, `tools` and `hosts` in secrets.toml (`plan secrets list` says where it is)"


def _refusal(spec: ToolSpec, name: str, tools: Mapping[str, ToolSpec], hints: Hints) -> tuple[str, str]:
    """Code and message of why the tool may not have the secret; empty if it may."""
    if name in allowed_to(spec):
        return "", ""
    known = {each for tool in tools.values() for each in allowed_to(tool)}
    if name in known:
        return REFUSED, f"{spec.name} may not use the secret {name}; secrets.toml says which tools may"
    hint = hints.question(name, sorted(known)) or f"; {_WRITE.format(name)}"
    return UNKNOWN, f"there is no secret {name} that {spec.name} may use{hint}"


def _is_code(spec: ToolSpec, place: Sequence[str | int]) -> bool:
    return len(place) == 1 and place[0] in spec.quoting
