"""The documentation pages, rendered on the server from the operations, the error catalogue and the guides."""
