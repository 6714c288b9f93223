"""The REST API, the WebSocket and the agents' routes. It reads, asks the engine and writes JSON; it decides nothing."""
