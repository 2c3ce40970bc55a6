#!/bin/sh
# Makes a small project with four issues, as a git repository, in the directory that is named.
set -e
mkdir -p "$1" && cd "$1"
cat > prices.py <<'END'
"""Prices, in cents."""


def total(prices):
    result = prices[0]
    for price in prices[1:]:
        result += price
    return result


def with_tax(price, percent):
    return price + price * percent // 100


def discounted(price, percent):
    return price - price * percent // 100
END
cat > customers.py <<'END'
"""Customers, by name."""


def same(name, other):
    return name.lower() == other.lower()
END
cat > test_shop.py <<'END'
import unittest

from customers import same
from prices import discounted, total, with_tax


class Shop(unittest.TestCase):
    def test_prices(self):
        self.assertEqual(total([100, 250]), 350)
        self.assertEqual(with_tax(100, 20), 120)
        self.assertEqual(discounted(100, 20), 80)

    def test_customers(self):
        self.assertTrue(same("Ann", "ann"))
END
cat > issues.json <<'END'
[
  {"number": 7, "title": "An empty cart has no total", "text": "total([]) raises IndexError; it should be 0."},
  {"number": 8, "title": "Tax is rounded down", "text": "with_tax(99, 5) is 103; round half a cent up: 104."},
  {"number": 9, "title": "A blank makes another customer", "text": "same('Ann ', 'ann') should be true."},
  {"number": 12, "title": "Discounts above 100 percent", "text": "Refuse them with ValueError: we would pay for it."}
]
END
echo "__pycache__/" > .gitignore
git init -q -b main
git add -A
git -c user.name=Shop -c user.email=shop@example.org commit -q -m "The shop"
