"""A tool of one's own: a function, `@tool`, and the module's name in PLANS_TOOLS.

PLANS_TOOLS=examples/tools/word_count.py plan tools
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from plansurvive import ToolContext, tool


@tool(effect="pure")
def word_count(
    path: str, context: ToolContext, most_common: Annotated[int, Field(ge=0, le=1_000)] = 5
) -> dict[str, object]:
    """Count the words of a text file.

    Args:
        path: The file, relative to the workspace.
        most_common: How many of the most frequent words to name.

    Returns:
        {words, mostCommon}; mostCommon is a list of [word, count].
    """
    words = context.read_text(path).lower().split()
    return {"words": len(words), "mostCommon": [list(pair) for pair in Counter(words).most_common(most_common)]}
