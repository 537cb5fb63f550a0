"""`compare --preset`: comparisons that are asked for by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..text_tables import as_text, spread
from .options import is_given

if TYPE_CHECKING:
    from ..comparisons.presets.beyond import Beyond
    from ..comparisons.presets.losses import Losses

PRESETS = ("beyond", "loss")
_TAKEN = ("preset", "replicates", "seed", "as_json")


def run_preset(context: click.Context, preset: str, replicates: int, seed: int, as_json: bool) -> None:
    """Run the preset and print it."""
    for parameter in context.command.params:
        if parameter.expose_value and parameter.name not in _TAKEN and is_given(context, parameter.name or ""):
            raise InputError(
                f"--preset decides networks, protocols and horizons, got {parameter.opts[0]} too; "
                "--replicates and --seed may be given"
            )
    from ..comparisons.presets.beyond import beyond
    from ..comparisons.presets.losses import losses
    from ..sim.progress import terminal_bar

    settings: dict[str, Any] = {"replicates": replicates} if is_given(context, "replicates") else {}
    found: Beyond | Losses
    with terminal_bar(preset, "simulations") as progress:
        if preset == "beyond":
            found = beyond(seed=seed, progress=progress, **settings)
            text = beyond_text(found)
        else:
            found = losses(seed=seed, progress=progress, **settings)
            text = losses_text(found)
    click.echo(json.dumps(found.to_json(), indent=2) if as_json else text)


def losses_text(found: Losses) -> str:
    """The tables that are printed, one for each network."""
    lines = [
        f"sound rules, {found.horizon:,} rounds, {found.instances} arm instances from seed {found.seed}, "
        f"{found.replicates} seeds each; ±: {found.confidence:.0%} confidence over seeds"
    ]
    for network, cells in found.to_json().items():
        if not isinstance(cells, dict):
            continue
        rows = [["protocol", "loss", "group regret", "transmissions", "rise of regret"]]
        for protocol, by_loss in cells.items():
            for loss, values in by_loss.items():
                rise = "-" if loss == "0" else _percent(values["rise"])
                rows.append([protocol, loss, _cell(values["regret"]), _cell(values["messages"]), rise])
        lines += ["", network, as_text(rows)]
    return "\n".join(lines)


def _percent(values: dict[str, float | None]) -> str:
    mean, high = values["mean"], values["high"]
    assert mean is not None
    return f"{100 * mean:+.1f} %" if high is None else f"{100 * mean:+.1f} ± {100 * (high - mean):.1f} %"


def beyond_text(found: Beyond) -> str:
    """The tables that are printed, one for each network and horizon."""
    from ..comparisons.presets.beyond import QUESTIONS

    lines = [
        f"sound rules, {found.instances} arm instances from seed {found.seed}, {found.replicates} seeds each; "
        f"±: {found.confidence:.0%} confidence over seeds"
    ]
    keys = list(dict.fromkeys((one.network, one.horizon) for one in found.answers))
    for network, horizon in keys:
        question = QUESTIONS.get(horizon, "")
        ratios = ["regret/fwa", "regret/flooding", "transmissions/fwa"]
        rows = [["protocol", "group regret", "transmissions", *ratios, "meets it"]]
        for one in found.answers:
            if (one.network, one.horizon) == (network, horizon):
                values = one.to_json(found.confidence)
                cells = [_cell(values["regret"]), _cell(values["messages"])]
                ratios = [f"{one.regret_vs_fwa:.3f}", f"{one.regret_vs_flooding:.3f}", f"{one.messages_vs_fwa:.3f}"]
                rows.append([one.protocol, *cells, *ratios, one.meets or "-"])
        lines += ["", f"{network}, {horizon:,} rounds: {question}", as_text(rows)]
    lines += ["", *(_verdict(found, network, horizon) for network, horizon in keys)]
    return "\n".join(lines)


def _cell(values: dict[str, Any]) -> str:
    return spread(values["mean"], None if values["high"] is None else values["high"] - values["mean"])


def _verdict(found: Beyond, network: str, horizon: int) -> str:
    names = found.met(network, horizon)
    return f"{network}, {horizon:,} rounds: " + (f"met by {', '.join(names)}" if names else "met by none of these")
