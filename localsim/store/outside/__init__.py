"""Many databases: runs as Parquet partitions, views over other people's files, and one database out of many."""
