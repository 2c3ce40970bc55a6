"""Who may see and do what on the web page: people and roles, the secret link, which requests are our own.

`guard` stands in front of every request; `people` is what handlers ask. Imports nothing of the pages.
"""

from client.web.access.guard import Guard
from client.web.access.link import SecretLink, kept_secret
from client.web.access.people import Person, Role, csrf_of, needs, person_of

__all__ = ["Guard", "Person", "Role", "SecretLink", "csrf_of", "kept_secret", "needs", "person_of"]
