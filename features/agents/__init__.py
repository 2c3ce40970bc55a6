"""Agents: an LLM works through a request with tools, by itself (`plan agent`) or as a step of a plan.

workflow: AgentWorkflow. questions: its LLM requests. reports: what its plan and the agent history learn of it. start:
what it is started with. steps: a plan's steps of the tool `agent`. history_store: the agent runs of this machine. Its
prompts, tasks and state as values: model.
"""

REACHES_OUT = False
ACTIVITIES = ("track_agent",)
COMMANDS = {
    "agent": ("commands:agent", "Have an LLM with tools work through a request."),
    "history": ("commands:history", "Show the agent runs on this machine."),
}
LISTED = {"agent": ("Run", "schedule"), "history": ("Look", "graph")}
