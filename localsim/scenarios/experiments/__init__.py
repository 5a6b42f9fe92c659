"""Files that describe experiments with people: `document` has their values, `read` finds what they name."""
