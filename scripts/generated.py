"""What scripts write into documents, between two markers; the text around them is left alone."""

from __future__ import annotations


def between(document: str, begin: str, end: str, text: str) -> str:
    """The document with `text` between its markers. Raises ValueError if it has no markers."""
    before, _, rest = document.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"no '{begin}' and '{end}' in the document")
    return f"{before}{begin}\n{text}\n{end}{after}"
