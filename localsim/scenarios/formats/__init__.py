"""Scenarios of other tools' formats, read and written; `sotopia_talks.read` and `privacylens.read` are the entries."""
