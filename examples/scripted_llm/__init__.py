"""A scripted LLM: a real HTTP server for the chat completions protocol whose replies come from a script."""
