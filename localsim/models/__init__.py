"""Files with weights: names, checksums, fetching, adapters. Nothing here loads a model."""
