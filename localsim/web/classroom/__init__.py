"""A class on one laptop: phones get seats in talks, players bet, a projector shows the results.

`seats` holds the state as values, `ledger` keeps it on the disk, `hall` lets the talks run, `results` counts, and the
`*_pages` show it.
"""
