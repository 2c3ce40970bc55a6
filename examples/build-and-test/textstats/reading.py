"""How hard a text is to read."""

import re

from textstats.count import sentences, words


def syllables(word: str) -> int:
    """Syllables of an English word, roughly: groups of vowels, a silent e left out."""
    groups = re.findall(r"[aeiouy]+", word.lower().removesuffix("e"))
    return max(1, len(groups))


def ease(text: str) -> float:
    """Flesch reading ease: 100 is very easy, 0 very hard."""
    found = words(text)
    if not found:
        return 0.0
    per_word = sum(map(syllables, found)) / len(found)
    return round(206.835 - 1.015 * len(found) / sentences(text) - 84.6 * per_word, 1)
