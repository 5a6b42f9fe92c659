"""Begins or continues an experiment and serves it: ledger, lab, pages, and the lines that are printed."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from localsim import paths
from localsim.conversation.episode import EDITION
from localsim.errors import InvalidInput
from localsim.runs.runner import new_run_id
from localsim.scenarios.experiments.read import Study
from localsim.store.database import Store
from localsim.web.app import During, Site, create_app
from localsim.web.experiment.lab import ExperimentOpening, Lab
from localsim.web.experiment.pages import HOME, person_name
from localsim.web.floor.ledger import Ledger
from localsim.web.guard import Access, address_of, hosts_of, is_loopback, shown
from localsim.web.phrases.table import find
from localsim.web.serve import run_app, settled

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wish:
    """What the command line asks for."""

    study: Study
    model: str
    """The partner in conditions whose partner is `model`."""
    host: str
    port: int | None
    fresh: bool
    """True for a new run of the experiment, even if one that could go on is in the ledger."""
    language: str = "en"
    """The language of the pages, by the name that `phrases.table.find` knows; the file has texts of its own."""
    end: bool = False
    """True to complete the run with the participants who have finished, and to serve nothing."""


def ledger_of(store: Store, study: Study) -> Ledger:
    """Open the ledger of an experiment beside the database. Raises DatabaseError while another process has it."""
    return Ledger(store.path, f"{study.experiment.id}.experiment", f"the experiment {study.experiment.id}")


def serve_experiment(store: Store, wish: Wish, say: Say, *, open_browser: bool, during: During = nullcontext) -> None:
    """Serve an experiment until Ctrl-C, or end it; `during` is that of `Site`.

    Raises InvalidInput, ModelMissing, DatabaseError or BackendUnavailable.
    """
    store.ensure_usable()
    phrases = find(wish.language)
    ledger = ledger_of(store, wish.study)
    try:
        opening, continued = opening_of(ledger, wish)
        opening, listening, _ = settled(ledger, opening, wish.host, wish.port, continued=continued)
        with during("opening the experiment"):
            lab = Lab(store, wish.study, ledger, opening, say)
            lab.start()
    except BaseException:
        ledger.close()
        raise
    table = f"its table: localsim experiment results {wish.study.experiment.id}{paths.db_option(store.path)}"
    if wish.end:
        listening.close()
        with during("completing the run"):
            lab.stop(end=True)
        say(
            f"ended with {_filled(lab)}"
            if lab.searched
            else "the run is not complete; the same command goes on with it"
        )
        say(table)
        return
    access = None if is_loopback(wish.host) else opening.access
    rules = Access(hosts_of(shown(wish.host)), access, seat_of=lambda request: person_name(lab, request))
    app = create_app(Site(store, rules, opening.model, frozenset({"experiment"}), lab=lab, phrases=phrases))
    link = address_of(f"{shown(wish.host)}:{opening.port}", HOME, access)
    _tell(say, lab, link, continued=continued)
    try:
        run_app(app, listening, link if open_browser else "")
    finally:
        with during("storing what participants did"):
            lab.stop()
        if not lab.register.ended:
            without = " without --new" if wish.fresh else ""
            say(f"the experiment has stopped; the same command{without} goes on with it")
        say(table)


def opening_of(ledger: Ledger, wish: Wish) -> tuple[ExperimentOpening, bool]:
    """How the experiment begins, and True if it continues the one in the ledger. Raises InvalidInput."""
    fresh = ExperimentOpening(
        run_id=new_run_id(datetime.now(UTC)), host=wish.host, port=wish.port or 0, access=secrets.token_urlsafe(9),
        study=wish.study.hash, model=wish.model, edition=EDITION, language=wish.language,
    )  # fmt: skip
    first = ledger.first()
    if first is None or wish.fresh or not ledger.has("agree"):
        if wish.end:
            raise InvalidInput("nobody has taken part in this experiment, so there is nothing to end")
        return fresh, False
    old = ExperimentOpening(**first)
    if ledger.has("closed"):
        raise InvalidInput(
            f"this experiment has ended; its run is {old.run_id}",
            hint="localsim experiment results shows it; --new begins it again, as another run",
        )
    if (old.study, old.model, old.language) != (fresh.study, fresh.model, fresh.language):
        what = "file, banks, rubric or scenarios" if old.study != fresh.study else f"model ({old.model} before)"
        what = what if old.language == fresh.language else f"language of the pages ({old.language} before)"
        raise InvalidInput(
            f"people have taken part in this experiment with another {what}",
            hint="restore what was there to go on, or begin another run with --new",
        )
    ledger.mend()
    return old, True


def _filled(lab: Lab) -> str:
    return f"{sum(lab.register.finished().values())} of {lab.study.experiment.size} places filled"


def _tell(say: Say, lab: Lab, link: str, *, continued: bool) -> None:
    people = lab.register.people
    if continued:
        say(f"the experiment goes on: {len(people)} participants, {_filled(lab)}")
    say(f"participants open {link}  (Ctrl-C stops the server; nothing is lost)")
    if is_loopback(lab.opening.host):
        say("only this computer can take part; --host ADDRESS lets others in")
    else:
        say("everybody who has this address can take part")
    say("stored: consent, answers, talks and times, under random codes; no name, address or browser")
