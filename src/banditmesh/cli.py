"""The command line: thin verbs over the library's calls.

Exit status: 0 done, 1 failed, 2 wrong use, 130 interrupted. An error is one line on standard error, whatever it is;
`--debug` shows where it comes from. Libraries are imported inside the verbs, so that `--help` answers at once, and a
verb's own module with the verb, so that a node does not keep the others in memory.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import click

from .errors import BanditmeshError, BanditmeshWarning, InputError
from .version import __version__

#: The verbs, by what their user wants to do; the documentation's front page has the same groups.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Try it": ("story", "serve", "compare"),
    "With your own data": ("frontier", "new", "run", "plot"),
    "Invent a protocol": ("suite",),
    "Deploy": ("keys", "node", "mesh"),
    "What is proven": ("bounds", "paper"),
}
#: The modules of verbs, where they are not the verbs' own names.
_MODULES: Final = dict.fromkeys(("new", "run", "plot"), "study")

_Command = TypeVar("_Command", bound=click.Command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    _open_streams()
    asked: dict[str, bool] = {}
    try:
        with _told_warnings():
            status = cli.main(arguments, prog_name="banditmesh", standalone_mode=False, obj=asked)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # whatever is left becomes one line: this is the edge
        line, status = _explain(error, sys.argv[1:] if arguments is None else arguments)
        trace = asked.get("debug") or os.environ.get("BANDITMESH_DEBUG")
        _tell("".join(traceback.format_exception(error)) + line if trace else line)
    _drop_unwritten()
    sys.exit(status if isinstance(status, int) else 0)


def _explain(error: BaseException, arguments: list[str]) -> tuple[str, int]:
    """One line about an error, and the exit status."""
    if isinstance(error, click.UsageError):
        # Of a value that is missing click does not say where; the first argument does.
        verb = "".join(f" {one}" for one in arguments[:1] if one in cli.list_commands(None))
        command = error.ctx.command_path if error.ctx else f"banditmesh{verb}"
        return _one_line(f"{command}: {error.format_message()} (see '{command} --help')"), 2
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "banditmesh: interrupted", 130
    if isinstance(error, BanditmeshError):
        return _one_line(f"banditmesh: {error}"), 2 if isinstance(error, InputError) else 1
    if isinstance(error, BrokenPipeError):
        return "banditmesh: the output is no longer read; the rest of it was not written", 1
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return _one_line(f"banditmesh: {error.strerror or error}{where}"), 1
    if isinstance(error, MemoryError):
        return "banditmesh: not enough memory for this run; take a smaller one", 1
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _one_line(f"banditmesh: unexpected {what[:300]}; --debug shows where, please report it"), 1


def _one_line(message: str) -> str:
    """A message on one line, whatever names and values it holds."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(message.split()))


def _open_streams() -> None:
    """Make sure that output can be written.

    What goes to a stream that the caller has closed goes nowhere; left closed, its number would be given to the next
    file that is opened, and that file would get what libraries print. A character that the terminal cannot show is
    written as its code, instead of failing after all the work.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 (for as long as the process lives)
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _told_warnings() -> Iterator[None]:
    """What the package advises is a line on standard error, without the line of code that led to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", BanditmeshWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, BanditmeshWarning):
                _tell(_one_line(f"banditmesh: {message}"))
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _tell(text: str) -> None:
    # Standard error may be as full as the rest of the disk; the status still tells.
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _drop_unwritten() -> None:
    """Forget what could not be written, or Python would complain of it while it ends, with a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _ask_for_trace(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        context.obj["debug"] = True


def _with_debug(command: _Command) -> _Command:
    """A command with `--debug`, as have those within it."""
    command.params.append(
        click.Option(
            ["--debug"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_ask_for_trace,
            help="Show the traceback of an error, as does BANDITMESH_DEBUG=1.",
        )
    )
    # Docstrings are raw, and click wants the very character: it keeps the lines of a paragraph as they are.
    command.help = (command.help or "").replace("\\b", "\b")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_debug(inner)
    return command


class _Grouped(click.Group):
    """Verbs in the groups that the documentation's front page leads to, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        return sorted(name for names in GROUPS.values() for name in names)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        names = self.list_commands(ctx)
        # For a name that there is not, click looks for similar ones among all commands.
        for name in (cmd_name,) if cmd_name in names else names:
            if name not in self.commands:
                module = importlib.import_module(f".verbs.{_MODULES.get(name, name)}", __package__)
                self.add_command(_with_debug(getattr(module, f"{name}_verb")))
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for title, names in GROUPS.items():
            with formatter.section(title):
                verbs = (self.get_command(ctx, name) for name in names)
                texts = [verb.get_short_help_str(formatter.width) for verb in verbs if verb is not None]
                formatter.write_dl([(name.ljust(width), text) for name, text in zip(names, texts, strict=True)])


@_with_debug
@click.group(cls=_Grouped, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, message="banditmesh %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    r"""Bandit agents that learn together over any network.

    \b
    Example:
      banditmesh compare --network er --horizon 100 --replicates 3
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
