import pytest

from daskw2v.reports import text


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("king", "king"),
        ("שלום", "שלום"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("می‌خواهم", "می‌خواهم"),  # with a non-joiner, which Persian needs
        ("\x1b[31m\x00", "\\x1b[31m\\x00"),
        ("a\u202eb\u2028c\n", "a\\u202eb\\u2028c\\n"),
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 59 + "…"),
        ("\0" * 60, ("\\x00" * 15)[:59] + "…"),
    ],
)
def test_shown__is_one_harmless_line(word, expected):
    assert text.shown(word) == expected
    assert len(text.shown(word)) <= 60


@pytest.mark.parametrize(
    ("write", "value", "expected"),
    [
        (text.number, 1234567, "1,234,567"),
        (text.number, 1234.5, "1,234"),
        (text.number, 0.0001, "0.0001"),
        (text.number, 2.41261, "2.413"),
        (text.signed, 3, "+3"),
        (text.signed, -0.25, "−0.25"),
        (text.signed, 0, "0"),
        (text.signed, None, ""),
        (text.fixed, -0.25, "−0.250"),
        (text.fixed, None, "–"),
        (text.percent, 0.876, "88\N{NO-BREAK SPACE}%"),
        (text.percent, None, "–"),
        (text.plain, True, "yes"),
        (text.plain, None, "–"),
        (text.plain, 1000, "1,000"),
        (text.plain, "a\0", "a\\x00"),
        (text.size, 950, "950 B"),
        (text.size, 999_600, "1 MB"),
        (text.size, 1_234_000_000, "1.23 GB"),
        (text.size, 5e15, "5,000.0 TB"),
        (text.duration, 0.854, "0.85 s"),
        (text.duration, 59.94, "59.9 s"),
        (text.duration, 59.96, "1 min 00 s"),
        (text.duration, 725, "12 min 05 s"),
        (text.duration, 12_000, "3 h 20 min"),
    ],
)
def test_numbers__are_written_for_people(write, value, expected):
    assert write(value) == expected
