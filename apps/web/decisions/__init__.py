"""Deciding on the web page: the inbox of all plans, one decision on a page of its own, approve, deny and answer.

Works as plain forms; JavaScript only keeps the lists current. Imports the page's service, rendering, forms and access.
"""

from plansurvive.apps.web.decisions.routes import routes

__all__ = ["routes"]
