"""The commands `plan notify list` and `plan notify test`. May import `client.cli` and `client`."""
