"""Adaptive search over parameters, by libraries that somebody else wrote. They are imported when a job asks."""
