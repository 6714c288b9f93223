"""What is looked for in code. Each module finds one kind of thing and yields findings, the best first."""
