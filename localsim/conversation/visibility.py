"""The table of views. `observe` is the only function that decides what an agent or the writer of a script may know.

    what                      script (writer)   agents                          mindreaders
    setting, actions, turns   yes               yes                             yes
    own profile, goal, ...    all agents'       own                             own
    others' profile           full              by relationship (PROFILE_SEEN)  full
    others' goal              yes               no                              yes
    others' secret, facts     yes               no                              yes
    answer key, info          no                no                              no

Levels follow Sotopia's table (get_bio; arXiv 2310.11667, appendix): a stranger sees only the name in the list
of participants. The answer key is not even an argument.
"""

from __future__ import annotations

from localsim.conversation.episode import AgentView, Mode, Observation
from localsim.conversation.scenario import WRITER, Agent, RelationshipLevel, Scenario
from localsim.conversation.transcript import Transcript

_ACQUAINTED = ("age", "gender", "pronouns", "occupation", "public_info")
_CLOSE = (*_ACQUAINTED, "personality_and_values", "decision_making_style")

PROFILE_SEEN: dict[RelationshipLevel, tuple[str, ...]] = {
    "stranger": (),
    "know_by_name": (),
    "acquaintance": _ACQUAINTED,
    "friend": _CLOSE,
    "romantic": _CLOSE,
    "family": _CLOSE,
}
"""Profile fields that the other side sees at each relationship level."""


def observe(scenario: Scenario, mode: Mode, viewer: str, transcript: Transcript) -> Observation:
    """Return everything that `viewer` (an agent's name, or `writer` in script mode) may know after `transcript`.

    Raises ValueError for a viewer that the mode does not have.
    """
    if (viewer == WRITER) != (mode == "script"):
        raise ValueError(f"{viewer} has no view in {mode} mode")
    omniscient = mode in ("script", "mindreaders")
    return Observation(
        viewer=viewer,
        setting=scenario.setting,
        relationships=tuple(
            (one, other, scenario.level(one, other))
            for position, one in enumerate(scenario.names)
            for other in scenario.names[position + 1 :]
            if omniscient or viewer in (one, other)
        ),
        agents=tuple(_view(scenario, viewer, agent, omniscient) for agent in scenario.agents),
        omniscient=omniscient,
        actions=scenario.actions,
        turn_limit=scenario.limits.turns,
        transcript=transcript,
        family=scenario.family,
    )


def _view(scenario: Scenario, viewer: str, agent: Agent, omniscient: bool) -> AgentView:
    own = omniscient or agent.name == viewer
    fields = _CLOSE if own else PROFILE_SEEN[scenario.level(viewer, agent.name)]
    profile = tuple(
        (field.replace("_", " "), str(value))
        for field in fields
        if (value := getattr(agent.profile, field)) is not None
    )
    if not own:
        return AgentView(agent.name, profile)
    return AgentView(agent.name, profile, agent.goal, agent.secret, agent.facts)
