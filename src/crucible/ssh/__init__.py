"""Other computers over SSH: connections that are kept, host keys that are checked, errors in our words."""
