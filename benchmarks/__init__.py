"""What the system costs, measured on the real thing. Every benchmark prints one JSON line per figure; CPU seconds are
those of the process in question, so that a busy machine changes them little. docs/performance.md explains the figures.
"""
