"""What every test may ask for."""

pytest_plugins = ("engines", "storage_engines")
