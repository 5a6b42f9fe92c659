"""Scenarios of other tools' formats, read and written; `sotopia.read` and `privacylens.read` are the entries."""
