"""Everything that is measured about a completed episode: one protocol (`base`) and one loop (`evaluate`)."""
