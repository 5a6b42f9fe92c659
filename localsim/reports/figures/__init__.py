"""Figures of runs: curves over the course of a conversation, bars and curves as SVG and PNG, and what stands beside."""
