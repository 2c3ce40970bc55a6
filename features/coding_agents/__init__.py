"""Coding agents as steps: a program that speaks the Agent Client Protocol works in the plan's workspace.

agents_file: agents.toml, the operator's. steps: a plan's steps of the tool `coding_agent`. workflow: that of an agent.
turn: one turn, an attempt that owns the agent's process. session: what the agent asks of us meanwhile. program: how its
process is started.
"""

REACHES_OUT = True
READS = {"agents.toml": ("PLANS_AGENTS", "agents_file:read_agents")}
COMMANDS: dict[str, tuple[str, str]] = {}
