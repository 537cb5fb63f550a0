"""The command line: thin verbs over the library's own calls.

Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted. An error is one line on standard error. Libraries are
imported inside the verbs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys

import click

from .errors import BanditmeshError, InputError
from .verbs.bounds import bounds_verb
from .verbs.compare import compare_verb
from .verbs.frontier import frontier_verb
from .verbs.paper import paper_verb
from .verbs.study import new_verb, plot_verb, run_verb
from .version import __version__


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        status = cli.main(arguments, prog_name="banditmesh", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "banditmesh"
        message = " ".join(error.format_message().split())
        _fail(f"{command}: {message} (see '{command} --help')", 2)
    except InputError as error:
        _fail(f"banditmesh: {error}", 2)
    except BanditmeshError as error:
        _fail(f"banditmesh: {error}", 1)
    except OSError as error:
        _fail(f"banditmesh: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", 1)
    except MemoryError:
        _fail("banditmesh: not enough memory for this run; take a smaller one", 1)
    except (KeyboardInterrupt, click.Abort):
        _fail("banditmesh: interrupted", 130)


def _fail(message: str, status: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="banditmesh %(version)s")
def cli() -> None:
    r"""Bandit agents that learn together over any network.

    \b
    Example:
      banditmesh compare --network er --horizon 100 --replicates 3
    """


for _verb in (paper_verb, compare_verb, frontier_verb, bounds_verb, new_verb, run_verb, plot_verb):
    cli.add_command(_verb)
for _command in (cli, *cli.commands.values()):
    # Docstrings are raw, and click wants the very character: it keeps the lines of a paragraph as they are.
    _command.help = (_command.help or "").replace("\\b", "\b")
