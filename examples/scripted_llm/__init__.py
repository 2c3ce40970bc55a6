"""An LLM that says what a script tells it to: a real HTTP server for the chat completions protocol."""
