"""The web page: server-rendered HTML over `client.runs`; each action calls the same function as the command."""
