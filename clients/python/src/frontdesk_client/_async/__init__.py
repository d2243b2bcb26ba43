"""The async client. `session`, `pages` and `proposals` are written by hand; the sync client is generated from them."""
