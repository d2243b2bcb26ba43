"""The pages that people read: rendered on the server from the operations and the catalogue, usable without script."""
