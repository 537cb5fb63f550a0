"""`story`: five steps that show how agents learn together, as one file."""

from __future__ import annotations

import click


@click.command("story", short_help="A story in five steps, as one HTML file for a talk.")
@click.argument("path", default="story.html", type=click.Path(dir_okay=False))
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open the file in the browser.")
def story_verb(path: str, opens: bool) -> None:
    r"""Write the story of how agents learn together, from four agents on a path to an arm that changes.

    PATH is the HTML file, story.html if not given. It plays in any browser, offline; the arrow keys go from step to
    step, and f fills the screen. `banditmesh serve` shows the same.

    \b
    Examples:
      banditmesh story
      banditmesh story talk.html --no-open
    """
    from ..animations import story

    story(path)
    click.echo(click.format_filename(path))
    if opens:
        click.launch(path)
