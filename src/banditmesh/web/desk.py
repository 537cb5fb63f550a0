"""What a worker process does for one browser: simulate, follow, compare, read studies, and make files.

Each public method is a question that the page asks; answers and progress reports are plain values of
bounded size. What later questions need stays here, in the process: results, recorders, journeys.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..animations.recorder import chosen_arms
from ..animations.sites import MAX_GROUPS, short
from ..errors import InputError, SpecError, UnsupportedError, need
from ..files.contents import RAISE_LIMIT
from ..plots import as_bytes
from ..settings.parts import is_within
from . import uploads
from .choices import FILES, FOLLOWED, SEVERAL, listed, record_every, to_tables
from .kept import Kept, key_of, results_key

if TYPE_CHECKING:
    from ..comparisons.compare import Comparison
    from ..protocols import AnyProtocol
    from ..studies.case import Case
    from ..theory.bounds import Bounds

#: The most points of a curve that are sent.
MAX_POINTS: Final = 100
#: Seconds between progress reports, and the most characters of frames in one.
TELL_EVERY: Final = 0.5
MAX_CHARACTERS: Final = 40_000
#: The most rows of a table that are sent, and the most points of a study's chart.
MAX_ROWS: Final = 200
MAX_PLACES: Final = 400
#: Networks of more agents are not stepped through; of more than `SMALL`, or after `PART` pulls, the first rounds are
#: shown before the rest.
MAX_STEPPED: Final = 2000
SMALL: Final = 300
PART: Final = 150_000
#: Runs of up to this many pulls are stepped through before they are shown, which takes but a moment.
SHORT: Final = 6000
#: The most pulls of a run's beginning that are stepped through to know who hears of whom.
MAX_HEARING: Final = 6000
#: How long exact covers may take for the bounds of a configuration, in seconds.
COVER_SECONDS: Final = 5.0


class Desk:
    """The work of one worker.

    Parameters
    ----------
    tell : callable
        Called with what there is to say before an answer.
    """

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell
        self._comparison: Comparison | None = None
        self._pace = _Pace()
        self._journeys: tuple[Any, ...] = ()

    # The lab.

    def simulate(self, choices: Mapping[str, str], folder: Path) -> dict[str, Any]:
        """Simulate all protocols; reports curves as they grow, one protocol at a time."""
        from ..comparisons.compare import Comparison, pooling_advice
        from ..comparisons.first_pulls import first_regret
        from ..sim.engine import simulate

        case = _case(choices, folder)
        entries = _entries(case)
        told = {"problem": repr(case.problem), "labels": list(entries), "horizon": case.horizon}
        self._tell({**told, "hint": _hint(case)})
        results, first = {}, {}
        kept: dict[str, Any] = {"record_every": record_every(case.horizon), "progress": False}
        for number, (label, (protocol, settings)) in enumerate(entries.items()):
            pace = _Pace()
            tell = partial(self._tell_curve, label, number, len(entries))

            def look(*curve: NDArray[Any], pace: _Pace = pace, tell: Callable[..., None] = tell) -> None:
                if pace.is_due():
                    tell(*curve)

            results[label] = result = simulate(case.problem, protocol, watch=look, **kept, **settings)
            tell(result.rounds, result.regret, result.transmissions.astype(float))
            first[label] = first_regret(case.problem, protocol, result, settings)
        self._comparison = Comparison(results, pooling_advice(case.problem), first)
        found = {"rows": self._rows(self._comparison), "engine": sorted({one.engine for one in results.values()})}
        Kept(folder).keep_results(results_key(choices), (told, found, self._comparison))
        return found

    def simulated(self, choices: Mapping[str, str], folder: Path) -> dict[str, Any] | None:
        """The same where all of it is kept; None where it is not."""
        kept = Kept(folder).results(results_key(choices))
        if kept is None:
            return None
        told, found, self._comparison = kept
        self._tell({**told, "hint": ""})
        for number, (label, one) in enumerate(self._comparison.results.items()):
            curve = one.rounds, one.regret, one.transmissions.astype(float)
            self._tell_curve(label, number, len(told["labels"]), *curve)
        answer: dict[str, Any] = found
        return answer

    def _tell_curve(
        self, label: str, number: int, total: int, rounds: NDArray[Any], regret: NDArray[Any], messages: NDArray[Any]
    ) -> None:
        known = int((~np.isnan(regret)).sum())
        done = (number + known / regret.size) / total
        self._tell({"label": label, "done": done, "curve": thinned(rounds, regret, messages)})

    @staticmethod
    def _rows(comparison: Comparison) -> list[dict[str, Any]]:
        """One row per protocol: means, standard deviations (None for one replicate), and the fates of its messages.

        First pulls are shown as their share of the regret, None where that is not known.
        """
        from ..comparisons.shown import share

        rows = []
        for label, row in comparison.table(agents=True).iterrows():
            traffic = comparison.results[str(label)].traffic
            known = {
                name: float(np.mean(traffic[name])) for name in ("duplicate", "absorbed", "expired", "lost", "bytes")
            }
            numbers = {str(name): None if value != value else float(value) for name, value in row.items()}
            first = share(float(comparison.first_regret[str(label)].mean()), row["regret"])
            rows.append({"protocol": str(label), **numbers, "first_share": first, **known})
        return rows

    def curves_csv(self) -> bytes:
        """Every replicate's regret and messages in every round."""
        return self._compared().to_dataframe().to_csv(index=False).encode()

    def curves_picture(self, kind: str) -> bytes:
        """The curves as PNG or SVG, as in the documents."""
        return as_bytes(self._compared().plot(), kind)

    def _compared(self) -> Comparison:
        if self._comparison is None:
            raise InputError("there are no results to download; run the simulation first")
        return self._comparison

    # The network, round by round.

    def record(self, choices: Mapping[str, str], folder: Path, shown: Sequence[str], arm: str | None) -> dict[str, Any]:
        """Record the first replicate of one or two protocols, side by side.

        First says which there are; then names each document that is kept, the last one of all rounds, or reports frames
        where rounds are taken one by one. With an arm, each agent's heard holders of it are recorded, too.
        """
        case = _case(choices, folder)
        known = _entries(case)
        # Without a wish, those that have something to show.
        sending = [name for name, (one, _) in known.items() if one.sends_messages] or list(known)
        labels = list(dict.fromkeys(name for name in shown if name in known)) or sending[:2]
        arms = None if arm is None else [_named(case.problem.arms, arm, "arm")]
        shown_arm = _shown(chosen_arms(case.problem, arms)[0])
        told = {"labels": list(known), "shown": labels, "arms": _names(case.problem.arms), "horizon": case.horizon}
        tapes = [_Tape(case, *known[label], label=label, arms=arms, choices=choices) for label in labels]
        whole = key_of([one.key for one in tapes], labels)
        kept = Kept(folder)
        self._tell({**told, "arm": shown_arm})
        document, is_shown = kept.document(whole), False
        if document is None:
            document, is_shown = self._record(kept, tapes)
            kept.keep_document(whole, document)
        self._tell({"kept": whole, "round": case.horizon, "is_part": False, "is_shown": is_shown})
        answer = {"round": case.horizon, "kept": whole, "arm": shown_arm if document["arms"] else None}
        return {**answer, "holds": _holds(shown_arm, bool(document["arms"]), case.problem.n_agents)}

    def _record(self, kept: Kept, tapes: list[_Tape]) -> tuple[dict[str, Any], bool]:
        """Record what is missing, and keep it; returns all of it, and whether it has been reported frame by frame."""
        from ..animations import side_by_side

        found = {one.key: kept.document(one.key) for one in tapes}
        missing = [one for one in tapes if found[one.key] is None]
        if missing and not missing[0].is_stepped:
            try:
                self._books(kept, tapes, missing, found)
            except UnsupportedError:
                # What the quick engine does not run is stepped through.
                for one in missing:
                    one.must_step = True
        streams = len(missing) == len(tapes) and missing[0].is_stepped and not missing[0].is_short
        if missing and missing[0].is_stepped:
            found |= self._steps(missing, streams)
        for one in missing:
            kept.keep_document(one.key, found[one.key] or {})
        return _beside(tapes, found, side_by_side), streams

    def _books(
        self,
        kept: Kept,
        tapes: list[_Tape],
        missing: list[_Tape],
        found: dict[str, dict[str, Any] | None],
    ) -> None:
        """Find what is missing in an engine's own books; the first rounds of a large network are kept at once."""
        from ..animations import side_by_side

        for last in missing[0].parts:
            for number, one in enumerate(missing, len(tapes) - len(missing)):
                share = number / len(tapes), 1 / len(tapes)
                found[one.key] = one.document(last, partial(self._tell_share, *share))
            if last < missing[0].horizon:
                part = key_of([one.key for one in tapes], [one.label for one in tapes], last)
                kept.keep_document(part, _beside(tapes, found, side_by_side))
                self._tell({"kept": part, "round": last, "is_part": True, "is_shown": False})

    def _tell_share(self, begin: float, width: float, done: int, total: int) -> None:
        if self._pace.is_due():
            self._tell({"done": begin + width * done / total})

    def _steps(self, tapes: list[_Tape], streams: bool) -> dict[str, dict[str, Any] | None]:
        """Take the rounds of some runs one by one; reports their frames, unless all of it takes but a moment."""
        from ..animations import Recorder, side_by_side
        from ..sim.simulation import Simulation

        runs = []
        for one in tapes:
            recorder = Recorder(one.problem, horizon=one.horizon, label=one.label, arms=one.arms)
            runs.append((recorder, Simulation(one.problem, one.protocol, **one.settings)))
        if streams:
            self._tell({"document": side_by_side(*(recorder.document() for recorder, _ in runs))})
        sent = [0] * len(runs)

        def tell(t: int) -> None:
            for number, (recorder, _) in enumerate(runs):
                if streams and (frames := recorder.frames_since(sent[number])):
                    sent[number] += self._tell_frames(frames, t, number)

        for t in range(1, tapes[0].horizon + 1):
            for recorder, simulation in runs:
                recorder.add(simulation.step())
            if self._pace.is_due():
                tell(t)
        while any(sent[number] < recorder.n_frames for number, (recorder, _) in enumerate(runs) if streams):
            tell(tapes[0].horizon)
        return {one.key: recorder.document() for one, (recorder, _) in zip(tapes, runs, strict=True)}

    def _tell_frames(self, frames: list[Any], t: int, run: int) -> int:
        """Report as many frames as may be sent at a time; returns how many."""
        sizes = itertools.accumulate(len(json.dumps(one)) for one in frames)
        fitting = frames[: max(1, sum(size <= MAX_CHARACTERS for size in sizes))]
        self._tell({"frames": fitting, "run": run, "round": t})
        return len(fitting)

    def recorded_html(self, folder: Path, key: str) -> bytes:
        """A recording as a page that plays by itself."""
        from ..animations import as_html

        document = Kept(folder).document(key)
        if document is None:
            raise InputError("no round was recorded yet; play it first")
        return as_html(document, "banditmesh").encode()

    # One message.

    def follow(self, case: str, choices: Mapping[str, str], folder: Path, wanted: Mapping[str, str]) -> dict[str, Any]:
        """Where one message goes, under one protocol or two; of a case of the gallery, or of the lab's problem."""
        from ..animations import GALLERY, follow, message_document

        settings: dict[str, Any] = {}
        if case in GALLERY:
            shown = GALLERY[case]
            problem, origin, arm, protocols, text = shown.problem, shown.origin, shown.arm, shown.protocols, shown.text
        else:
            own = _case(choices, folder)
            problem, protocols, text = own.problem, FOLLOWED, repr(own.problem)
            origin, arm = problem.agents[0], problem.arms[problem.arm_set(0)[0]]
            settings = {"rules": own.rules, "faults": own.faults, "seed": own.seed}
        if wanted.get("agent"):
            origin = _named(problem.agents, wanted["agent"], "agent")
        if wanted.get("arm"):
            _named(problem.arms, wanted["arm"], "arm")
        number = list(problem.agents).index(origin)
        held = [problem.arms[one] for one in problem.arm_set(number)]
        arm = _named(held, wanted["arm"], "arm") if wanted.get("arm", "") in map(_shown, held) else arm
        arm = arm if arm in held else held[0]
        given = [wanted.get("left") or protocols[0], wanted.get("right", protocols[-1])]
        self._journeys = tuple(follow(problem, one, origin=origin, arm=arm, **settings) for one in given if one)
        return {
            "document": message_document(*self._journeys),
            "text": text,
            "agents": _names(problem.agents),
            "arms": _names(held),
            "agent": _shown(origin),
            "arm": _shown(arm),
            "protocols": given,
            "sent": [journey.n_sent for journey in self._journeys],
            "words": [[readable(line) for line in journey.words()[:MAX_ROWS]] for journey in self._journeys],
        }

    def followed_html(self) -> bytes:
        """The message that was followed, as a page that plays by itself."""
        from ..animations import as_html, message_document

        if not self._journeys:
            raise InputError("no message was followed yet; choose an agent first")
        return as_html(message_document(*self._journeys), "banditmesh").encode()

    # Compare and frontier.

    def frontier(self, choices: Mapping[str, str], folder: Path, wanted: Mapping[str, str]) -> Any:
        """The frontier of the problem; reports how much is done."""
        from ..comparisons.frontier import frontier, read_ttls
        from ..protocols import notation

        case = _one_case(choices, folder)
        if hint := _hint(case):
            self._tell(hint)
        pace = _Pace()

        def look(done: int, total: int) -> None:
            if pace.is_due():
                self._tell(done / total)

        ttls = wanted.get("ttls", "").strip(" ,")
        emissions = listed(wanted, "emissions")
        return frontier(
            case.problem,
            protocols=[notation.protocol_or_class(name) for name in listed(choices, "protocols")] or None,
            ttls=read_ttls("ttl", ttls) if ttls else None,
            emissions=[notation.read_emission(one) for one in emissions] or None,
            progress=look,
            **case.settings,
        )

    def frontier_picture(self, found: Any, kind: str) -> bytes:
        """A frontier as PNG or SVG, as in the documents."""
        return as_bytes(found.plot(), kind)

    def bounds(
        self, choices: Mapping[str, str], folder: Path, protocols: list[str]
    ) -> dict[str, dict[str, float | None]]:
        """Upper and lower bounds of the regret of some protocols at the horizon; None where theory says nothing."""
        from ..theory.bounds import bounds

        case = _one_case(choices, folder)
        alpha = case.alpha("choose ucb and everything to see them")
        found = {}
        for number, name in enumerate(protocols):
            self._tell(number / len(protocols))
            settings: dict[str, Any] = {"faults": case.faults, "time_limit": COVER_SECONDS}
            one = bounds(case.problem, name, alpha, case.horizon, "dsatur", **settings)
            found[name] = _bounds(one, case.horizon)
        return found

    # Studies.

    def study(self, path: str, wanted: Mapping[str, str], where: Mapping[str, str] | None = None) -> dict[str, Any]:
        """How far a study is, what failed, and a column of its table against one or two of its keys.

        Parameters
        ----------
        path : str
            Its folder.
        wanted : mapping
            The keys `x` and `by`, and the `column`; of what is empty or missing, one that has something to show.
        where : mapping, optional
            The values of further keys; the first of each if not given.
        """
        from ..studies.shards import point_columns
        from ..studies.store import Study, list_shards

        study = Study(os.path.expanduser(path))
        manifest = study.manifest
        told: dict[str, Any] = {
            "name": manifest["spec"]["name"],
            "state": manifest["state"],
            "n_runs": manifest["n_runs"],
            "n_done": 0,
            "keys": [],
            "columns": [],
            "failed": [],
            "n_failed": 0,
            "series": {},
            "where": {},
        }
        if not list_shards(study.path):
            return told
        table = study.table(partial=True)
        failed = table[table["error"].notna()]
        told |= {"n_done": len(table), "n_failed": len(failed)}
        told["failed"] = [
            {
                "run": int(row["run"]),
                "point": _point(row, point_columns(manifest["columns"])),
                "error": str(row["error"]),
            }
            for _, row in failed.head(MAX_ROWS).iterrows()
        ]
        return told | _swept(table[table["error"].isna()], point_columns(manifest["columns"]), wanted, where or {})


