"""Read one file of orders, whatever its encoding, delimiter, dates and prices; print the rows as JSON.

python3 read_orders.py FILE -> {"rows": [...], "rejected": [{file, line, reason, text}]}
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")
NAMES = {
    **dict.fromkeys(("nr", "id"), "order"),
    **dict.fromkeys(("datum",), "date"),
    **dict.fromkeys(("kunde", "name"), "customer"),
    **dict.fromkeys(("artikel", "product"), "item"),
    **dict.fromkeys(("menge", "quantity"), "amount"),
    **dict.fromkeys(("preis", "unit price"), "price"),
}


def main(name: str) -> None:
    text = decoded(Path(name).read_bytes())
    lines = text.splitlines()
    delimiter = max(",;\t", key=lines[0].count)
    header = [NAMES.get(cell.strip().lower(), cell.strip().lower()) for cell in lines[0].split(delimiter)]
    rows, rejected = [], []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter=delimiter))
        try:
            if len(cells) != len(header):
                raise ValueError(f"{len(cells)} cells, expected {len(header)}")
            rows.append(order(dict(zip(header, (cell.strip() for cell in cells), strict=True))))
        except ValueError as error:
            rejected.append({"file": name, "line": number, "reason": str(error), "text": line})
    json.dump({"rows": rows, "rejected": rejected}, sys.stdout)


def decoded(data: bytes) -> str:
    """UTF-8 if it is that, else the western European one-byte encoding, which any bytes are."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def order(cells: dict[str, str]) -> dict[str, object]:
    """A clean row. Raises ValueError with what is wrong with it."""
    if not cells["order"]:
        raise ValueError("no order number")
    return {
        "order": cells["order"].upper(),
        "date": day(cells["date"]).isoformat(),
        "customer": " ".join(cells["customer"].split()),
        "item": cells["item"].lower(),
        "amount": amount(cells["amount"]),
        "price": price(cells["price"]),
    }


def day(text: str) -> date:
    for form in DATES:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise ValueError(f"no date: {text or 'empty'}")


def amount(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"no amount: {text or 'empty'}")
    return int(text)


def price(text: str) -> str:
    """1.234,50 and 1,234.50 and EUR 12,5 are prices: the last of point and comma is the decimal one."""
    digits = text.replace("EUR", "").replace("€", "").strip()
    if digits.rfind(",") > digits.rfind("."):
        digits = digits.replace(".", "").replace(",", ".")
    try:
        value = Decimal(digits.replace(",", ""))
    except InvalidOperation:
        raise ValueError(f"no price: {text or 'empty'}") from None
    if not value.is_finite() or value < 0:
        raise ValueError(f"no price: {text}")
    return f"{value:.2f}"


if __name__ == "__main__":
    main(sys.argv[1])
