from collections.abc import Mapping

from click.testing import CliRunner, Result

from daskw2v.cli import main


def invoke(*words: object, env: Mapping[str, str] | None = None, catch_exceptions: bool = True) -> Result:
    """Run a command of `daskw2v` in this process."""
    line = [str(word) for word in words]
    return CliRunner().invoke(main, line, env=env, catch_exceptions=catch_exceptions, prog_name="daskw2v")
