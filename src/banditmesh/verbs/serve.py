"""`serve`: a page that shows a network learn."""

from __future__ import annotations

from typing import Any

import click

from .options import token_option


@click.command("serve", short_help="Serve a local page that shows a network learning.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; all but loopback need a token."
)
@click.option("--port", default=8470, show_default=True, help="Port to listen on; 0 takes any free one.")
@token_option("File with the token that users need.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this server; may be repeated."
)
@click.option(
    "--mesh",
    metavar="ADDRESS",
    multiple=True,
    help="A sidecar that the page may ask; may be repeated.",
)
@click.option("--any-mesh", is_flag=True, help="Let visitors name any address for the page to ask.")
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open the page in the browser.")
def serve_verb(host: str, port: int, opens: bool, **options: Any) -> None:
    r"""Serve a page with a lab, messages hop by hop, comparisons, studies and live meshes; Ctrl-C ends it.

    It works offline and contacts no other server. Simulations run in separate processes.

    \b
    Examples:
      banditmesh serve
      banditmesh serve --port 9000 --no-open
      banditmesh serve --host 0.0.0.0 --token-file token --allow-host lab.example
      banditmesh serve --mesh http://127.0.0.1:7780 --mesh http://127.0.0.1:7781
    """
    from ..web.server import serve

    def ready(url: str) -> None:
        click.echo(f"The page is at {url} (Ctrl-C ends it)")
        if opens:
            click.launch(url)

    serve(host, port, ready=ready, **options)
