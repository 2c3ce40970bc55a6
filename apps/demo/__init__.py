"""`plan demo`: half a minute in which a plan loses its worker, goes on, asks a person, and is undone."""
