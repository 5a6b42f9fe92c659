"""What people read: measures, comparisons, curves, audit, card, pages of text and HTML."""
