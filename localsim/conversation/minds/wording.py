"""All fixed wording of the steps that ship; it tells an agent nothing that it does not know."""

from __future__ import annotations

from localsim.conversation.minds import acts, believe, drafts, immerse, predict, reflect, tpe

SAID = (
    *(immerse.SETTING, immerse.ASK, *immerse.POINTS),
    *(drafts.ASK_PICK, drafts.ASK_OF, drafts.FITS, *drafts.PICK, *drafts.YES_NO),
    *(acts.ASK, acts.TOLD),
    *(tpe.THINK, tpe.PLAN, tpe.THOUGHT, *tpe.SOURCES),
    *(believe.ASK, believe.START, believe.TOLD),
    *(predict.ASK, predict.SUPPOSE, predict.EXPECTS),
    *(text for question in reflect.QUESTIONS for text in question),
)
