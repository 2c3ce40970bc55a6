"""Signed decisions (PLANS_DECISIONS=signed): only the owner of a state directory's key starts and decides; and keys of
people and pages, which prove who it was.

docs/operations.md#signed-decisions
"""

REACHES_OUT = True
COMMANDS = {
    "keys person": (
        "commands:person",
        "Make the key with which a person decides from this state directory, and print its line for policy.toml.",
    ),
    "keys page": (
        "commands:page",
        "Make the key with which the web page of this state directory vouches for its logins, and print its line.",
    ),
}
