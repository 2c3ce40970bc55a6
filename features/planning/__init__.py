"""Plans that the LLM writes, revises and repairs: docs/planning.md.

drafting: writes and revises a plan (`drafts`, `regeneration`: its answers as plans). recovery: when it is asked about a
failed step (`onFailure: ask_llm`), and its choice as edits; recovering: asks, proposes, carries out. prompts,
control_flow, earlier_calls: what it is asked; asking: sends it. make: `plan make`.
"""

REACHES_OUT = False
COMMANDS = {
    "make": ("make:make", "Have the LLM write a plan."),
    "regenerate": ("commands:regenerate", "Have the LLM revise the steps that have not started."),
}
LISTED = {"make": ("Run", "check"), "regenerate": ("Change", "unskip")}
