"""Interviews: one person is asked the items of a bank; nobody else takes part.

`items` has the values of a bank, `family` the rules and measures, `answers` reads what was answered, `players` are
scripted subjects, and `reasoning` makes items whose answers can be computed.
"""
