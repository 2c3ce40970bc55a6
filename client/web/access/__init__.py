"""Who may see and do what on the web page: ways to log in, people and roles, which requests are our own.

`guard` stands in front of every request; `people` is what handlers ask; `choose` takes the way to log in from the
settings. Nothing but `pages` imports the pages.
"""

from plansurvive.client.web.access.access import Access
from plansurvive.client.web.access.choose import access_for
from plansurvive.client.web.access.guard import Guard
from plansurvive.client.web.access.link import SecretLink
from plansurvive.client.web.access.people import Person, Role, csrf_of, needs, person_of, public

__all__ = ["Access", "Guard", "Person", "Role", "SecretLink", "access_for", "csrf_of", "needs", "person_of", "public"]
