"""Who may come in over HTTP, and do what: ways to log in, people and roles, which requests are our own.

Shared by the web page, the MCP server at its `/mcp`, and the codec server. `guard` stands in front of every request;
`people` and `forms` are what handlers ask; `choose` takes the way to log in from the settings.
"""

from plansurvive.client.access.access import Access
from plansurvive.client.access.choose import access_for
from plansurvive.client.access.guard import Guard
from plansurvive.client.access.link import SecretLink
from plansurvive.client.access.people import Person, Role, csrf_of, needs, person_of, public

__all__ = ["Access", "Guard", "Person", "Role", "SecretLink", "access_for", "csrf_of", "needs", "person_of", "public"]
