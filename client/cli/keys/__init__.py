"""The commands `plan keys new`, `list` and `check`. May import `client.cli`, `client` and `runtime`."""
