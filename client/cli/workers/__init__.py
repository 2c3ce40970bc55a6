"""The commands `plan worker versions`, `ramp`, `rollback` and `drain`. May import `client.cli`, `client`, `runtime`."""
