"""One-time links: a message to a person holds a link that decides about exactly one call, once.

`token.py` says what a link is good for and signs it; `used.py` remembers which were used. May import `plans` and
`runtime`. Workers issue links, the web page honours them; both have the state directory's key.
"""

from plansurvive.runtime.links.links import Links
from plansurvive.runtime.links.token import Link, LinkRefused

__all__ = ["Link", "LinkRefused", "Links"]
