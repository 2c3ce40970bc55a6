"""Figures about texts: words, sentences, how hard they are to read."""

from textstats.count import sentences, words
from textstats.reading import ease

__all__ = ["ease", "sentences", "words"]
