"""Tiny as a seller of machines."""
