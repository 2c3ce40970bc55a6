"""How the person at a terminal is called, where the state directory has their own key: as it says."""

from __future__ import annotations

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings


def author(settings: Settings, given: str) -> str:
    """The name that the key of the directory proves; empty if it has none. Raises PlanError for another one."""
    if not (settings.state_dir / "person.key").is_file():
        return ""
    from plansurvive.features.signing.own_keys import own_key, path_of, speak_for  # lazily: it loads the library

    person = own_key(settings, "person")
    if person is None:
        return ""
    if given and given != person.name:
        where = path_of(settings, "person")
        text = f"--by {given}: what is sent from here is signed with the key of {person.name} ({where})"
        raise PlanError(f"{text}; leave --by out, or decide from {given}'s own state directory", "BAD_USAGE")
    speak_for(person)
    return person.name
