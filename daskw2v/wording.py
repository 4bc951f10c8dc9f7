"""How messages count things."""


def counted(number: int, thing: str) -> str:
    """Return a number with the name of what is counted, which regularly takes an s: "1 file", "2,000 files"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
