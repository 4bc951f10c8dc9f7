"""Formatting of words and numbers for pages and terminals."""

from daskw2v.safe_text import escaped

_MAX_LENGTH = 60  # characters of a text that are shown
_UNKNOWN = "–"


def shown(text: str, max_length: int = _MAX_LENGTH) -> str:
    """Return a text as one line of at most `max_length` characters, safe to print; a longer text ends with "…"."""
    visible = escaped(text[: max_length + 1])
    return visible if len(visible) <= max_length else visible[: max_length - 1] + "…"


def plain(value: object) -> str:
    """Return any value as text: numbers as by `number`, booleans as yes and no, None as a dash, others by `shown`."""
    if value is None:
        return _UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else shown(str(value), max_length=500)


def number(value: float) -> str:
    """Return a number as text: integers and numbers from 1000 on with thousands separators, others with four digits."""
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"


def signed(change: float | None) -> str:
    """Return a difference of two numbers as text with its sign; an empty text for None."""
    if change is None:
        return ""
    return ("+" if change > 0 else "−" if change < 0 else "") + number(abs(change))


def fixed(value: float | None, digits: int = 3) -> str:
    """Return a number as text with `digits` decimals; a dash for None."""
    return _UNKNOWN if value is None else f"{value:,.{digits}f}".replace("-", "−")


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in 0..1 as text in percent with `digits` decimals; a dash for None."""
    return _UNKNOWN if share is None else f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def size(n_bytes: float) -> str:
    """Return a number of bytes as text with three digits: 950 B, 1.23 kB, 45.6 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:  # more would round to 1000
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} TB"


def duration(seconds: float) -> str:
    """Return a duration as text in its two largest units: 0.85 s, 42.1 s, 12 min 05 s, 3 h 20 min."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02} min"
