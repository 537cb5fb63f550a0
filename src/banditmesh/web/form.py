"""The form for a problem and a run, made from the parts that a spec may name.

Fields are texts, which are checked as a spec is. A field of a part that is not chosen is hidden and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nicegui import events, ui

from ..errors import InputError
from ..rules import RULE_SETS
from ..settings.parts import parts
from .choices import DEFAULTS, FAULTS, FILES, default_of, keys_of, known_keys
from .shell import Shell
from .uploads import MAX_BYTES

#: What stands below a field; one of a part alone goes by table, part and name.
HINTS: Final[dict[str, str]] = {
    "network.name": "er, ba, sbm, dynamic-er alone: the paper's",
    "network.n": "how many agents",
    "network.p": "how likely a link is",
    "network.m": "links of each new agent",
    "network.sizes": "agents of each community: 34, 33, 33",
    "network.p_in": "how likely a link within is",
    "network.p_out": "how likely one between is",
    "network.k": "neighbours before rewiring",
    "network.watts_strogatz.p": "how likely a link is rewired",
    "network.rows": "agents from top to bottom",
    "network.columns": "agents from left to right",
    "network.weights": "refuse those other than 1, or ignore all",
    "network.self_loops": "refuse them, or drop",
    "network.header": "whether the first line is one: true",
    "network.seed": "draws the links",
    "network.radius": "links up to this distance",
    "network.degree": "links of each agent",
    "dynamics.name": "how links come and go",
    "dynamics.p": "chance that a link appears, a round",
    "dynamics.q": "chance that one goes, a round",
    "dynamics.failure": "chance that a link fails, a round",
    "dynamics.leave": "chance that an agent leaves, a round",
    "dynamics.join": "chance that it joins again",
    "arms.law": "what an arm pays; data: from files",
    "arms.n_arms": "how many there are",
    "arms.per_agent": "size of each arm set",
    "arms.sigma": "standard deviation of a reward",
    "arms.seed": "draws means and arm sets",
    "arms.means": "if not drawn: 0.2, 0.8",
    "arms.change": "if arms change: switching(0.002)",
    "arms.periods": "if they change over a log's time: 12",
    "arms.columns": "if called otherwise: user,movie,rating",
    "arms.rewards": "auto, bernoulli, empirical, replay",
    "arms.unmatched": "names that do not match: refuse, drop",
    "policy.name": "how agents choose",
    "policy.alpha": "more of it explores more",
    "policy.first_pulls": "of each arm; or of unknown ones only: unknown",
    "policy.c": "weight of log log t; 0 does best",
    "policy.n_observations": "in the end; those so far if empty",
    "policy.width": "of the interval of rewards",
    "policy.zeta": "more of it explores more",
    "policy.epsilon": "how likely an agent explores",
    "policy.decay": "explores less and less, if given",
    "memory.name": "what agents forget",
    "memory.gamma": "a round's age weighs this much: 0.995",
    "memory.rounds": "how many rounds count",
    "memory.blocks": "parts that it is forgotten in",
    "protocols": "protocol(ttl)+emission: fwa(4), flooding(8)+growth(0.25)",
    "policies": "if several, instead of the one above: ucb(0.5), ucb(0.5)+discount(0.995)",
    "horizon": "how many rounds",
    "replicates": "how many repetitions",
    "seed": "decides all that is random",
    "rules": "the theory's, or the figures'",
    "faults.loss": "chance that a transmission is lost",
    "faults.delay": "rounds that each comes later",
    "faults.jitter": "mean of a random delay, rounds",
    "faults.link_cap": "most messages a link and round",
    "faults.liars": "who lies, and how: {7 = 'noise'}",
    "faults.reward_delay": "rounds until a reward is seen: 10, geometric(10)",
    "faults.outages.down": "chance that an agent goes down",
    "faults.outages.up": "chance that it comes back",
    "faults.outages.memory": "whether it keeps what it knew: false",
    "faults.corruption.kind": "gaussian, heavy or zero",
    "faults.corruption.probability": "chance that a reward is changed",
    "faults.corruption.scale": "how large the noise is",
}
_LABELS: Final = {
    "network.name": "Network",
    "dynamics.name": "Dynamics",
    "arms.law": "Law",
    "arms.n_arms": "Arms",
    "arms.per_agent": "Arms per agent",
    "policy.name": "Policy",
    "memory.name": "Memory",
    "protocols": "Protocols",
    "horizon": "Horizon",
    "replicates": "Replicates",
    "seed": "Seed",
    "rules": "Rules",
    "arms.seed": "Arms' seed",
}
#: What files hold, in words.
_HELD: Final = {
    "network.path": "the network",
    "arms.catalogue": "who has which arms",
    "arms.laws": "what arms pay",
    "arms.log": "logged rewards",
}


class Form:
    """Fields for a problem and a run.

    Parameters
    ----------
    shell : Shell
        The frame around it.
    choices : mapping from str to str
        What stands in the fields at first.
    changed : callable
        Called whenever something was chosen.
    hints : mapping from str to str
        What stands below some of the fields instead of `HINTS`.
    """

    def __init__(
        self,
        shell: Shell,
        choices: Mapping[str, str],
        changed: Callable[[], None],
        hints: Mapping[str, str] | None = None,
    ) -> None:
        self._shell = shell
        # What has no field yet, because of the part that is chosen, has its default when it gets one.
        self._values = {**DEFAULTS, **choices}
        self._changed = changed
        #: The fields for texts, by their keys.
        self._fields: dict[str, Any] = {}
        self._hints = {**HINTS, **(hints or {})}
        with ui.element("div").classes("bm-card"):
            self._group("Network", "network", "name")
            with ui.expansion("Moving links", value=self._values.get("dynamics.name") != "none").props("dense"):
                self._group("", "dynamics", "name")
            self._group("Arms", "arms", "law")
            self._group("Policy", "policy", "name")
            with ui.expansion("Forgetting", value=self._values.get("memory.name") != "everything").props("dense"):
                self._group("", "memory", "name")
            self._run()
            faulty = any(key in self._values for key in FAULTS)
            with ui.expansion("Faults", value=faulty).props("dense"), ui.element("div").classes("bm-fields"):
                for key in FAULTS:
                    self._field(key, key.removeprefix("faults.").replace("_", " ").replace(".", ": "))

    @property
    def choices(self) -> dict[str, str]:
        """What is chosen now, in the order of the fields."""
        shown = known_keys(self._values)
        order = [*DEFAULTS, *sorted(self._values)]
        return {key: self._values[key] for key in dict.fromkeys(order) if key in shown and key in self._values}

    def set(self, key: str, text: str) -> None:
        """Choose something from outside; a field that there is shows it."""
        if self._values.get(key, "") == text:
            return
        self._values[key] = text
        if key in self._fields and self._fields[key].value != text:
            self._fields[key].set_value(text)
        self._show_defaults(key.partition(".")[0])
        self._changed()

    def _show_defaults(self, table: str) -> None:
        """Show what counts where a field is empty: it may depend on the other fields of its table."""
        for key, field in self._fields.items():
            if key.partition(".")[0] == table and (now := default_of(key, self._values)) != field.bm_default:
                field.bm_default = now
                field.props(f'placeholder="{now}"')

    def _group(self, legend: str, table: str, name: str) -> None:
        key = f"{table}.{name}"

        def fill() -> None:
            fields.clear()
            with fields:
                for other in keys_of(table, self._values)[1:]:
                    if other in FILES:
                        self._upload(other)
                    else:
                        self._field(other, _LABELS.get(other, other.partition(".")[2].replace("_", " ")))

        def choose(event: Any) -> None:
            self._values[key] = event.value
            for other in [one for one in self._fields if one.partition(".")[0] == table]:
                del self._fields[other]
            fill()
            self._changed()

        with ui.element("fieldset").classes("bm-group"):
            if legend:
                _legend(legend)
            with ui.element("div").classes("bm-fields"):
                self._choice(key, _LABELS.get(key, name), list(parts(table)), choose).classes("bm-wide")
                # What depends on the choice is filled anew; the choice itself stays, and keeps the focus.
                fields = ui.element("div").classes("bm-same")
        fill()

    def _run(self) -> None:
        with ui.element("fieldset").classes("bm-group"):
            _legend("Protocols and run")
            with ui.element("div").classes("bm-fields"):
                self._field("protocols", "Protocols").classes("bm-wide")
                self._field("policies", "Policies side by side").classes("bm-wide")
                for key in ("horizon", "replicates", "seed"):
                    self._field(key, _LABELS[key])
                self._choice("rules", "Rules", list(RULE_SETS), lambda event: self.set("rules", event.value))

    def _choice(self, key: str, label: str, options: list[str], choose: Callable[[Any], None]) -> Any:
        """A choice among options; an unknown one from a link is shown, and refused when it is run."""
        chosen = self._values.get(key, options[0])
        known = options if chosen in options else [*options, chosen]
        select = ui.select(known, label=label, value=chosen, on_change=choose)
        return select.props(f'dense options-dense hint="{HINTS[key]}"').props(f'data-bm="{key}"')

    def _field(self, key: str, label: str) -> Any:
        field = ui.input(
            label, value=self._values.get(key, ""), on_change=lambda event: self.set(key, event.value or "")
        )
        field.bm_default = default_of(key, self._values)
        # The label makes way for the default, which is seen while the field is empty.
        field.props(f'stack-label placeholder="{field.bm_default}"' if field.bm_default else "")
        self._fields[key] = field
        return field.props(f'dense hint="{self._hint(key)}" spellcheck=false').props(f'data-bm="{key}"')

    def _hint(self, key: str) -> str:
        table, _, name = key.partition(".")
        part = self._values.get(f"{table}.{'law' if table == 'arms' else 'name'}", "")
        return self._hints.get(f"{table}.{part}.{name}", self._hints.get(key, ""))

    def _upload(self, key: str) -> None:
        about = _HELD[key]

        async def keep(event: events.UploadEventArguments) -> None:
            try:
                self.set(key, self._shell.uploads.keep(event.file.name, await event.file.read()))
            except InputError as error:
                ui.notify(str(error), type="negative", position="bottom")
            # Another file may take its place.
            upload.reset()
            name_file()

        def name_file() -> None:
            kept = self._values.get(key, "").partition("/")[2]
            label.set_text(f"File of {about}: {kept or 'none yet'}")

        with ui.element("div").classes("bm-wide"):
            label = ui.label().classes("bm-quiet")
            name_file()
            upload = ui.upload(
                label="Choose a file, or drop it here",
                max_file_size=MAX_BYTES,
                max_files=1,
                auto_upload=True,
                on_upload=keep,
                on_rejected=lambda: ui.notify(
                    f"a file may have at most {MAX_BYTES:,} bytes; pack it with gzip",
                    type="negative",
                    position="bottom",
                ),
            )
            upload.props(f'flat bordered accept="*" aria-label="File of {about}"').props(f'data-bm="{key}"')


def _legend(text: str) -> None:
    with ui.element("legend"):
        ui.label(text)
