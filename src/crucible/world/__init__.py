"""The market itself, pure: what is on sale where, at what price, whose it is, when it is taken away and what that
comes to. It imports nothing of Crucible, so its invoice is a second opinion on our ledger. Time comes in as seconds
since 1970; chance comes from a seed."""
