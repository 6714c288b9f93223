"""Packages of user code on a folder, named by their content."""
