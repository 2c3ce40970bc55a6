"""The JSON Schemas of an agent's answers, and what the model is told about each field (seed 002)."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.plans.llm.schemas import NULLABLE_TEXT, Schema, Tools, calls_schema, instruction, object_schema

SIMPLE_FIELDS: Mapping[str, tuple[str, str]] = {
    "tool_calls": ("Tools to call", "List the tools you need to call. Leave this empty when you answer."),
    "answer": (
        "Your answer",
        "Provide your answer ONLY when you have completed the task. If you still need to call tools, leave this empty.",
    ),
    "confidence": ("Confidence level", "Rate your confidence: high, medium, or low"),
}
"""Fields of an answer in simple mode, with description and instruction (seed 002)."""

COMPLEX_FIELDS: Mapping[str, tuple[str, str]] = {
    "reasoning": ("Your reasoning", "Explain what you are doing and why"),
    "tool_calls": ("Tools to call", "List the tools you need to call. Can be combined with task_completed."),
    "task_completed": (
        "Summary of completed task",
        "Fill this ONLY when you have finished the CURRENT TASK. Brief summary of what was done.",
    ),
    "final_answer": (
        "Final response",
        "Fill this ONLY when ALL tasks in the TASK LIST are complete. This stops the agent.",
    ),
}
"""Fields of an answer in complex mode, with description and instruction (seed 002)."""


def simple_schema(tools: Tools) -> Schema:
    """The schema of an answer in simple mode."""
    confidence = {"type": ["string", "null"], "enum": ["high", "medium", "low", None]}
    shapes = {"tool_calls": calls_schema(tools), "answer": NULLABLE_TEXT, "confidence": confidence}
    return object_schema(
        {name: shapes[name] | {"description": instruction(SIMPLE_FIELDS, name)} for name in SIMPLE_FIELDS}
    )


def complex_schema(tools: Tools) -> Schema:
    """The schema of an answer in complex mode."""
    calls = calls_schema(tools)
    shapes = {name: calls if name == "tool_calls" else NULLABLE_TEXT for name in COMPLEX_FIELDS}
    return object_schema(
        {name: shapes[name] | {"description": instruction(COMPLEX_FIELDS, name)} for name in COMPLEX_FIELDS}
    )


def decomposition_schema() -> Schema:
    """The schema of a task list."""
    text = "One objective per task, in the order of execution"
    return object_schema({"tasks": {"type": "array", "items": {"type": "string"}, "description": text}})


def _described(shapes: Mapping[str, Schema], fields: Mapping[str, tuple[str, str]]) -> Schema:
    return object_schema({name: shapes[name] | {"description": instruction(fields, name)} for name in fields})
