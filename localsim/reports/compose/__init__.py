"""What `reports.report.of` composes: one run alone, others beside it, and what is read aloud about them."""
