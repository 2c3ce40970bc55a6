"""`plan demo`: half a minute in which a plan loses its worker, continues, asks a person, and is undone."""
