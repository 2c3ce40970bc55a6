"""The command `plan audit`. Imports what every command of `client.cli` may."""
