"""Check and normalise the text of a cron expression before croniter reads it.

croniter 7 accepts more than the five-field language promised here, and reads some spellings in a way no user means; both are
settled on the text: refusals say what to write instead, and items that croniter misreads are rewritten into items it reads
right. No calendar arithmetic may live here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    "month": {name: number for number, name in enumerate(_MONTHS, start=1)},
    "day-of-week": {name: number for number, name in enumerate(_WEEKDAYS)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One of the five fields: its name, bounds, and whether a range may wrap around its end (R5)."""

    name: str
    low: int
    high: int
    wraps: bool


FIELDS = (
    Field(name="minute", low=0, high=59, wraps=False),
    Field(name="hour", low=0, high=23, wraps=True),
    Field(name="day-of-month", low=1, high=31, wraps=False),
    Field(name="month", low=1, high=12, wraps=True),
    Field(name="day-of-week", low=0, high=7, wraps=True),
)


class CronTextError(ValueError):
    """The text is not of the promised language; the message says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronText:
    """The normalised expression and what the text alone decides.

    Attributes:
        normalised: five fields that croniter reads as meant.
        nearest_weekday: the day of a ``15W`` item, or None.
        restricted_days: the day-of-month field is not a bare ``*``.
        restricted_weekdays: the day-of-week field is not a bare ``*``.
    """

    normalised: str
    nearest_weekday: int | None
    restricted_days: bool
    restricted_weekdays: bool


def read(expression: str) -> CronText:
    """Normalise a five-field expression.

    Raises:
        CronTextError: not five fields, or syntax outside the promised language.

    Source: contract R5.
    """
    if re.search(r"[^\t -~]", expression):
        raise CronTextError("only ASCII is read: separate the fields with ordinary blanks and write digits 0-9")
    _refuse_foreign_dialects(expression)
    fields = expression.lower().split()
    if len(fields) != 5:
        raise CronTextError(
            f"it has {len(fields)} fields, not five: write minute hour day-of-month month day-of-week (no seconds, no years)"
        )
    texts = [
        ",".join(_item(field, item) for item in text.split(",")) for field, text in zip(FIELDS, fields, strict=True)
    ]
    _refuse_mixtures(fields[2], fields[4])
    nearest = re.fullmatch(r"(\d+)w|w(\d+)", fields[2])
    return CronText(
        normalised=" ".join(texts),
        nearest_weekday=int(nearest[1] or nearest[2]) if nearest else None,
        restricted_days=fields[2] != "*",
        restricted_weekdays=fields[4] != "*",
    )


def _refuse_foreign_dialects(expression: str) -> None:
    text = expression.strip().lower()
    macros = {
        "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
    }  # fmt: skip
    if text.startswith("@"):
        would_do = repr(macros[text]) if text in macros else "five fields, such as '0 0 * * *' for each midnight"
        raise CronTextError(f"macros are not read: write {would_do}")
    if text.startswith(("tz=", "cron_tz=")):
        raise CronTextError("a TZ= prefix is not read: put the zone's name in spec.timeZone")
    if "?" in text:
        raise CronTextError("'?' is not read: write '*'")


def _refuse_mixtures(days: str, weekdays: str) -> None:
    """Refuse lists of which croniter would silently drop a part."""
    if "w" in days and "," in days:
        raise CronTextError(f"day-of-month: {days!r} lists a nearest working day: write one alone, such as 15W")
    special = [re.search(r"#|^l", item) is not None for item in weekdays.split(",")]
    if any(special) and not all(special):
        raise CronTextError(
            f"day-of-week: {weekdays!r} mixes weekdays with nth ones: write only one kind, such as 1,5 or 1#2,5#2"
        )


def _item(field: Field, item: str) -> str:
    if re.search(r"(?<![a-z])[hr](?![a-z])", item):
        raise CronTextError(
            f"{field.name}: {item!r} is hashed or random: write a number, or use spec.maxJitterSeconds to spread starts"
        )
    if re.fullmatch(r"\d+", item):
        return str(_value(field, item, item))
    if item == "*":
        return item
    if stepped := re.fullmatch(r"([^/]+)/(\d+)", item):
        return _stepped(field, item, stepped[1], stepped[2])
    if "-" in item:
        return _range(field, item, item, 1)
    if item in _NAMES.get(field.name, {}) or _is_special(field, item):
        return item
    raise CronTextError(
        f"{field.name}: {item!r} is not read: write a number {field.low}-{field.high}, a range a-b, a step a-b/n, or '*'"
    )


def _is_special(field: Field, item: str) -> bool:
    match field.name:
        case "day-of-month":
            return re.fullmatch(r"l|0*([1-9]|[12]\d|3[01])w|w0*([1-9]|[12]\d|3[01])", item) is not None
        case "day-of-week":
            return re.fullmatch(r"l[0-7]|([0-7]|sun|mon|tue|wed|thu|fri|sat)#[1-5]", item) is not None
        case _:
            return False


def _stepped(field: Field, item: str, base: str, step_text: str) -> str:
    step = int(step_text)
    if step == 0:
        raise CronTextError(f"{field.name}: {item!r} has step 0: write a step of 1 or more")
    if base == "*":
        return f"*/{min(step, 99)}"
    if "-" in base:
        return _range(field, item, base, step)
    start = _value(field, item, base)
    return _listed(field, range(start, field.high + 1, step))


def _range(field: Field, item: str, text: str, step: int) -> str:
    """Write a range out, since croniter reads ``N-N`` as the whole field and folds weekday 7 into 0 too early."""
    parts = text.split("-")
    if len(parts) != 2:
        raise CronTextError(f"{field.name}: {item!r} is no range: write a-b with two values")
    low, high = (_value(field, item, part) for part in parts)
    if low <= high:
        return _listed(field, range(low, high + 1, step))
    if not field.wraps:
        raise CronTextError(
            f"{field.name}: {item!r} runs backwards: write two ranges, {low}-{field.high},{field.low}-{high}"
        )
    if field.name == "day-of-week" and low == 7:
        return _listed(field, range(0, high + 1, step))
    size = 7 if field.name == "day-of-week" else field.high - field.low + 1
    return _listed(field, [(value - field.low) % size + field.low for value in range(low, high + size + 1, step)])


def _value(field: Field, item: str, text: str) -> int:
    value = _NAMES.get(field.name, {}).get(text)
    if value is None and re.fullmatch(r"\d+", text):
        value = int(text)
    if value is None or not field.low <= value <= field.high:
        where = "" if text == item else f" in {item!r}"
        named = " or a name such as " + next(iter(_NAMES[field.name])) if field.name in _NAMES else ""
        raise CronTextError(
            f"{field.name}: {text!r}{where} is not read: write a number {field.low}-{field.high}{named}"
        )
    return value


def _listed(field: Field, values: range | list[int]) -> str:
    return ",".join(str(value % 7 if field.name == "day-of-week" else value) for value in values)