class _Tape:
    """A run that is recorded, or was: what its recording depends on, and how it is made."""

    def __init__(
        self,
        case: Case,
        protocol: Any,
        settings: dict[str, Any],
        *,
        label: str,
        arms: list[Any] | None,
        choices: Mapping[str, str],
    ) -> None:
        self.problem, self.horizon, self.protocol, self.label, self.arms = (
            case.problem,
            case.horizon,
            protocol,
            label,
            arms,
        )
        self.settings = {name: value for name, value in settings.items() if name != "replicates"}
        self.must_step = False
        rest = {key: text for key, text in choices.items() if key not in ("protocols", "policies", "replicates")}
        wish = None if arms is None else repr(arms)
        self.key = key_of("record", rest, repr(protocol), repr(self.settings.get("policy")), wish)

    @property
    def is_short(self) -> bool:
        """Whether to step through all of it takes but a moment."""
        return self.problem.n_agents * self.horizon <= SHORT

    @property
    def is_stepped(self) -> bool:
        """Whether its rounds are taken one by one."""
        wishes = self.problem.n_agents <= MAX_STEPPED and (
            self.is_short or self.problem.is_dynamic or (self.arms is not None and self.heard is None)
        )
        return self.must_step or wishes

    @cached_property
    def heard(self) -> dict[str, Any] | None:
        """What holders of the arm hear, if the beginning of the run is enough to know it."""
        from ..animations.hearing import hear

        if self.problem.n_agents > MAX_STEPPED:
            return None
        arm = chosen_arms(self.problem, self.arms)[0]
        return hear(self.problem, self.protocol, arm, max_pulls=MAX_HEARING, **self.settings)

    @property
    def parts(self) -> list[int]:
        """Up to which rounds it is recorded, one after the other: of a large network the first ones come at once."""
        n_agents = self.problem.n_agents
        beginnings = [4, 20] if n_agents > MAX_STEPPED else [20] if n_agents > SMALL else [PART // n_agents]
        return [*(last for last in beginnings if last < self.horizon), self.horizon]

    def document(self, last: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
        """The recording of the rounds up to the last one, by an engine's own books."""
        from ..animations.loads import frames_every, load_document
        from ..sim.arguments import beginnings
        from ..sim.engine import simulate

        network = self.problem.network
        n_links = getattr(network, "n_links", 0) or self.problem.n_agents
        n_drawn = 2 * n_links if self.problem.n_agents <= MAX_STEPPED else MAX_GROUPS**2
        every = frames_every(last, min(2 * n_links, n_drawn) + self.problem.n_agents)
        kept: dict[str, Any] = {"link_traffic": True, "agents": True, "record_every": every, "progress": progress}
        with beginnings():
            engine = "compiled" if self.problem.n_agents <= MAX_STEPPED else "auto"
            result = simulate(self.problem, self.protocol, **{**self.settings, **kept, "horizon": last}, engine=engine)
        heard = self.heard if last == self.horizon else None
        return load_document(self.problem, result, self.label, horizon=self.horizon, heard=heard)


def _holds(arm: str, is_heard: bool, n_agents: int) -> str:
    """What a recording holds, in words."""
    always = "what each link carries in either direction, and each agent's regret"
    if is_heard:
        return f"{always}, and how many holders of arm {arm} it has learned from"
    hint = ": choose an arm for that" if n_agents <= MAX_STEPPED else ""
    return f"{always}; not who learned from whom{hint}"


def _beside(tapes: list[_Tape], found: Mapping[str, dict[str, Any] | None], side_by_side: Any) -> dict[str, Any]:
    """The recordings side by side, by the names that they have here."""
    documents = [{**(found[one.key] or {}), "label": one.label} for one in tapes]
    if not all(one["arms"] for one in documents):
        # Side by side they show the same.
        documents = [_without_heard(one) for one in documents]
    document: dict[str, Any] = side_by_side(*documents)
    return document


def _without_heard(document: dict[str, Any]) -> dict[str, Any]:
    frames = [{**frame, "heard": []} for frame in document["frames"]]
    scale = {"scale": {**document["scale"], "heard": []}} if "scale" in document else {}
    return {**document, **scale, "arms": [], "holders": [], "frames": frames}


class _Pace:
    """Says when the next progress report is due."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + TELL_EVERY
        return True


def thinned(rounds: NDArray[Any], regret: NDArray[Any], messages: NDArray[Any]) -> dict[str, Any]:
    """Means and bands of one standard deviation, over the replicates that are known, at some of the rounds.

    Examples
    --------
    >>> curve = thinned(np.array([1, 2]), np.array([[1.0, 2.0], [3.0, np.nan]]), np.array([[4.0, 4.0], [4.0, np.nan]]))
    >>> curve["rounds"], curve["regret"]["mean"]
    ([1, 2], [2.0, 2.0])
    """
    known = (~np.isnan(regret)).sum(axis=0)
    last = int((known > 0).sum())
    if last == 0:
        return {"rounds": [], "regret": _EMPTY, "messages": _EMPTY}
    places = np.unique(np.linspace(0, last - 1, min(last, MAX_POINTS)).round().astype(int))
    curve: dict[str, Any] = {"rounds": rounds[places].tolist()}
    for name, values in (("regret", regret), ("messages", messages)):
        shown = values[:, places]
        mean = np.nanmean(shown, axis=0)
        several = known[places] > 1
        sd = np.zeros(len(places))
        if several.any():
            sd[several] = np.nanstd(shown[:, several], axis=0, ddof=1)
        curve[name] = {"mean": mean.tolist(), "low": (mean - sd).tolist(), "high": (mean + sd).tolist()}
    return curve


_EMPTY: Final[dict[str, list[float]]] = {"mean": [], "low": [], "high": []}


def _case(choices: Mapping[str, str], folder: Path) -> Case:
    """The case that choices describe; what is wrong is said in the words of the page."""
    from ..studies.case import case_of
    from ..studies.reading import spec_from_tables

    tables = to_tables(choices)
    # Before the spec is read, which looks into the files.
    uploads.check(folder, tables)
    try:
        return case_of(spec_from_tables(tables, folder=folder))
    except SpecError as error:
        what = error.what
        for kept in filter(None, map(choices.get, FILES)):
            # Files go by the names that their users know.
            what = what.replace(f"{folder}/{kept}", kept).replace(kept, Path(kept).name)
        key = next((field for field, swept in SEVERAL.items() if is_within(error.key, f"sweep.{swept}")), error.key)
        # The page sets this limit itself.
        remedy = "choose a smaller file" if error.remedy == RAISE_LIMIT else error.remedy
        raise SpecError(what, key=key, remedy=remedy, is_sentence=error.is_sentence) from None


def _one_case(choices: Mapping[str, str], folder: Path) -> Case:
    """The same where protocols are optional; one that sends is put in their place, so that faults have an effect."""
    return _case({**choices, "protocols": choices.get("protocols", "").strip(" ,") or "irs"}, folder)


def _entries(case: Case) -> dict[str, tuple[AnyProtocol, dict[str, Any]]]:
    """Each protocol with each policy, by the name that it has in a comparison, and what `simulate` is given besides."""
    from ..comparisons.entries import read_entries

    shared = {name: value for name, value in case.settings.items() if name != "policies"}
    entries = read_entries(case.protocols, case.policies if case.policy is None else ())
    return {name: (entry.protocol, {**shared, **entry.settings}) for name, entry in entries.items()}


def _hint(case: Case) -> str:
    """A hint if another policy than the default fits the arms better; empty if not."""
    from ..policies import UCB
    from ..policies.choice import WEAKNESS, suits_rates

    if case.policy != UCB() or not suits_rates(case.problem):
        return ""
    return f"all rewards lie between 0 and 1: {case.policy!r} {WEAKNESS}; choose klucb or thompson as the policy"


def readable(text: str) -> str:
    r"""The same text in characters that can be sent: names come from files, and may hold lone surrogates.

    Examples
    --------
    >>> readable("half \ud800")
    'half ?'
    """
    return text.encode(errors="replace").decode()


def _shown(name: Any) -> str:
    """A name as the page shows it: no longer than in the drawing."""
    return readable(short(name))


def _names(values: Iterable[Any]) -> list[str]:
    return [_shown(value) for value in itertools.islice(values, MAX_PLACES)]


def _named(values: Any, text: str, what: str) -> Any:
    for value in values:
        if text in (str(value), _shown(value), short(value)):
            return value
    raise InputError(f"{what} must be one of the problem's, got {text!r}")


def _bounds(one: Bounds, horizon: int) -> dict[str, float | None]:
    lower = one.lower_corrected
    values = {"upper": one.upper_corrected, "lower": None if lower is None else lower * float(np.log(horizon))}
    return {name: None if value is None or not np.isfinite(value) else float(value) for name, value in values.items()}


def _point(row: Any, columns: list[str]) -> str:
    return ", ".join(f"{name} {row[name]}" for name in columns if row[name] is not None and row[name] == row[name])


def _swept(table: Any, keys: list[str], wanted: Mapping[str, str], where: Mapping[str, str]) -> dict[str, Any]:
    """Means and standard deviations of a column, by a key along the axis and by another one, at values of the rest.

    Of every other key that varies one value is shown, since a mean over several would describe none of them.
    """
    need("pandas", "tables", "a table")
    from pandas.api.types import is_numeric_dtype

    from ..studies.lines import as_text, is_mixed, lines, select, varied

    left_out = {*keys, "run", "point", "replicate", "seed", "error"}
    columns = [str(name) for name in table.columns if name not in left_out and is_numeric_dtype(table[name])]
    for name, known in (("x", keys), ("by", keys), ("column", columns)):
        if wanted.get(name, "") not in ("", *known):
            raise InputError(f"{name} must be one of {', '.join(known)}; got {wanted[name]!r}")
    for key in where:
        if key not in keys:
            raise InputError(f"where must be over one of {', '.join(keys)}; got {key!r}")
    several = varied(table, keys) or keys[:1]
    free = [key for key in several if key not in where] or several
    axis = wanted.get("x") or next((key for key in free if is_numeric_dtype(table[key])), free[0])
    by = wanted.get("by") or next((key for key in free if key != axis), "")
    by = "" if by == axis else by
    if both := [key for key in (axis, by) if key in where]:
        raise InputError(f"where must be over other keys than x and by, got {both[0]!r}")
    column = wanted.get("column") or "regret"
    shown = table[table[axis].notna()]
    chosen: dict[str, dict[str, Any]] = {}
    for key in keys:
        values = list(map(as_text, shown[key].dropna().unique()))[:MAX_PLACES]
        if key in (axis, by) or len(values) < (1 if key in where else 2):
            continue
        chosen[key] = {"value": as_text(where[key]) if key in where else values[0], "options": values}
        shown = select(shown, keys, {key: chosen[key]["value"]})
    # What has no value of such a key is shown beside it, unless it would be in the same line.
    if any(is_mixed(runs, axis) for _, runs in (shown.groupby([by], dropna=False) if by else [("", shown)])):
        shown = shown[shown[list(chosen)].notna().all(axis=1)]
    series: dict[str, list[list[Any]]] = {}
    for name, runs in lines(shown, keys, axis, [by] if by else []).items():
        for place, here in itertools.islice(runs.groupby(axis, sort=True)[column], MAX_PLACES):
            value = place.item() if hasattr(place, "item") else place
            sd = float(here.std(ddof=1)) if len(here) > 1 else 0.0
            found = series.setdefault(name if by else column, [])
            found.append([value, float(here.mean()), sd, len(here)])
    told: dict[str, Any] = {
        "x": axis,
        "by": by,
        "column": column,
        "where": chosen,
        "columns": columns,
        "series": series,
    }
    told |= {"is_numeric": bool(is_numeric_dtype(table[axis])), "n_without": int(table[axis].isna().sum())}
    return told | {"keys": list(dict.fromkeys([*several, axis, *([by] if by else [])]))}
