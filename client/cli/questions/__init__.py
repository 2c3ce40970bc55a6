"""Commands for steps that wait: answer a question, send an event."""
