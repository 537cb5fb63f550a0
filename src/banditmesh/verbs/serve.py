"""`serve`: the page, to see a network learn."""

from __future__ import annotations

import click


@click.command("serve", short_help="A local page: see the network learn.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; beyond this machine needs a token."
)
@click.option("--port", default=8470, show_default=True, help="0 takes any port that is free.")
@click.option("--token-file", type=click.Path(dir_okay=False), help="Holds the token that users must know.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name of this server; may be repeated."
)
@click.option(
    "--mesh",
    metavar="ADDRESS",
    multiple=True,
    help="A sidecar that the page may ask; may be repeated. None if not given.",
)
@click.option("--any-mesh", is_flag=True, help="Have the page ask whatever address a visitor names.")
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open the page in the browser.")
def serve_verb(
    host: str,
    port: int,
    token_file: str | None,
    hosts: tuple[str, ...],
    mesh: tuple[str, ...],
    any_mesh: bool,
    opens: bool,
) -> None:
    r"""Serve a page on this machine: a lab, messages hop by hop, comparisons, studies and live meshes. Ctrl-C ends it.

    It works offline and asks no other server for anything. Simulations run in processes of their own.

    \b
    Examples:
      banditmesh serve
      banditmesh serve --port 9000 --no-open
      banditmesh serve --host 0.0.0.0 --token-file token --allow-host lab.example
      banditmesh serve --mesh http://127.0.0.1:7780 --mesh http://127.0.0.1:7781
    """
    from ..live.http.tokens import read_token
    from ..web.server import serve

    def ready(url: str) -> None:
        click.echo(f"The page is at {url} (Ctrl-C ends it)")
        if opens:
            click.launch(url)

    token = None if token_file is None else read_token(token_file)
    serve(host, port, token=token, hosts=hosts, mesh=mesh, any_mesh=any_mesh, ready=ready)
