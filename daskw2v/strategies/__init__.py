"""How workers meet: schedules of work, and rules by which their models become one."""
