"""python -m unittest"""

import unittest

from textstats import ease, sentences, words


class TextStats(unittest.TestCase):
    def test_words_with_hyphens_and_apostrophes_are_one(self) -> None:
        assert words("It's a well-known fact.") == ["It's", "a", "well-known", "fact"]

    def test_an_ellipsis_ends_one_sentence(self) -> None:
        assert sentences("Well... Who knows?") == 2

    def test_a_text_without_a_full_stop_is_a_sentence(self) -> None:
        assert sentences("no end") == 1

    def test_short_words_are_easier_than_long_ones(self) -> None:
        assert ease("The cat sat on the mat.") > ease("Incomprehensible formulations proliferate.")

    def test_nothing_has_no_ease(self) -> None:
        assert ease("") == 0.0


if __name__ == "__main__":
    unittest.main()
