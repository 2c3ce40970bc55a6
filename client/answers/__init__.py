"""Answers to the questions of plans, and events for them: sending both, and the form that a question becomes."""
