"""The isolation audit: `prompts` searches them, `turns` knows who could read what was said, `texts` compares texts."""

from localsim.reports.audit.prompts import Audit, Violation, audit_run, found_in, held
from localsim.reports.audit.texts import RUN
from localsim.reports.audit.turns import Readers

__all__ = ["RUN", "Audit", "Readers", "Violation", "audit_run", "found_in", "held"]
