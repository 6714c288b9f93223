"""The real engines that tests and examples run on: frameworks in environments of their own, and Debian's packages."""
