"""python textstats.pyz FILE: print the figures of a text file."""

import sys
from pathlib import Path

from textstats import ease, sentences, words


def main() -> None:
    """Print the figures of the file that is named."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    print(f"{len(words(text))} words, {sentences(text)} sentences, reading ease {ease(text)}")


if __name__ == "__main__":
    main()
