"""What class, experiment and play stand on: conversations in which people act through pages, played as one run.

`state` holds what events lead to, `ledger` keeps events on the disk, `floor` plays and takes turns, and `pages` show a
conversation.
"""
