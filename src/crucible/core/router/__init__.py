"""The router: what a script will need, read from its text alone, and which backend suits it. It never runs or imports
what it reads, and whatever it says names the line it was read from and how sure it is."""
