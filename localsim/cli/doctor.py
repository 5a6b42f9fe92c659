"""localsim doctor."""

from __future__ import annotations

import click

from localsim import doctor as diagnosis
from localsim.cli.common import json_option, print_json
from localsim.errors import BackendUnavailable


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check this machine and the build of llama.cpp; exit 7 where a run cannot work."""
    findings = diagnosis.diagnose()
    if as_json:
        print_json(diagnosis.as_json(findings))
    else:
        for finding in findings:
            mark = click.style("ok  ", fg="green") if finding.ok else click.style("BAD ", fg="red")
            click.echo(f"{mark} {finding.name}: {finding.value}")
            if finding.advice:
                click.echo(f"     {finding.advice}")
    bad = [finding for finding in findings if not finding.ok]
    if bad:
        raise BackendUnavailable(f"{bad[0].name}: {bad[0].value}", hint=bad[0].advice)
