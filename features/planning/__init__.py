"""Plans that the LLM repairs: it chooses what becomes of a failed step (`onFailure: ask_llm`).

recovery: when it is asked, the prompt, and its choice as edits. recovering: asks, proposes, carries out.
"""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
