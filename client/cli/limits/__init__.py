"""The command `plan limits`. May import `client.cli`, `client` and `runtime`."""
