"""Commands that simulate: run, resume, interview, experiment."""
