"""Commands that simulate: run, resume, interview, experiment."""

from localsim.cli.running.commands import resume as resume
from localsim.cli.running.commands import run as run
from localsim.cli.running.experiment import experiment as experiment
from localsim.cli.running.interview import interview as interview
