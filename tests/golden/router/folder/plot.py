raise SystemExit("another program of the same folder")
