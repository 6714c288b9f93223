"""Clouds that run on this computer: a `world` on loopback that speaks the vendors' own protocols. Machines are real
process trees, bills are real sums, and nothing here is ever called by the server except over the wire."""
