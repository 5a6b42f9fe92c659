"""Reports for people: measures, comparisons, curves, audit, card, pages of text and HTML.

This room may import `finetune`, `annotation`, `runs` and the rooms below them.
"""
