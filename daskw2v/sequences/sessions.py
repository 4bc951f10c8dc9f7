"""What the user may choose about events: their columns, and how they are cut into sessions."""

from dataclasses import dataclass

from daskw2v.config.settings import FLAG, TEXT, Constraint, Settings, integer, number, one_of, setting
from daskw2v.errors import ParameterError

_NUMBER = number(0, open_low=True)
_DURATION = Constraint(lambda v: TEXT.check(v) or _NUMBER.check(v), "a number > 0, or a duration such as '30 min'", str)


@dataclass(frozen=True, kw_only=True)
class Sessions(Settings):
    """How to cut events into sessions.

    Raises
    ------
    ParameterError
        If a value is outside its range, the message names field, value and range; or if `half_life` is given with
        `per`.

    Examples
    --------
    >>> sessions = daskw2v.Sessions(user="customer", item="product", gap="30 min")
    >>> sessions.roles
    {'user': 'customer', 'item': 'product', 'time': 'time'}
    """

    user: str = setting("user", "column of who was there", TEXT, heading="Events")
    item: str = setting("item", "column of items, integers or strings", TEXT)
    time: str = setting("time", "column of times, numbers, timestamps, dates or ISO 8601 text", TEXT)
    gap: str | None = setting(
        None,
        "time without an event that ends a session, in the unit of numeric times or such as '30 min'; nothing ends one "
        "when not given",
        _DURATION,
        optional=True,
    )
    per: str | None = setting(
        None,
        "read each file, or each folder of files, once, in order of time: sessions that are open at its end go on in "
        "the next one, or end there without a gap; all files are read together when not given",
        one_of("file", "folder"),
        optional=True,
    )
    least: int = setting(2, "fewest events of a session; shorter ones are dropped", integer(1))
    drop_repeats: bool = setting(False, "drop items that repeat the one before", FLAG)
    event_weight: str | None = setting(
        None, "column of how often an event counts; a part of one is a probability", TEXT, optional=True
    )
    half_life: str | None = setting(
        None,
        "age, before the latest event, at which an event counts half, in the unit of numeric times or such as '30 "
        "days'; refused with per, whose parts are not read again",
        _DURATION,
        optional=True,
    )
    goal: str | None = setting(
        None,
        "column that is true for what a session led to, such as a purchase: the last one is a context of all items of "
        "its session, however far",
        TEXT,
        optional=True,
    )
    market: str | None = setting(
        None,
        "column of the market of the item, such as its city, for market_negative; an item of several markets is in "
        "that in which it is most often in sessions",
        TEXT,
        optional=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.half_life is not None and self.per is not None:
            raise ParameterError(
                f"half_life={self.half_life!r} would change all sessions with each new {self.per}, but per reads each "
                "once.",
                "Leave one of the two out. A retraining forgets by Policy(old_share=...).",
            )

    @property
    def carries(self) -> bool:
        """Whether sessions go on from one part to the next."""
        return self.per is not None and self.gap is not None

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are read, by what they hold."""
        columns = {
            "user": self.user, "item": self.item, "time": self.time, "weight": self.event_weight, "goal": self.goal,
            "market": self.market,
        }  # fmt: skip
        return {role: column for role, column in columns.items() if column is not None}
