"""Figures of runs: curves over the course of a conversation, and bars and curves as SVG and PNG."""
